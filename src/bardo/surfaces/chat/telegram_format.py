"""What Telegram is sent: text and entities, which are ranges of it with a form. Thinking is not shown.

Entities instead of HTML or MarkdownV2: what a model wrote is never read as markup by Telegram, so that nothing has to be escaped, no
message is refused because its markup is broken, and a range that crosses two messages is cut in two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from bardo.surfaces.chat.inline_runs import Form, TextRun
from bardo.surfaces.chat.markdown_runs import runs_of
from bardo.surfaces.chat.text import cleaned, cut_place, is_blank, utf16_length

LIMIT = 4096
"""UTF-16 units of a message, without markup."""
MOST_ENTITIES = 100
"""Telegram leaves out the forms of further ones."""
_WORD_JOINER = "\u2060"
# Users, and commands of another bot.
_MENTION = re.compile(r"(?<![\w.@])@(?=[A-Za-z0-9_])|(?<![\w/<>.])/(?=[A-Za-z0-9_]{1,64}@)")


class Entity(msgspec.Struct, frozen=True):
    """A range of a message with a form, by Telegram's name of it. `offset` and `length` are in UTF-16 units."""

    kind: str
    offset: int
    length: int
    url: str = ""
    language: str = ""


class TelegramPart(msgspec.Struct, frozen=True):
    """One message."""

    text: str
    entities: tuple[Entity, ...] = ()


class _Range(msgspec.Struct, frozen=True):
    """A range of the whole text with a form, in characters."""

    form: Form
    start: int
    end: int


def telegram_messages(markdown: str) -> list[TelegramPart]:
    """Return the messages that show an answer; none where it shows nothing."""
    runs = [_without_mentions(run) for run in runs_of(cleaned(markdown))]
    text = "".join(run.text for run in runs)
    return [part for part in _cut(text, list(_ranges(runs))) if not is_blank(part.text)]


def plain_message(text: str) -> TelegramPart:
    """Return a message without forms, such as a notice of bardo's own, cut where it is too long."""
    whole = _MENTION.sub(rf"\g<0>{_WORD_JOINER}", cleaned(text))
    return TelegramPart(whole[: cut_place(whole, 0, LIMIT)])


def _without_mentions(run: TextRun) -> TextRun:
    """Return a run in which Telegram finds no mention; in code it looks for none. What Markdown wrote as a number is cleaned too."""
    text = cleaned(run.text)
    return TextRun(text if run.is_code else _MENTION.sub(rf"\g<0>{_WORD_JOINER}", text), run.forms)


def _ranges(runs: Sequence[TextRun]) -> Iterator[_Range]:
    """Yield the ranges of each form, those of neighbours joined, by their beginnings."""
    began: dict[Form, int] = {}
    place = 0
    found: list[_Range] = []
    for run in [*runs, TextRun("")]:
        for form in [form for form in began if form not in run.forms]:
            found.append(_Range(form, began.pop(form), place))
        for form in run.forms:
            began.setdefault(form, place)
        place += len(run.text)
    yield from sorted((one for one in found if one.end > one.start), key=lambda one: (one.start, -one.end))


def _cut(text: str, ranges: Sequence[_Range]) -> Iterator[TelegramPart]:
    """Yield the messages of a text. `ranges` are in the order of their beginnings; each message looks at those that it touches."""
    start = first = 0
    while start < len(text):
        end = cut_place(text, start, LIMIT)
        touched: list[_Range] = []
        for one in ranges[first:]:
            if one.start >= end:
                break
            if one.end > start:
                if len(touched) == MOST_ENTITIES and one.start > start:
                    end = one.start
                    break
                touched.append(one)
        yield TelegramPart(text[start:end], tuple(_entities(text, start, end, touched[:MOST_ENTITIES])))
        while first < len(ranges) and ranges[first].end <= end:
            first += 1
        start = end


def _entities(text: str, start: int, end: int, ranges: Sequence[_Range]) -> Iterator[Entity]:
    """Yield the entities of one message. Their beginnings only grow, so that the text is measured once up to each."""
    measured, units = start, 0
    for one in ranges:
        begin, finish = max(one.start, start), min(one.end, end)
        units += utf16_length(text[measured:begin])
        measured = begin
        length = utf16_length(text[begin:finish])
        if length:
            yield Entity(one.form.kind, units, length, one.form.url, one.form.language)
