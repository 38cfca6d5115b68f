"""The text formats that models write their reasoning in: one row each, kept in `catalog/data/reasoning_formats.toml`.

A row says how reasoning is marked in the text of one model family. `registry.py` finds the row for a name or a model. A checkpoint's
tokenizer may declare its format in a `response_template`, which names the fields of a reply and the text that opens and closes each
(transformers 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal

import msgspec

from bardo.values.errors import InvalidRequest

MAX_DELIMITER = 128
"""Characters of a delimiter; the longest built-in one has 35."""
MAX_SPELLINGS = 64
_DELIMITERS = (
    "start", "end", "implicit_ends", "dropped", "answer_start", "answer_end", "call_start", "call_end", "stripped", "turns"
)  # fmt: skip
_PAIRS = (("start", "end"), ("answer_start", "answer_end"), ("call_start", "call_end"))

Machine = Literal["delimiters", "harmony", "spaced_harmony", "muse", "muse_glimmer", "inkling", "suffixed", "restored"]


class BadDelimiter(InvalidRequest, ValueError):
    """A delimiter of a format cannot be used; `key` is where it stands in the format's row."""

    def __init__(self, message: str, *, key: str, hint: str) -> None:
        super().__init__(message, hint=hint, param=key)
        self.key = key


class ReasoningFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one model family marks reasoning in its text.

    Of two delimiters the one that begins first counts, and of two that begin together, the longer.
    """

    name: str
    start: str | tuple[str, ...] = ()
    """Opens a block and is consumed; several spellings may be given."""
    end: str | tuple[str, ...] = ()
    """Closes a block and is consumed; the first one that occurs counts, whichever opener was used."""
    starts_inside: bool | Literal["prompt"] = False
    """Whether a reply begins inside a block. "prompt": the rendered prompt decides; not inside unless told."""
    implicit_ends: tuple[str, ...] = ()
    """Close an open block, and stay in the text that follows."""
    blocks: Literal["single", "multi"] = "single"
    """After the first block of a "single" format every tag is text."""
    opens: Literal["anywhere", "start"] = "anywhere"
    """Where an opener counts: anywhere outside fenced code, or only after leading whitespace."""
    leading_closer: bool = False
    """A reply that skips thinking begins with a closer alone, which is consumed."""
    stray_end: Literal["reasoning", "text"] = "reasoning"
    """What a whole reply closes that it never opened: reasoning that the prompt began, or nothing, as its models write every opener."""
    dropped: tuple[str, ...] = ()
    """Structure around the answer, consumed wherever it occurs outside reasoning."""
    answer_start: str | tuple[str, ...] = ()
    """Opens a wrapper that may stand around the answer, right after a block; consumed there."""
    answer_end: str | tuple[str, ...] = ()
    """Closes that wrapper and is consumed, once."""
    call_start: str | tuple[str, ...] = ()
    """Begins a call inside a block; the call belongs to the answer, with both of its delimiters."""
    call_end: str | tuple[str, ...] = ()
    """Ends such a call; the reasoning goes on after it."""
    restores: str = ""
    """For "restored": what the prompt ended with and the reply is given back with."""
    machine: Machine = "delimiters"
    """The kind of splitter that reads this format: `machines.py` lists them."""
    patterns: tuple[str, ...] = ()
    """Parts of model ids, or globs of parts, lower case."""
    aliases: tuple[str, ...] = ()
    """Names other servers give their parser of this format."""
    toggles: tuple[str, ...] = ()
    """Template arguments that turn thinking on and off."""
    thinks: bool = False
    """Whether templates think when the request's toggles do not say."""
    turns: tuple[str, ...] = ()
    """What begins the assistant's turn in a prompt, where it is none of the headers that `starting.py` knows."""
    stripped: tuple[str, ...] = ()
    """How a reply begins when the server has stripped special tokens that this format needs."""
    families: tuple[str, ...] = ()
    example: str = ""
    """A short reply in this format, for formats whose delimiters do not already show one."""
    notes: str = ""

    def __post_init__(self) -> None:
        """Raise BadDelimiter for a delimiter that is empty or too long, and for an opener that is also its closer."""
        for key in _DELIMITERS:
            given = getattr(self, key)
            if given != ():
                check_delimiters(f"format {self.name[:100]!r}", key, given)
        for opener, closer in _PAIRS:
            check_pair(f"format {self.name[:100]!r}", (opener, getattr(self, opener)), (closer, getattr(self, closer)))

    @property
    def starts(self) -> tuple[str, ...]:
        """Every spelling of what begins thinking."""
        return spellings(self.start)

    @property
    def ends(self) -> tuple[str, ...]:
        """Every spelling of what ends it."""
        return spellings(self.end)


