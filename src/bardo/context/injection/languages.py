"""Attempts to replace the rules of a conversation, in languages that have a row: words of one sentence, whatever their order.

A pattern of one expression fits one word order and one form of each word. Here a sentence counts where it has a word for leaving aside, a
word for what came earlier and a word for rules, close to each other, and nothing that turns it round (`do not forget your instructions`).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from bardo.catalog.layer_rows import InjectionLanguageRow as LanguageRow
from bardo.catalog.layer_rows import Role, injection_rows

NEAR = 700
"""Characters in which what was matched belongs together."""
_STEP = 60
_ALONE = 0.3
"""The part of its weight that counts of an address without an instruction, or of an instruction without an address."""
_MOST_FOLLOWS = 1.4


class Match(NamedTuple):
    """A match of one rule, and where it stands."""

    name: str
    weight: float
    role: Role
    start: int
    end: int


class Group(NamedTuple):
    """Matches that stand near each other, and how much they weigh together; 1 is enough."""

    weight: float
    matches: tuple[Match, ...]


def heaviest(matches: Sequence[Match]) -> Group:
    """Return the matches near each other that weigh most."""
    return max(groups(matches), key=lambda group: group.weight, default=Group(0.0, ()))


def groups(matches: Sequence[Match]) -> list[Group]:
    """Return what the matches near each other weigh, for the first of them and then for those that begin some way behind it."""
    ordered = sorted(matches, key=lambda match: match.start)
    made: list[Group] = []
    until, last = 0, -_STEP
    for place, first in enumerate(ordered):
        if first.start < last + _STEP:
            continue
        last = first.start
        while until < len(ordered) and ordered[until].start <= first.start + NEAR:
            until += 1
        made.append(weighed(ordered[place:until]))
    return made


def weighed(matches: Sequence[Match]) -> Group:
    """Return matches with what they weigh: each rule once, and who is addressed counts in full only with what follows."""
    by_name: dict[str, Match] = {}
    for match in matches:
        if match.name not in by_name or by_name[match.name].weight < match.weight:
            by_name[match.name] = match
    kinds: dict[Role, list[float]] = {"sign": [], "addressed": [], "follows": []}
    for match in by_name.values():
        kinds[match.role].append(match.weight)
    addressed, follows = max(kinds["addressed"], default=0.0), min(_MOST_FOLLOWS, sum(kinds["follows"]))
    together = addressed + follows if addressed and follows else _ALONE * (addressed + follows)
    return Group(sum(kinds["sign"]) + together, tuple(by_name.values()))


REPLACED, REVEALED, ADDRESSED, AGAINST = 1.0, 1.0, 0.6, 1.0
_ORDERED, _SILENCED, _MENTIONED = 0.6, 0.9, 0.3
_NEAR = 100
"""Characters on either side of a verb in which the other words of its sentence are looked for."""
_BESIDE = 16
"""Characters on either side of a verb in which a word that turns it round is looked for."""
_TOWARDS, _AWAY, _FOLLOWS = 40, 60, 300
"""Characters before and after the name of a program in which a word shows that it is spoken to, and in which stands what it is told."""
_MOST_MATCHES, _AT_ONCE = 64, 3
"""How many matches of a line are looked at, and how many languages in one go."""
_COLON = re.compile(r"[^.!?。！？\n]{0,16}?[:：]|,")
_END = re.compile(r"[.!?]\s|[。！？।؟]")
_NEVER = re.compile(r"(?!)")


class _Line(NamedTuple):
    """Words of one line of a row. `hints`: no text has any of the words that has none of these, which is quicker to see."""

    pattern: re.Pattern[str]
    hints: tuple[str, ...]

    def may_be_in(self, text: _Text) -> bool:
        return any(hint in text.lower for hint in self.hints if not text.ascii or hint.isascii())

    def is_in(self, sentence: str) -> bool:
        return self.pattern.search(sentence) is not None


class _Text(NamedTuple):
    flat: str
    lower: str
    ascii: bool


class _LanguagePatterns(NamedTuple):
    name: str
    spaced: bool
    replace: _Line
    unless: _Line
    earlier: _Line
    rules: _Line
    told: _Line
    reveal: _Line
    secret: _Line
    address: _Line
    addressed: float


class _AddressedPatterns(NamedTuple):
    name: str
    verb_last: bool
    machine: _Line
    before: _Line
    after: _Line
    order: _Line
    silence: _Line
    user: _Line
    replace: _Line
    unless: _Line


def foreign_matches(flat: str, starts: frozenset[int] = frozenset(), *, trusted: bool) -> Iterator[Match | None]:
    """Yield the attempts in a text whose white space is single spaces, or None if other calls may have their turn.

    `starts` are the places where its lines began.
    Of a trusted text only those to replace the rules count.
    """
    text = _Text(flat, flat.lower(), flat.isascii())
    for place, words in enumerate(_languages()):
        if place % _AT_ONCE == 0:
            yield None
        if words.replace.may_be_in(text) and (words.rules.may_be_in(text) or words.told.may_be_in(text)):
            for verb, near, begin in _sentences(words.replace, flat):
                if _replaces(near, verb, words):
                    yield Match(f"replace_rules:{words.name}", REPLACED, "sign", begin, begin + len(near))
        if not trusted and words.secret.may_be_in(text) and words.reveal.may_be_in(text):
            for _, near, begin in _sentences(words.reveal, flat):
                if words.secret.is_in(near):
                    yield Match(f"prompt_theft:{words.name}", REVEALED, "sign", begin, begin + len(near))
        if not trusted and words.address.may_be_in(text):
            for match in _few(words.address, flat):
                yield Match(f"to_the_assistant:{words.name}", words.addressed, "addressed", *match.span())
    if not trusted:
        for place, row in enumerate(_addressed()):
            if place % _AT_ONCE == 0:
                yield None
            yield from _addressed_orders(row, text, starts)


def _addressed_orders(words: _AddressedPatterns, text: _Text, starts: frozenset[int]) -> Iterator[Match]:
    """Yield the matches in one language: a program is addressed, gets an order, or something is kept from the user."""
    flat = text.flat
    if words.machine.may_be_in(text):
        for match in _few(words.machine, flat):
            start, end = match.span()
            if _is_spoken_to(words, flat, start, end, starts):
                yield Match(f"to_the_assistant:{words.name}", ADDRESSED, "addressed", start, end)
                order = words.order.pattern.search(flat, end, end + _FOLLOWS)
                if order is not None:
                    yield Match(f"order:{words.name}", _ORDERED, "follows", start, order.end())
    if not words.user.may_be_in(text):
        return
    for match in _few(words.silence, flat):
        yield Match(f"silence:{words.name}", _SILENCED, "sign", *match.span())
    for verb, near, begin in _sentences(words.replace, flat):
        around = near[max(0, verb[0] - _BESIDE) : verb[0]] + " \x00 " + near[verb[1] : verb[1] + _BESIDE]
        beside = near[: verb[0]] if words.verb_last else near[verb[1] : verb[1] + _AWAY]
        if words.user.is_in(beside) and not words.unless.is_in(around):
            yield Match(f"against_the_user:{words.name}", AGAINST, "sign", begin, begin + len(near))
    orders = [match.span() for match in _few(words.order, flat)] if words.user.may_be_in(text) else []
    for start, end in orders:
        if words.user.pattern.search(flat, max(0, start - _FOLLOWS), end + _FOLLOWS) is not None:
            yield Match(f"order:{words.name}", _ORDERED, "follows", start, end)


def _is_spoken_to(words: _AddressedPatterns, flat: str, start: int, end: int, starts: frozenset[int]) -> bool:
    """Whether the name of a program stands where somebody speaks to it, not of it."""
    near = flat[max(0, start - _TOWARDS) : start]
    for stop in _END.finditer(near):
        near = " " * stop.end() + near[stop.end() :]
    if words.before.is_in(near):
        return True
    begins = start in starts or not near.strip() or near.rstrip()[-1:] in "([\"'-*#>:"
    if begins and _COLON.match(flat, end) is not None:
        return True
    behind = flat[end : end + _AWAY]
    ending = _END.search(behind)
    return words.after.is_in(behind if ending is None else behind[: ending.start()])


def _few(line: _Line, flat: str) -> Iterator[re.Match[str]]:
    """Yield the first matches of a line in a text."""
    return islice(line.pattern.finditer(flat), _MOST_MATCHES)


def _sentences(verbs: _Line, flat: str) -> Iterator[tuple[tuple[int, int], str, int]]:
    """Yield for each verb where it stands in its sentence, the sentence, cut where it is long, and where that begins."""
    for verb in verbs.pattern.finditer(flat):
        begin = max(0, verb.start() - _NEAR)
        for end in _END.finditer(flat, begin, verb.start()):
            begin = end.end()
        stop = _END.search(flat, verb.end(), verb.end() + _NEAR)
        until = verb.end() + _NEAR if stop is None else stop.start()
        yield (verb.start() - begin, verb.end() - begin), flat[begin:until], begin


def _replaces(sentence: str, verb: tuple[int, int], words: _LanguagePatterns) -> bool:
    start, end = verb
    around = sentence[max(0, start - _BESIDE) : start] + " \x00 " + sentence[end : end + _BESIDE]
    # Without spaces between words, what turns a verb round is a part of it: 無視しないで.
    if words.unless.is_in(around) or (not words.spaced and words.unless.is_in(sentence[max(0, start - 4) : end + 8])):
        return False
    rest = sentence[:start] + " \x00 " + sentence[end:]
    return words.told.is_in(rest) or (words.earlier.is_in(rest) and words.rules.is_in(rest))


@cache
def _addressed() -> tuple[_AddressedPatterns, ...]:
    rules = {row.name: row for row in _languages()}
    return tuple(
        _AddressedPatterns(
            name=row.name,
            verb_last=row.verb_last,
            machine=_line(row.machine, spaced=row.spaced),
            before=_line(row.before, spaced=row.spaced),
            after=_line(row.after, spaced=row.spaced),
            order=_line(row.order, spaced=row.spaced),
            silence=_line(row.silence, spaced=row.spaced),
            user=_line(row.user, spaced=row.spaced),
            replace=rules[row.name].replace,
            unless=rules[row.name].unless,
        )
        for row in injection_rows().addressed
    )


@cache
def _languages() -> tuple[_LanguagePatterns, ...]:
    return tuple(_read(row) for row in injection_rows().languages)


def _read(row: LanguageRow) -> _LanguagePatterns:
    return _LanguagePatterns(
        name=row.name,
        spaced=row.spaced,
        replace=_line(row.replace, spaced=row.spaced),
        unless=_line(row.unless, spaced=row.spaced),
        earlier=_line(row.earlier, spaced=row.spaced),
        rules=_line(row.rules, spaced=row.spaced),
        told=_line(row.told, spaced=row.spaced),
        reveal=_line(row.reveal, spaced=row.spaced),
        secret=_line(row.secret, spaced=row.spaced),
        address=_line(row.address, spaced=row.spaced),
        # Where a row of its own says how a program is spoken to, its name alone says little.
        addressed=_MENTIONED if any(entry.name == row.name for entry in injection_rows().addressed) else ADDRESSED,
    )


def _line(line: str, *, spaced: bool) -> _Line:
    words = [word.replace("_", " ") for word in unicodedata.normalize("NFKC", line).split()]
    if not words:
        return _Line(_NEVER, ())
    parts = [re.escape(word).replace(r"\*", r"\w*" if spaced else "") for word in words]
    joined = "|".join(sorted(parts, key=len, reverse=True))
    pattern = re.compile(rf"(?<!\w)(?:{joined})(?!\w)" if spaced else joined, re.IGNORECASE)
    return _Line(pattern, tuple(dict.fromkeys(word.partition("*")[0].lower() for word in words)))
