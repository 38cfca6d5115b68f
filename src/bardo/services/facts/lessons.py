"""The lessons of refusals, each for one caller: where it holds, until when, and in which words the provider said it.

A lesson is kept once the same request was answered without what was refused, holds for an hour, and for twice as long each time that the
same is proved after its end, up to a day. Any answer to a request that has what was refused ends it. Time is that of `clock`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import NamedTuple

import msgspec

from bardo.planning.attempt import Attempt
from bardo.planning.knowledge import (
    Lesson,
    MissingEndpoint,
    PlaceName,
    RefusedForm,
    RefusedThinking,
    RejectedField,
    place_name,
)
from bardo.planning.refusals import has_field

FIRST_SECONDS = 3600.0
MOST_SECONDS = 86_400.0
_MOST_KEPT = 4096
_MOST_AT_ONE_PLACE = 256
"""Clients choose the names of models and fields, so the memory may not grow with them."""


class KnownLesson(msgspec.Struct, frozen=True, kw_only=True):
    """A lesson that holds. `id` names it, `kind` and `what` name the field left out or changed, `shape` its requests of `caller`.

    `since` and `until` are Unix time. `proofs` is how often it was proved, `words` are the provider's.
    """

    id: str
    kind: str
    what: str
    provider: str
    dialect: str
    model: str
    shape: str
    caller: str
    since: float
    until: float
    proofs: int
    words: str


class _Place(NamedTuple):
    """Where one lesson is kept."""

    at: PlaceName
    caller: str
    shape: str
    what: str


class _Kept(NamedTuple):
    lesson: Lesson
    since: float
    until: float
    proofs: int


class Lessons:
    """The lessons of this process."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self.kept: dict[_Place, _Kept] = {}
        """What holds, by what it is about."""
        self._at: dict[PlaceName, dict[_Place, None]] = {}

    def note_answered(self, attempt: Attempt, caller: str, shape: Callable[[], str]) -> None:
        """Take that an attempt was answered: what it proves is kept, and what it disproves is forgotten. `shape` is of its request."""
        if self.kept:
            self._forget_disproved(attempt)
        for lesson in attempt.teaches:
            self._learn(lesson, caller, "" if isinstance(lesson, MissingEndpoint) else shape())

    def in_force(self, places: Sequence[PlaceName], caller: str, shape: Callable[[], str]) -> tuple[Lesson, ...]:
        """Return what holds for a request of such a shape at some places."""
        with_lessons = [place for at in places for place in (at, _endpoint(at)) if place in self._at]
        if not with_lessons:
            return ()
        now, asked = self._clock(), ("", shape())
        return tuple(
            self.kept[key].lesson
            for place in dict.fromkeys(with_lessons)
            for key in self._at[place]
            if key.caller == caller and key.shape in asked and self.kept[key].since <= now < self.kept[key].until
        )

    def all(self) -> list[KnownLesson]:
        """Return all lessons that hold, the newest first."""
        now = self._clock()
        lessons = [_known(key, lesson) for key, lesson in self.kept.items() if lesson.since <= now < lesson.until]
        return sorted(lessons, key=lambda lesson: -lesson.since)

    def forget(self, name: str = "") -> int:
        """Forget the lesson of this id, all of them where it is empty; return how many that were."""
        keys = [key for key in self.kept if not name or _id(key) == name]
        for key in keys:
            self._remove(key)
        return len(keys)

    def _learn(self, lesson: Lesson, caller: str, shape: str) -> None:
        now = self._clock()
        at = place_name(lesson.target)
        key = _Place(_endpoint(at) if isinstance(lesson, MissingEndpoint) else at, caller, shape, what_of(lesson))
        before = self.kept.get(key)
        proofs = 1
        if before is not None:
            lasts = before.since <= now < before.until
            # Calls that were under way together prove one thing once.
            proofs = before.proofs if lasts else before.proofs + 1
            proofs = proofs if now - before.until < MOST_SECONDS else 1
            self._remove(key)
        seconds = min(FIRST_SECONDS * 2.0 ** min(proofs - 1, 10), MOST_SECONDS)
        self.kept[key] = _Kept(lesson, now, now + seconds, proofs)
        here = self._at.setdefault(key.at, {})
        here[key] = None
        if len(here) > _MOST_AT_ONE_PLACE:
            self._remove(next(iter(here)))
        if len(self.kept) > _MOST_KEPT:
            self._remove(next(iter(self.kept)))

    def _forget_disproved(self, attempt: Attempt) -> None:
        at = place_name(attempt.target)
        for key in [key for place in (at, _endpoint(at)) for key in self._at.get(place, ())]:
            if _disproves(attempt, self.kept[key].lesson):
                self._remove(key)

    def _remove(self, key: _Place) -> None:
        del self.kept[key]
        here = self._at[key.at]
        del here[key]
        if not here:
            del self._at[key.at]


def what_of(lesson: Lesson) -> str:
    """Return what a lesson is about, in a word."""
    match lesson:
        case RejectedField():
            return lesson.field.path
        case RefusedThinking():
            return f"thinking {lesson.emitted}"
        case RefusedForm():
            return f"answers by {lesson.form}"
        case MissingEndpoint():
            return f"endpoint {lesson.target.provider.row.dialect}"


def _disproves(attempt: Attempt, lesson: Lesson) -> bool:
    """Whether an attempt that was answered has what the lesson says is refused."""
    match lesson:
        case RejectedField():
            return has_field(attempt.wire.body, lesson.field.path)
        case RefusedThinking():
            return attempt.control is not None and attempt.control.emitted == lesson.emitted
        case RefusedForm():
            return attempt.answer is not None and attempt.answer.plan.form == lesson.form
        case MissingEndpoint():
            return True


def _endpoint(place: PlaceName) -> PlaceName:
    return place[0], place[1], ""


_KINDS: dict[type[Lesson], str] = {
    RejectedField: "field",
    RefusedThinking: "thinking",
    RefusedForm: "schema",
    MissingEndpoint: "endpoint",
}


def _known(key: _Place, entry: _Kept) -> KnownLesson:
    lesson = entry.lesson
    what = key.what
    if isinstance(lesson, RejectedField) and lesson.field.instead:
        what = f"{what}, sent as {lesson.field.instead}"
    return KnownLesson(
        id=_id(key),
        kind=_KINDS[type(lesson)],
        what=what,
        provider=key.at[0],
        dialect=key.at[1],
        model=key.at[2],
        shape=key.shape,
        caller=key.caller,
        since=entry.since,
        until=entry.until,
        proofs=entry.proofs,
        words=lesson.words,
    )


def _id(key: _Place) -> str:
    return blake2b(repr(key).encode(), digest_size=6).hexdigest()
