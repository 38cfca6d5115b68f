"""How far a reply has come of which the model has said nothing yet.

Servers send heads, roles, empty pieces and pings long before a model begins. Until it does, another provider can still answer.
"""

from __future__ import annotations

from collections.abc import Sequence

from bardo.values.events import (
    BlockFields,
    ContentChunk,
    Degraded,
    EmptyThought,
    Event,
    Failed,
    Finish,
    OpaqueState,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    ToolCallChunk,
    UsageUpdate,
    WithheldThought,
)

_NO_CONTENT = frozenset({ReplyStart, ReplyFields, UsageUpdate, Degraded})
_NO_TOKEN = frozenset({ThinkStart, ThinkEnd, EmptyThought, WithheldThought, BlockFields, Failed})


class ReplyBeginning:
    """The beginning of one reply.

    `begun`: a first event came; comments, pings and empty lines are none. `has_content`: more came than the ends of an empty reply.
    `has_token`: the model has said something, or the reply is over.
    """

    __slots__ = ("begun", "has_content", "has_token")

    def __init__(self) -> None:
        self.begun = self.has_content = self.has_token = False

    def note(self, events: Sequence[Event]) -> None:
        """Take the events of a frame, as they were decoded: there is at least one."""
        self.begun = True
        self.has_content = self.has_content or any(map(is_content, events))
        self.has_token = self.has_token or any(map(is_token, events))

    def note_whole(self) -> None:
        """Take a whole reply that is nothing but text."""
        self.begun = self.has_content = self.has_token = True


def is_content(event: Event) -> bool:
    """Whether an event is more than the beginning and end of a reply without content."""
    if type(event) is Finish:
        # A word that is new is one; what stands there instead of a word is none.
        return event.reason != "unknown" or event.raw.isidentifier()
    return type(event) not in _NO_CONTENT


def is_token(event: Event) -> bool:
    """Whether an event shows that the model has begun to answer, or has ended.

    A block without text is none, and neither is the id of one: servers announce blocks before the model has made anything.
    """
    if type(event) in _NO_CONTENT:
        return False
    if isinstance(event, ContentChunk | ThinkChunk | RefusalChunk):
        return bool(event.text)
    if isinstance(event, ToolCallChunk):
        return bool(event.arguments)
    if isinstance(event, OpaqueState):
        return event.opaque.kind != "id"
    if isinstance(event, Finish) and event.reason == "error":
        return False
    return type(event) not in _NO_TOKEN and is_content(event)
