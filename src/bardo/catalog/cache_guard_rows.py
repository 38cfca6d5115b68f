"""What the guard of the semantic cache knows of each language, from `catalog/data/cache_guard.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec


class LanguageRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The words of one language. A text is a list of words with spaces between them.

    `light` words may be in one question and not in the other. So may a verb of `asking` or of `acting` that begins a command, where two
    other words have partners: one of acting only where both questions are commands. So may a verb of `support` before a word that has a
    partner, where both questions are of one kind; and `amounts`, where numbers or units are calculated with.

    A question is answered by yes or no where its first such word is in `yes_no` or `asks_whether`, and by something else where it is in
    `open_question`. It asks for instructions where `how` stands before one of `auxiliaries` and of `asker_words`, or it has a word of
    `manner`. A request to explain (`inform`) is not one to `produce` a text; what is possible (`possibility`) is not what must be
    (`obligation`), nor is `past` what is `present`. Both questions speak of the one who answers (`other_words`), or neither does.
    `negation` words are counted. `articles` are looked over where the word before another is asked for. `asker_as_object` are words for the
    one who asks, behind a verb whose object they are.

    Two words that stand on either side of one of `pivots`, or of a word that both questions have, must not change places, unless that word
    is in `converse` on one side; where one of the two has a word of `agent` behind it, they must. A word behind one of `roles` (a line:
    words for one role) does not stand behind another role; one behind the first line stands behind it in both questions, or beside a word
    of `joined` in the other.

    `particles` make one word with a verb before them; after `weak_particles` the verb alone is that word too. `exact` words and `units` (a
    line: the names of one unit) have no synonyms. `numbers` are `word=number`, and `after_number` are words that a number need not have
    behind it. `synonyms` are lines of words that may replace each other, `opposites` lines of words that never may, and `phrases` lines
    `phrase = words that it stands for`.
    `relations`: the file of English word relations holds for the language.
    """

    code: str
    light: str
    yes_no: str = ""
    open_question: str = ""
    asks_whether: str = ""
    asking: str = ""
    acting: str = ""
    support: str = ""
    amounts: str = ""
    inform: str = ""
    produce: str = ""
    possibility: str = ""
    obligation: str = ""
    present: str = ""
    past: str = ""
    other_words: str = ""
    asker_words: str = ""
    asker_as_object: str = ""
    articles: str = ""
    auxiliaries: str = ""
    manner: str = ""
    negation: str
    pivots: str = ""
    converse: str = ""
    roles: list[str] = []
    agent: str = ""
    joined: str = ""
    after_number: str = ""
    particles: str = ""
    weak_particles: str = ""
    exact: str = ""
    numbers: str = ""
    units: list[str] = []
    synonyms: list[str] = []
    opposites: list[str] = []
    phrases: str = ""
    relations: bool = False


@cache
def guard_languages() -> tuple[LanguageRow, ...]:
    """Return the languages that the guard knows."""
    text = files("bardo.catalog").joinpath("data/cache_guard.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomllib.loads(text)["language"], list[LanguageRow]))