@lru_cache(maxsize=1024)
def spellings(delimiter: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return the spellings of a delimiter, of which a row may give one or several; empty ones do not count."""
    given = (delimiter,) if isinstance(delimiter, str) else delimiter
    return tuple(spelling for spelling in given if spelling)


def check_delimiters(whose: str, key: str, given: str | tuple[str, ...]) -> None:
    """Raise BadDelimiter where one of the spellings given under `key` cannot be looked for."""
    listed = (given,) if isinstance(given, str) else given
    if len(listed) > MAX_SPELLINGS:
        message = f"{whose}: {key} has {len(listed)} spellings"
        raise BadDelimiter(message, key=key, hint=f"give up to {MAX_SPELLINGS}")
    for spelling in listed:
        if not spelling:
            raise BadDelimiter(f"{whose}: {key} is empty", key=key, hint=f"write the text of it, or leave {key} out")
        if len(spelling) > MAX_DELIMITER:
            message = f"{whose}: {key} has {len(spelling)} characters"
            raise BadDelimiter(message, key=key, hint=f"a delimiter has up to {MAX_DELIMITER}")


def check_pair(
    whose: str, opener: tuple[str, str | tuple[str, ...]], closer: tuple[str, str | tuple[str, ...]]
) -> None:
    """Raise BadDelimiter if a text both opens and closes: a parser cannot tell which it does."""
    both = set(spellings(opener[1])) & set(spellings(closer[1]))
    if both:
        message = f"{whose}: {opener[0]} and {closer[0]} are both {min(both)!r}"
        raise BadDelimiter(message, key=closer[0], hint="an opener and its closer must differ")


_THINKING_FIELDS = ("thinking", "reasoning", "reasoning_content")
_ANSWER_FIELD = "content"


class _Field(msgspec.Struct, frozen=True):
    open: str | tuple[str, ...] = ()
    close: str | tuple[str, ...] = ()
    open_pattern: str = ""
    close_pattern: str = ""
    repeats: bool = False


class _Template(msgspec.Struct, frozen=True):
    fields: dict[str, _Field]
    start_anchor: str | tuple[str, ...] = ()


def format_of_template(template: Mapping[str, Any], *, name: str = "response_template") -> ReasoningFormat:
    """Return the format that a response template means; where it declares no thinking, all is answer.

    What opens and closes the answer is dropped, calls stay in the text. Raises InvalidRequest for a text that is not a template, and
    for thinking that is opened or closed by a pattern instead of a text.
    """
    try:
        read = msgspec.convert(template, _Template)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"this is no response template: {error}", hint="give the tokenizer's own") from error
    thinking = next((read.fields[word] for word in _THINKING_FIELDS if word in read.fields), _Field())
    if thinking.open_pattern or thinking.close_pattern:
        raise InvalidRequest(
            f"the template {name!r} marks thinking by a pattern", hint="write a row with the texts it stands for"
        )
    return _format(name, read, thinking)


def _format(name: str, template: _Template, thinking: _Field) -> ReasoningFormat:
    answer = template.fields.get(_ANSWER_FIELD, _Field())
    others = [field for field in template.fields.values() if field is not thinking]
    # Thinking without an end of its own lasts until another field begins.
    following = tuple(opener for field in others for opener in spellings(field.open))
    return ReasoningFormat(
        name=name,
        start=thinking.open,
        end=thinking.close,
        implicit_ends=() if spellings(thinking.close) else following,
        starts_inside="prompt",
        blocks="multi" if thinking.repeats else "single",
        dropped=(*spellings(answer.open), *spellings(answer.close)),
        turns=spellings(template.start_anchor),
    )


EXAMPLE_THOUGHT = "6 * 7"
EXAMPLE_ANSWER = "42"


def example_of(row: ReasoningFormat) -> str:
    """Return the row's own example, else one made of its delimiters; empty where it has neither.

    A format whose replies begin inside a block shows no beginning, because the prompt holds it.
    """
    if row.example or not (row.starts and row.ends):
        return row.example
    opener = "" if row.starts_inside is True else row.starts[0]
    return f"{opener}{EXAMPLE_THOUGHT}{row.ends[0]}{EXAMPLE_ANSWER}"
