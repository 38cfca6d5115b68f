"""Replies for clients of watsonx text generation, whole and streamed.

The language has text alone: reasoning and calls are left out, which the engine reports. bardo's own `bardo` object stands in the last
chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from bardo.dialects.watsonx_text.errors import error_fields
from bardo.dialects.watsonx_text.words import COUNTS, NAME, UNFINISHED, stop_reason, write_usage
from bardo.dialects.wire import encode_json
from bardo.streams.sse import KEEP_ALIVE, encode_sse
from bardo.values.blocks import fields_for
from bardo.values.events import (
    ContentChunk,
    Event,
    Extension,
    Failed,
    Finish,
    RefusalChunk,
    ReplyFields,
    ReplyStart,
    UsageUpdate,
)
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import Usage

_END = f',"generated_token_count":0,"input_token_count":0,"stop_reason":"{UNFINISHED}"}}]}}\n\n'.encode()


def encode_response(response: Response, request: Request) -> bytes:
    """Write one whole reply; alternatives are further results, and the counts of all stand with the first."""
    answers = [response, *response.alternatives]
    body = {
        **_head(response.model or request.model, response.created),
        "results": [_result(one, place) for place, one in enumerate(answers)],
        **fields_for(NAME, response.carried),
        **({"bardo": response.bardo} if response.bardo else {}),
    }
    return encode_json(body)


def _result(answer: Response, place: int) -> dict[str, Any]:
    counts = write_usage(answer.usage) if place == 0 else dict.fromkeys(COUNTS, 0)
    said = {"generated_text": answer.text + answer.refusal, **counts, "stop_reason": stop_reason(answer.finish)}
    return {**said, **fields_for(NAME, answer.choice_carried)}


def _head(model: str, created: int | None) -> dict[str, Any]:
    try:
        moment = None if created is None else datetime.fromtimestamp(created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (ValueError, OverflowError, OSError):
        moment = None
    return {"model_id": model, **({"created_at": moment} if moment else {})}


class Encoder:
    """One streamed reply, of one choice."""

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, request: Request) -> None:
        self._start = ReplyStart(model=request.model)
        self._prefix = b""
        self._usage = Usage()
        self._finish = Finish("unknown")
        self._fields: dict[str, Any] = {}
        self._result: dict[str, Any] = {}
        self._extension: dict[str, Any] = {}
        self._over = False

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the frames the event makes."""
        if self._over:
            return ()
        if isinstance(item, ContentChunk | RefusalChunk):
            return () if item.choice else (self._piece(item.text),)
        match item:
            case ReplyStart():
                self._start = ReplyStart(model=item.model or self._start.model, created=item.created)
            case UsageUpdate(usage=usage):
                self._usage = usage
            case Finish(choice=0):
                self._finish = item
            case ReplyFields(dialect=dialect, fields=fields, choice=choice) if dialect == NAME and not choice:
                target = self._fields if choice is None else self._result
                target |= fields
            case Extension(fields=fields):
                self._extension |= fields
            case Failed(error=error):
                self._over = True
                return (encode_sse(encode_json(error_fields(error)), "error"),)
            case _:
                pass
        return ()

    def finish(self) -> Sequence[bytes]:
        """Return the last chunk; nothing after a failure."""
        if self._over:
            return ()
        self._over = True
        said = {"generated_text": "", **write_usage(self._usage), "stop_reason": stop_reason(self._finish)}
        body = {
            **_head(self._start.model, self._start.created),
            "results": [{**said, **self._result}],
            **self._fields,
            **({"bardo": self._extension} if self._extension else {}),
        }
        return (encode_sse(encode_json(body), "message"),)

    def _piece(self, text: str) -> bytes:
        if not self._prefix:
            head = encode_json(_head(self._start.model, self._start.created))[:-1]
            self._prefix = b"event: message\ndata: " + head + b',"results":[{"generated_text":'
        return self._prefix + encode_json(text) + _END
