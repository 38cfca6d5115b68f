"""Stages of a reply between its decoder and its client: what is left out, and what is filled in."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.values.events import (
    Event,
    OpaqueState,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    WithheldThought,
)
from bardo.values.fold import ResponseFold

_LONGEST_NAME = 500


class Collecting:
    """Collects all that passes, before some of it is left out."""

    def __init__(self, fold: ResponseFold) -> None:
        self._fold = fold

    def feed(self, item: Event) -> Sequence[Event]:
        self._fold.feed(item)
        return (item,)

    def finish(self) -> Sequence[Event]:
        return ()


class WithoutReasoning:
    """Leaves all thinking out, its opaque state included, and says once for each choice that there was some to read."""

    def __init__(self) -> None:
        self._thinking: set[tuple[int, int]] = set()
        self._readable: set[int] = set()

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on what is not thinking."""
        match item:
            case ThinkStart(block=block, choice=choice):
                self._thinking.add((choice, block))
                return ()
            case ThinkChunk(text=text, choice=choice):
                return self._withheld(text, choice)
            case ThinkEnd():
                return ()
            case OpaqueState(block=block, choice=choice) if (choice, block) in self._thinking:
                return ()
            case _:
                return (item,)

    def _withheld(self, text: str, choice: int) -> Sequence[Event]:
        if choice in self._readable or not text.strip():
            return ()
        self._readable.add(choice)
        return (WithheldThought(choice),)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


class Stamped:
    """Fills in the id, the model and the time that a provider left out, before any block of the reply.

    A start without an id waits for the next, which may bring it: a client that was told one id is not told another.
    """

    def __init__(self, stamp: ReplyStart) -> None:
        self._stamp = stamp
        self._begun = False

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, after a complete ReplyStart."""
        if type(item) is ReplyStart:
            return self._start(item)
        if self._begun or (type(item) is ReplyFields and item.choice is None):
            return (item,)
        return (*self.finish(), item)

    def finish(self) -> Sequence[Event]:
        """Give a start that waited in vain."""
        if self._begun:
            return ()
        self._begun = True
        return (self._stamp,)

    def _start(self, item: ReplyStart) -> Sequence[Event]:
        self._stamp = ReplyStart(
            # Both stand in every frame of some dialects.
            id=item.id[:_LONGEST_NAME] or self._stamp.id,
            model=item.model[:_LONGEST_NAME] or self._stamp.model,
            created=item.created if item.created is not None else self._stamp.created,
        )
        if not item.id and not self._begun:
            return ()
        self._begun = True
        return (self._stamp,)
