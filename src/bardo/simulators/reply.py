"""What a provider answers: a status, headers, and the body as the events it is sent in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from bardo.simulators.fields import compact

JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply has one frame and a known length; a streamed one has many."""

    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    frames: tuple[bytes, ...] = ()
    streamed: bool = False

    @property
    def body(self) -> bytes:
        """All bytes of the reply."""
        return b"".join(self.frames)


def whole(body: bytes, *, status: int = 200, content_type: str = JSON) -> Reply:
    """Return a reply that is sent at once."""
    return Reply(status=status, content_type=content_type, frames=(body,))


def streamed(frames: Iterable[bytes], *, content_type: str = EVENT_STREAM) -> Reply:
    """Return a reply that is sent event by event."""
    return Reply(content_type=content_type, frames=tuple(frames), streamed=True)


def data_event(value: object) -> bytes:
    """Write an event that has only data."""
    return b"data: " + compact(value) + b"\n\n"


def named_event(name: str, value: object) -> bytes:
    """Write an event with its name."""
    return f"event: {name}\n".encode() + data_event(value)
