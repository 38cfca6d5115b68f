"""What the static upstream says: Chat Completions replies as bytes, made once and sent many times.

The model's name asks for the reply: `whole`, `burst-200` (200 text deltas at once), `paced-200` (one every 2.5 ms), `thinking-200` (one
every 20 ms, as fast as models write, the first half of them thinking), `slow-200` (the same, one every 50 ms).
Every delta holds WORD, so that a reader can count what reached it through any translation.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

WORD = "quokka"
WHOLE_BYTES = 2048
PACE_SECONDS = {"paced": 0.0025, "thinking": 0.02, "slow": 0.05}
_USAGE = {"prompt_tokens": 256, "completion_tokens": 512, "total_tokens": 768}
_CONTENT = (f"{WORD} " * (WHOLE_BYTES // (len(WORD) + 1) + 1))[:WHOLE_BYTES]


def words_in(model: str) -> int:
    """Return how often WORD stands in the reply of `model`."""
    return _CONTENT.count(WORD) if model == "whole" else events_of(model)


def events_of(model: str) -> int:
    """Return how many text deltas the stream of `model` has."""
    return int(model.partition("-")[2])


def is_streamed(model: str) -> bool:
    """Whether `model` answers with a stream."""
    return model != "whole"


def is_paced(model: str) -> bool:
    """Whether the deltas of `model` come one by one."""
    return model.partition("-")[0] in PACE_SECONDS


def pace_of(model: str) -> float:
    """Return the seconds from one delta of a paced model to the next."""
    return PACE_SECONDS[model.partition("-")[0]]


def whole_reply(model: str) -> bytes:
    """Return a complete HTTP answer with a 2 KB message."""
    message = {"role": "assistant", "content": _CONTENT}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    fields = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1_760_000_000, "model": model}
    return answer(json.dumps({**fields, "choices": [choice], "usage": _USAGE}).encode())


def answer(body: bytes) -> bytes:
    """Return a complete HTTP answer of JSON."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % len(body) + body


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"cache-control: no-cache\r\ntransfer-encoding: chunked\r\n\r\n"
)


@lru_cache(maxsize=64)
def stream_pieces(model: str) -> tuple[bytes, ...]:
    """Return what a stream sends one after the other, as HTTP chunks: a delta each, then the end.

    The role goes with the first delta, so that the first byte of a reply and its first text come together for everyone.
    """
    # No two deltas in a row are alike: a peer ends a stream that repeats itself.
    thoughts = events_of(model) // 2 if model.startswith(("thinking-", "slow-")) else 0
    deltas = (
        {"reasoning_content" if place < thoughts else "content": f" {WORD}{place % 100}"}
        for place in range(events_of(model))
    )
    role = _chunk(_event(model, {"role": "assistant", "content": ""}, None))
    first, *rest = (_chunk(_event(model, delta, None)) for delta in deltas)
    usage = _frame({**_fields(model), "choices": [], "usage": _USAGE})
    end = _chunk(_event(model, {}, "stop")) + _chunk(usage) + _chunk(b"data: [DONE]\n\n") + b"0\r\n\r\n"
    return (role + first, *rest, end)


def stream_body(model: str) -> bytes:
    """Return the same stream without HTTP's chunks, for those who read it in process."""
    body = b""
    for piece in stream_pieces(model):
        while piece and not piece.startswith(b"0\r\n"):
            size, _, rest = piece.partition(b"\r\n")
            length = int(size, 16)
            body, piece = body + rest[:length], rest[length + 2 :]
    return body


def _event(model: str, delta: dict[str, Any], finish: str | None) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _frame({**_fields(model), "choices": [choice]})


def _fields(model: str) -> dict[str, Any]:
    head = {"id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 1_760_000_000}
    return {**head, "model": model, "system_fingerprint": "fp_bench"}


def _frame(value: dict[str, Any]) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
