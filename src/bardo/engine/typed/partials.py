"""A typed answer while it arrives: which part of the text is its JSON, and what is complete of it, in the caller's own form.

Where the model answers in another form than the caller gets, each partial object is brought into it; that costs as much as the object is
large, so it is done at growing distances: all of it together stays linear.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from copy import deepcopy

from bardo.engine.typed.plan import AnswerPlan
from bardo.structured import Json, PartialJson
from bardo.structured.coercion import accepted_types
from bardo.values.events import Partial

_SHARE = 8
_MARK = re.compile(r'["{}\[\]]')
_IN_STRING = re.compile(r'["\\]')


class Partials:
    """Gives a Partial whenever the answer grew. `last` is what was given of an earlier try: only what adds to it is given after it."""

    def __init__(self, answer: AnswerPlan, *, last: Json = None) -> None:
        self._plan = answer.plan
        self._read_by = answer.read_by
        self._schema = answer.judge.schema
        self._reader = PartialJson(answer.read_by.schema, only_conforming=True)
        self._size = 0
        self._due = 0
        self._waiting = False
        self.last = last
        self._plainly = not answer.plan.changes_answers and last is None

    def feed(self, text: str) -> Sequence[Partial]:
        """Take text of the answer."""
        self._size += len(text)
        if self._plainly:
            found = self._reader.feed(text)
            self.last = found[-1] if found else self.last
            return [Partial(value, self._size) for value in found]
        if self._reader.done:
            return ()
        self._waiting |= self._reader.grow(text) or self._reader.done
        if not self._waiting or (self._size < self._due and not self._reader.done):
            return ()
        self._waiting = False
        self._due = self._size + self._size // _SHARE
        return self._restored()

    def _restored(self) -> Sequence[Partial]:
        if not self._read_by.is_quick(self._reader.value):
            # Copied, and judged by the forms of its schema, it would keep all others waiting: only the whole answer is given.
            return ()
        try:
            value = self._plan.restore(complete(deepcopy(self._reader.value), self._reader.open_path))
        except (ValueError, TypeError, KeyError, IndexError, AttributeError):
            return ()  # An incomplete value may not have its other form yet.
        if value == self.last or not grown(self.last, value) or not self._fits(value):
            return ()
        self.last = value
        return (Partial(value, self._size),)

    def _fits(self, value: Json) -> bool:
        """Whether a value is of the kind the caller gets in the end."""
        kinds = accepted_types(self._schema, self._schema)
        return ("object" if isinstance(value, dict) else "array" if isinstance(value, list) else "") in kinds


def complete(value: Json, open_path: Sequence[str | int]) -> Json:
    """Return a growing value without the object that is still open in an array: it may be an entry, which is nothing by halves."""
    place = value
    for step in open_path:
        if isinstance(place, list) and isinstance(step, int) and step < len(place):
            if isinstance(place[step], dict):
                del place[step:]
                break
        elif not (isinstance(place, dict) and step in place):
            break
        place = place[step]
    return value


def grown(before: Json, after: Json) -> bool:
    """Whether `after` only adds to `before`: members, items, and text at the end of texts."""
    if before is None:
        return True
    if isinstance(before, dict):
        return isinstance(after, dict) and all(
            key in after and grown(inner, after[key]) for key, inner in before.items()
        )
    if isinstance(before, list):
        longer = isinstance(after, list) and len(after) >= len(before)
        return longer and all(grown(one, other) for one, other in zip(before, after, strict=False))
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    return type(before) is type(after) and bool(before == after)


class JsonGate:
    """Lets text pass that begins as JSON does, to the end of that value. `closed`: nothing passes any more.

    Text that begins in another way, as a code fence does, does not pass: what its answer is shows at its end. Whether the text is sound
    JSON is not looked at.
    """

    def __init__(self) -> None:
        self.closed = False
        self.begun = False
        self._before = ""
        self._depth = 0
        self._in_string = False
        self._escaped = False

    def feed(self, text: str) -> tuple[str, str]:
        """Return what passes of a text, and what does not. Space before the first bracket waits for it."""
        if self.closed:
            return "", text
        if not self.begun:
            text = self._before + text
            begin = text.lstrip()[:1]
            if not begin:
                self._before = text
                return "", ""
            self._before = ""
            self.begun = begin in "{["
            self.closed = not self.begun
            if self.closed:
                return "", text
        end = self._end(text)
        self.closed = end is not None
        return (text, "") if end is None else (text[:end], text[end:])

    def _end(self, text: str) -> int | None:
        """Return where the value ends in this piece; None where it goes on."""
        at = 1 if self._escaped else 0
        self._escaped = False
        while True:
            found = (_IN_STRING if self._in_string else _MARK).search(text, at)
            if found is None:
                return None
            at = found.end()
            mark = found.group()
            if mark == "\\":
                self._escaped = at == len(text)
                at += 1
            elif mark == '"':
                self._in_string = not self._in_string
            elif mark in "{[":
                self._depth += 1
            else:
                self._depth -= 1
                if self._depth == 0:
                    return at
