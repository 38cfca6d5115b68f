"""Pages that Perplexity, Venice and Converse list beside an answer reach clients of other dialects as citations."""

from __future__ import annotations

import json
from typing import Any

import pytest

from surfaces.gateway.cells import whole_and_streamed
from surfaces.gateway.scripted import scripted
from surfaces.gateway.test_pictures import asked, frames_of

URL, TITLE = "https://a.example/page", "A page"
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
PERPLEXITY: dict[str, Any] = {
    "citations": [URL],
    "search_results": [{"title": TITLE, "url": URL, "date": "2026-01-01"}],
}
VENICE: dict[str, Any] = {
    "venice_parameters": {"enable_web_search": "on", "web_search_citations": [{"title": TITLE, "url": URL}]}
}
PROVIDERS: dict[str, dict[str, Any]] = {"perplexity/sonar": PERPLEXITY, "venice/qwen3-235b": VENICE}


def answer(fields: dict[str, Any], stream: bool) -> Any:
    named = {"id": "c1", "model": "m", "created": 1, "object": "chat.completion"}
    if not stream:
        message = {"role": "assistant", "content": "Blue [1]."}
        return {
            **named,
            **fields,
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": USAGE,
        }
    said = {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "Blue [1]."}}]}
    end: dict[str, Any] = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": USAGE}
    return [named | said, named | end | fields, "[DONE]"]


def cited(frames: list[Any]) -> set[str]:
    """Return the words of the frames that name the page."""
    written = json.dumps(frames)
    return {word for word in ("url_citation", "web_search_result_location", "groundingChunks") if word in written}


FORMS = {"responses": "url_citation", "messages": "web_search_result_location", "gemini": "groundingChunks"}


@whole_and_streamed
@pytest.mark.parametrize("model", PROVIDERS)
@pytest.mark.parametrize("client", FORMS)
def test_listed_pages_are_citations(client: str, model: str, stream: bool) -> None:
    with scripted([model.partition("/")[0]]) as played:
        played.replies = [answer(PROVIDERS[model], stream)]
        headers, body = played.post(*asked(client, model, stream))
    frames = frames_of(body, stream)
    assert cited(frames) == {FORMS[client]}
    assert URL in json.dumps(frames)
    assert TITLE in json.dumps(frames)
    assert "citations" not in headers.get("x-bardo-degraded", "").split(", ")


def test_a_client_of_the_dialect_itself_reads_the_lists() -> None:
    with scripted(["perplexity"]) as played:
        played.replies = [answer(PERPLEXITY, stream=False)]
        _, body = played.post(*asked("chat", "perplexity/sonar", stream=False))
    assert json.loads(body)["citations"] == [URL]
    assert json.loads(body)["search_results"] == PERPLEXITY["search_results"]


@pytest.mark.parametrize("client", FORMS)
def test_pages_that_converse_cites_reach_other_clients(client: str) -> None:
    citation = {"title": TITLE, "location": {"web": {"url": URL, "domain": "a.example"}}}
    content = [{"citationsContent": {"content": [{"text": "Blue."}], "citations": [citation]}}]
    message = {"role": "assistant", "content": content}
    usage = {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}
    with scripted(["bedrock"]) as played:
        played.replies = [{"output": {"message": message}, "stopReason": "end_turn", "usage": usage}]
        _, body = played.post(*asked(client, "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0", stream=False))
    assert cited([json.loads(body)]) == {FORMS[client]}
    assert URL in body.decode()
