"""Why Claude refused (`stop_details`), as clients of other dialects read a refusal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import Scripted, scripted

WHY = "This request could enable cyber harm."
DETAILS = {"type": "refusal", "category": "cyber", "explanation": WHY}
USAGE = {"input_tokens": 3, "output_tokens": 2}
HEAD: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-x", "content": []}
ASKED: dict[str, dict[str, Any]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
    "/v1/responses": {"input": "hi"},
    "/v1/messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 100},
}


def reply(*, stream: bool) -> Any:
    said = {"type": "text", "text": "I begin"}
    if not stream:
        return {**HEAD, "content": [said], "stop_reason": "refusal", "stop_details": DETAILS, "usage": USAGE}
    return [
        {"type": "message_start", "message": {**HEAD, "stop_reason": None, "usage": USAGE}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "I begin"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": DETAILS}, "usage": USAGE},
        {"type": "message_stop"},
    ]


def ask(played: Scripted, path: str, *, stream: bool, **further: Any) -> Any:
    played.replies = [reply(stream=stream)]
    _, raw = played.post(path, {"model": "anthropic/claude-x", "stream": stream, **ASKED[path], **further})
    if not stream:
        return json.loads(raw)
    return [json.loads(line[6:]) for line in raw.decode().splitlines() if line.startswith("data: {")]


@whole_and_streamed
def test_a_chat_client_reads_why_in_the_refusal(stream: bool) -> None:
    with scripted(["anthropic"]) as played:
        heard = ask(played, "/v1/chat/completions", stream=stream)
    choices = [choice for one in (heard if stream else [heard]) for choice in one["choices"]]
    messages = [choice.get("delta") or choice.get("message") or {} for choice in choices]
    assert "".join(message.get("refusal") or "" for message in messages) == WHY
    assert "".join(message.get("content") or "" for message in messages) == "I begin"
    assert choices[-1]["finish_reason"] == "content_filter"


@whole_and_streamed
def test_a_responses_client_reads_why_in_a_part(stream: bool) -> None:
    with scripted(["anthropic"]) as played:
        heard = ask(played, "/v1/responses", stream=stream)
    response = heard[-1]["response"] if stream else heard
    parts = [part for item in response["output"] for part in item["content"]]
    assert [part.get("text") or part.get("refusal") for part in parts] == ["I begin", WHY]
    assert response["incomplete_details"] == {"reason": "content_filter"}


@whole_and_streamed
@pytest.mark.parametrize("include", [[], ["receipt"]], ids=["forwarded", "written anew"])
def test_a_client_of_the_same_dialect_has_the_details_themselves_once(stream: bool, include: list[str]) -> None:
    with scripted(["anthropic"]) as played:
        heard = ask(played, "/v1/messages", stream=stream, bardo={"include": include})
    assert json.dumps(heard).count(WHY) == 1
    last = next(one["delta"] for one in heard if one["type"] == "message_delta") if stream else heard
    assert last["stop_details"] == DETAILS
