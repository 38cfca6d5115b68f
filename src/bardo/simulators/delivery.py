"""Turn a reply and a fault into the actions on the connection.

Pure: the socket loop (`wire.py`) performs the actions, so every fault can be read and tested without a socket.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from bardo.simulators.exchange import Reply
from bardo.simulators.faults import Fault
from bardo.simulators.gates import Gate

_PIECE = 64 * 1024
_PAGE = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body>Bad Gateway</body></html>\n"


@dataclass(frozen=True, slots=True)
class Head:
    """Send the status and headers. Without a length the body is sent in chunks."""

    status: int
    headers: tuple[tuple[str, str], ...]
    length: int | None


@dataclass(frozen=True, slots=True)
class Send:
    """Send some bytes of the body."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds, or until the client disconnects."""

    seconds: float


@dataclass(frozen=True, slots=True)
class AwaitDisconnect:
    """Send nothing more until the client disconnects."""


@dataclass(frozen=True, slots=True)
class Await:
    """Wait until the gate is open, or until the client disconnects."""

    gate: Gate


@dataclass(frozen=True, slots=True)
class End:
    """End the reply properly; the connection may serve another request."""


@dataclass(frozen=True, slots=True)
class Leave:
    """Close the connection with the reply unfinished; `reset` does it by a TCP reset."""

    reset: bool = False


Action: TypeAlias = Head | Send | Pause | AwaitDisconnect | Await | End | Leave


@dataclass(frozen=True, slots=True)
class ErrorForms:
    """How one provider words an error: as a reply of some status, and inside a stream that began well.

    `alive` is what it sends while a model has not begun; nothing where it sends nothing.
    """

    reply: Callable[[int], Reply]
    events: Callable[[], Sequence[bytes]]
    alive: bytes = b""


def deliver(reply: Reply, fault: Fault | None, troubles: ErrorForms, *, pace: float = 0.0) -> Iterator[Action]:
    """Return the actions that send `reply` as `fault` has it; `pace` is the seconds between events of a good stream."""
    if fault is None:
        return _good(reply, pace)
    match fault.kind:
        case "status":
            return _good(_with_retry(troubles.reply(fault.status), fault), 0.0)
        case "content-type":
            return _good(replace(reply, content_type="text/html", frames=(_PAGE,), streamed=False), 0.0)
        case "lying":
            return _good(replace(reply, frames=(_PAGE,), streamed=False), 0.0)
        case "disconnect" | "refused":
            return iter([Leave()])
        case "reset":
            return iter([Leave(reset=True)])
        case "slow":
            return _good(reply, fault.delay)
        case "drip":
            return _drip(reply, fault)
        case "oversized":
            return _oversized(reply, fault)
        case "malformed":
            # Break the JSON of the first event with data from `after` on, or of the whole body.
            frames = list(reply.frames)
            first = min(fault.after, len(frames) - 1) if reply.streamed else 0
            place = next((index for index in range(first, len(frames)) if _json_end(frames[index])), first)
            end = _json_end(frames[place]) or len(frames[place])
            frames[place] = frames[place][: end - 1] + frames[place][end:]
            return _good(replace(reply, frames=tuple(frames)), 0.0)
        case "error-event":
            if not reply.streamed:
                return _good(troubles.reply(500), 0.0)
            return _good(replace(reply, frames=(*reply.frames[: fault.after], *troubles.events())), 0.0)
        case "error-body":
            return _good(replace(troubles.reply(fault.status), status=200), 0.0)
        case "keep-alive":
            return _keep_alive(reply, fault, troubles)
        case "stall" | "cut" | "early-end":
            return _broken_off(reply, fault)


def wait_at_gate(actions: Iterator[Action], gate: Gate) -> Iterator[Action]:
    """Insert a gate into the actions of a reply."""
    sent = 0
    for index, action in enumerate(actions):
        streams = isinstance(action, Head) and action.length is None
        if index == 0 and (gate.after == 0 or not streams):
            yield Await(gate)
        yield action
        sent += isinstance(action, Send)
        if isinstance(action, Send) and sent == gate.after:
            yield Await(gate)


def _head(reply: Reply, length: int | None) -> Head:
    return Head(reply.status, (("content-type", reply.content_type), *reply.headers), length)


def _good(reply: Reply, delay: float) -> Iterator[Action]:
    yield _head(reply, None if reply.streamed else len(reply.body))
    for frame in reply.frames:
        if delay > 0:
            yield Pause(delay)
        yield Send(frame)
    yield End()


def _with_retry(reply: Reply, fault: Fault) -> Reply:
    if fault.retry_after is None:
        return reply
    return replace(reply, headers=(*reply.headers, ("retry-after", f"{fault.retry_after:g}")))


def _drip(reply: Reply, fault: Fault) -> Iterator[Action]:
    yield _head(reply, None if reply.streamed else len(reply.body))
    body, size = reply.body, max(1, fault.size)
    for start in range(0, len(body), size):
        yield Send(body[start : start + size])
    yield End()


def _oversized(reply: Reply, fault: Fault) -> Iterator[Action]:
    """One event, or the body, grows to `size`: valid JSON which only a limit stops."""
    events = reply.streamed and reply.content_type.startswith("text/event-stream")
    opening, closing = (b'data: {"padding":"', b'"}\n\n') if events else (b'{"padding":"', b'"}\n')
    yield _head(reply, None if reply.streamed else len(opening) + fault.size + len(closing))
    for frame in reply.frames[: fault.after] if reply.streamed else ():
        yield Send(frame)
    yield Send(opening)
    for start in range(0, fault.size, _PIECE):
        yield Send(b"x" * min(_PIECE, fault.size - start))
    yield Send(closing)
    for frame in reply.frames[fault.after :] if reply.streamed else ():
        yield Send(frame)
    yield End()


def _json_end(frame: bytes) -> int:
    """Return where the frame's JSON ends, or 0 where it holds none (a comment, `[DONE]`)."""
    return frame.rfind(b"}") + 1


def _keep_alive(reply: Reply, fault: Fault, troubles: ErrorForms) -> Iterator[Action]:
    """Send keep-alives for ever after some events; before a whole reply they are blanks, which JSON allows."""
    yield _head(reply, None)
    for frame in reply.frames[: fault.after] if reply.streamed else ():
        yield Send(frame)
    sign = troubles.alive if reply.streamed else b" "
    if not sign:
        yield AwaitDisconnect()
    while True:
        yield Pause(fault.delay)
        yield Send(sign)


def _broken_off(reply: Reply, fault: Fault) -> Iterator[Action]:
    """Stop after some events; a whole reply stops half-way through its body."""
    sent, next_frame = _divided(reply, fault.after)
    early_end = fault.kind == "early-end"
    yield _head(reply, None if reply.streamed else len(sent[0]) if early_end else len(reply.body))
    for frame in sent:
        yield Send(frame)
    if fault.kind == "cut" and next_frame:
        yield Send(next_frame[: max(1, len(next_frame) // 2)])
    if fault.kind == "early-end":
        yield End()
    else:
        yield Leave() if fault.kind == "cut" else AwaitDisconnect()


def _divided(reply: Reply, after: int) -> tuple[tuple[bytes, ...], bytes]:
    if not reply.streamed:
        body = reply.body
        return (body[: len(body) // 2],), b""
    after = min(after, len(reply.frames) - 1)
    return reply.frames[:after], reply.frames[after]
