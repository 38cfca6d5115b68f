"""Take a provider's key out of what it says beside the answer: warnings, finish words, fields that bardo passes on.

What the model wrote is never changed: an answer may be about a key, and then says what the user's own files say.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

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


def without_quoted(raw: bytes, events: Iterable[Event], secrets: Secrets) -> bytes:
    """Return a provider's frame without secrets, unless they are a part of what the model wrote in it."""
    if not secrets.stand_in(raw):
        return raw
    written = "".join(map(_written, events)).encode("utf-8", "replace")
    return raw if secrets.stand_in(written) else secrets.in_bytes(raw)


def _written(event: Event) -> str:
    match event:
        case ContentChunk(text=text) | ThinkChunk(text=text) | RefusalChunk(text=text):
            return text
        case ToolCallChunk(arguments=arguments):
            return arguments
        case ToolCallStart(name=name):
            return name
    return ""
