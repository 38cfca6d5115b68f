"""What instructions in text that nobody vouches for look like, from `catalog/data/injection.toml`: words, marks and patterns."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec

Role = Literal["sign", "addressed", "follows"]
"""What a match says: by itself that there is an instruction, that a program is spoken to, or what it is told to do."""


class ProbeVocabulary(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words that the features of a sentence are made from."""

    verbs: frozenset[str]
    leading: frozenset[str]
    questions: frozenset[str]
    answers: frozenset[str]
    code: frozenset[str]
    declarative: frozenset[str]
    page: frozenset[str]
    ours: frozenset[str]
    mine: frozenset[str]


class QuoteMarks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How people show that text is not their own: the names of tags around it, and lines with which it begins, in lower case."""

    tags: frozenset[str]
    headers: tuple[str, ...]


class OverrideRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pattern of text that would replace the rules of a conversation. Weights add up to at most 1.

    `trusted`: it is looked for in what the user says, too. `unless_after`: a match behind this does not count. `line_start`: it counts at
    the beginning of a line or a sentence alone. `<machine>` in a pattern stands for what a reader that is a program is called.
    """

    name: str
    weight: float
    trusted: bool
    pattern: str
    unless_after: str = ""
    role: Role = "sign"
    line_start: bool = False


class AddressedRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of a language with which a program is spoken to, and what it is told: `injection.toml` says where they stand.

    `verb_last`: the verb stands behind its object.
    """

    name: str
    machine: str
    before: str
    after: str
    order: str
    silence: str
    user: str
    spaced: bool = True
    verb_last: bool = False


class LanguageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of a language with which rules are replaced, a prompt is asked for, or an assistant is spoken to, with spaces between them.

    `_` in a word is a space, `*` any letters. `spaced`: words of this language have spaces between them.
    """

    name: str
    replace: str
    earlier: str
    rules: str
    unless: str = ""
    told: str = ""
    reveal: str = ""
    secret: str = ""
    address: str = ""
    spaced: bool = True


class InjectionRows(msgspec.Struct, frozen=True, kw_only=True):
    """All rows. `template_tokens` are pieces of chat templates, which no document holds by chance.

    `telling` are words that most instructions to an assistant have, by which a text that was changed as a whole is known. `about_attacks`
    is the pattern of words behind which a quotation shows an attack instead of making one.
    """

    probe: ProbeVocabulary
    quoted: QuoteMarks
    template_tokens: tuple[str, ...]
    telling: tuple[str, ...]
    overrides: tuple[OverrideRow, ...]
    languages: tuple[LanguageRow, ...]
    addressed: tuple[AddressedRow, ...]
    about_attacks: str


@cache
def injection_rows() -> InjectionRows:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/injection.toml").read_text(encoding="utf-8")
    tables: dict[str, Any] = tomllib.loads(text)
    quoted = {"tags": tables["quoted"]["tags"].split(), "headers": tables["quoted"]["headers"]}
    return msgspec.convert(
        {
            "probe": {name: words.split() for name, words in tables["probe"].items()},
            "quoted": quoted,
            "template_tokens": tables["template"]["tokens"],
            "telling": tables["disguise"]["telling"].split(),
            "overrides": [
                {**row, "pattern": row["pattern"].replace("<machine>", tables["address"]["machine"])}
                for row in tables["override"]
            ],
            "languages": tables["language"],
            "addressed": tables["addressed"],
            "about_attacks": tables["quotation"]["about_attacks"],
        },
        InjectionRows,
    )
