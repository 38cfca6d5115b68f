"""The frames of a reply as any client can read them, and what is read of them without a provider's key.

Strict readers must be able to read each frame: bardo reads over lone surrogates, control characters in strings, NaN, and bytes that are no
UTF-8, and a frame that holds them is written anew, which its client is told. A provider's key is taken out of what it says beside the
answer: warnings, finish words, fields that bardo passes on. What the model wrote is never changed: an answer may be about a key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bardo.dialects.shared.json_values import decode_leniently
from bardo.streams.frames import Frame
from bardo.streams.sse import encode_sse
from bardo.values.events import (
    ContentChunk,
    Degraded,
    Event,
    Finish,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    ThinkChunk,
    ToolCallChunk,
    ToolCallStart,
    UsageUpdate,
)
from bardo.values.secrets import Secrets

_decode = msgspec.json.Decoder().decode
_DONE = b"[DONE]"

EventsAndBytes = tuple[Sequence[Event], bytes]
"""Events, and the bytes of the provider that they were read from; no bytes where the reply broke."""


def strict_frame(frame: Frame) -> Frame:
    """Return the frame as any reader can read it: the frame itself, unless it had to be mended, or its bytes left out."""
    data, raw = frame.data, frame.raw
    if data is None:
        return frame if frame.complete and _is_text(raw) else Frame(None, complete=frame.complete)
    whole = raw is data
    if data == _DONE:
        return _as_it_is(frame)
    if not _is_strict(data, raw):
        try:
            data = msgspec.json.encode(decode_leniently(data))
        except ValueError:
            return _as_it_is(frame)
        return Frame(data, frame.event, data if whole else encode_sse(data, frame.event), frame.complete)
    return frame


def _as_it_is(frame: Frame) -> Frame:
    """Return a frame that holds no JSON: `[DONE]`, or what its decoder refuses."""
    keep = frame.complete or (frame.data or b"").strip() == _DONE
    return frame if keep and _is_text(frame.raw) else Frame(frame.data, frame.event, b"", frame.complete)


def _is_strict(data: bytes, raw: bytes) -> bool:
    try:
        _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
    return _is_text(raw)


def _is_text(raw: bytes) -> bool:
    if raw.isascii():
        return True
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def without_secrets(event: Event, secrets: Secrets) -> Event:
    """Return an event without secrets, where it is none that holds what the model wrote."""
    match event:
        case ReplyFields(fields=fields):
            return msgspec.structs.replace(event, fields=secrets.in_value(fields))
        case Finish(raw=raw):
            return msgspec.structs.replace(event, raw=secrets.in_text(raw))
        case ReplyStart(id=reply_id, model=model):
            return msgspec.structs.replace(event, id=secrets.in_text(reply_id), model=secrets.in_text(model))
        case UsageUpdate(usage=usage):
            return UsageUpdate(msgspec.structs.replace(usage, raw=secrets.in_value(usage.raw)))
        case Degraded(degradation=one):
            return Degraded(
                msgspec.structs.replace(
                    one,
                    what=secrets.in_text(one.what),
                    why=secrets.in_text(one.why),
                    asked=secrets.in_value(one.asked),
                    sent=secrets.in_value(one.sent),
                )
            )
    return event


def frame_without_quoted(frame: Frame, events: Iterable[Event], secrets: Secrets) -> Frame:
    """Return a provider's frame without secrets, unless they are a part of what the model wrote in it."""
    if not secrets.stand_in(frame.raw):
        return frame
    written = "".join(map(_written, events)).encode("utf-8", "replace")
    if secrets.stand_in(written):
        return frame
    data = None if frame.data is None else secrets.in_bytes(frame.data)
    return msgspec.structs.replace(frame, data=data, raw=secrets.in_bytes(frame.raw))


def _written(event: Event) -> str:
    match event:
        case ContentChunk(text=text) | ThinkChunk(text=text) | RefusalChunk(text=text):
            return text
        case ToolCallChunk(arguments=arguments):
            return arguments
        case ToolCallStart(name=name):
            return name
    return ""
