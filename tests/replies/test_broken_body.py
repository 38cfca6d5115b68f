"""A whole body that broke off is counted by what came of it, wherever it was cut and whoever wrote it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.replies.reply_reader import events_of_broken_body, row_reader
from bardo.replies.written_tokens import WrittenTokens
from bardo.surfaces.library.decoding import provider_row

TEXT = 'He said "hé\\n" and 日本 went on. ' * 20
BODIES: dict[str, dict[str, Any]] = {
    "deepseek": {
        "id": "c",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": TEXT}, "finish_reason": "stop"}],
    },
    "anthropic": {"type": "message", "role": "assistant", "content": [{"type": "text", "text": TEXT}]},
    "gemini": {"candidates": [{"content": {"role": "model", "parts": [{"text": TEXT}]}, "finishReason": "STOP"}]},
    "openai-responses": {
        "object": "response",
        "status": "completed",
        "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": TEXT}]}],
    },
    "cohere": {"message": {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}},
    "ollama": {"model": "m", "message": {"role": "assistant", "content": TEXT}, "done": True},
    "bedrock": {"output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}}},
}


@pytest.mark.parametrize("ascii_only", [True, False], ids=["escaped", "utf-8"])
@pytest.mark.parametrize("provider", BODIES)
def test_a_body_cut_anywhere_is_counted_by_the_text_that_came(provider: str, ascii_only: bool) -> None:
    row, body = provider_row(provider), json.dumps(BODIES[provider], ensure_ascii=ascii_only).encode()
    whole = _tokens(body, provider)
    before = 0
    for cut in range(0, len(body), 7):
        counted = _tokens(body[:cut], provider)
        assert before <= counted <= whole
        before = counted
    assert before >= 0.95 * whole > 100
    assert not [event for event in events_of_broken_body(body, row) if type(event).__name__ == "Finish"]


def _tokens(body: bytes, provider: str) -> int:
    written = WrittenTokens()
    written.feed(events_of_broken_body(body, provider_row(provider)))
    return written.tokens


@pytest.mark.parametrize(
    "end",
    [
        '"',
        '"key',
        '"key"',
        '"key":',
        '"key": tru',
        '"key": 1.',
        '"key": 12',
        '"key": [1,',
        '"key": "a\\',
        '"key": "\\u00',
    ],
)
def test_what_stands_behind_the_text_does_not_hide_it(end: str) -> None:
    body = '{"message": {"content": [{"type": "text", "text": "' + "word" * 100 + '"}]}, ' + end
    assert _tokens(body.encode(), "cohere") == 100


@pytest.mark.parametrize(
    "body", [b"", b"{", b"<html>", b"]]]", b"\xff\xfe", b"[" * 100_000, b'"' * 100_000, b"\\" * 100_000]
)
def test_what_is_no_reply_counts_nothing(body: bytes) -> None:
    assert _tokens(body, "deepseek") == 0


def test_what_a_broken_body_used_is_marked_as_estimated() -> None:
    reader = row_reader(provider_row("deepseek"), streamed=False)
    reader.count_broken(json.dumps(BODIES["deepseek"]).encode()[:400])
    usage = reader.unfinished_usage()
    assert usage is not None
    assert usage.approx
    assert usage.output_tokens
