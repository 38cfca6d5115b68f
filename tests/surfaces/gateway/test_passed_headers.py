"""What a provider's headers say of its limits reaches the client, in a reply and in a refusal."""

from __future__ import annotations

import json

import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply
from support.scripted import KEY, Scripted
from support.talk import Answer
from support.upstream_replies import REPLIES
from surfaces.gateway.cells import whole_and_streamed

CLIENTS = ("openai_chat", "anthropic_messages", "gemini")
LIMITS = {
    "anthropic-ratelimit-requests-remaining": "49",
    "anthropic-ratelimit-unified-status": "rejected",
    "x-ratelimit-limit-tokens": "30000",
    "x-ratelimit-echo": f"the key {KEY}",
    "request-id": "req_of_the_provider",
}


def answered(client: str, *, status: int, stream: bool, **headers: str) -> Answer:
    """Ask a provider that answers so, through the gateway."""
    reply = REPLIES["anthropic_messages"]
    refusal = {"type": "error", "error": {"type": "rate_limit_error", "message": "weekly limit"}}
    body = json.dumps(refusal).encode() if status != 200 else reply.stream if stream else reply.whole
    content_type = "text/event-stream" if stream and status == 200 else "application/json"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"content-type": content_type, **LIMITS, **named}

    def answer(call: Call) -> FakeReply:
        return FakeReply(status=status, headers=given, chunks=[body])

    return Scripted("anthropic_messages", answer).ask(client, stream=stream)


@whole_and_streamed
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("status", [200, 429])
def test_a_providers_limits_reach_every_client(client: str, status: int, stream: bool) -> None:
    said = answered(client, status=status, stream=stream)
    assert said.status == status
    assert said.headers["anthropic-ratelimit-requests-remaining"] == "49"
    assert said.headers["anthropic-ratelimit-unified-status"] == "rejected"
    assert said.headers["x-ratelimit-limit-tokens"] == "30000"
    assert said.headers["x-bardo-upstream-request-id"] == "req_of_the_provider"
    assert said.headers["request-id"] != "req_of_the_provider"
    assert "x-ratelimit-echo" not in said.headers


@whole_and_streamed
def test_a_refusal_says_whether_and_when_to_try_again(stream: bool) -> None:
    said = answered("anthropic_messages", status=429, stream=stream, retry_after="287441", x_should_retry="false")
    assert said.headers["retry-after"] == "287441"
    assert said.headers["x-should-retry"] == "false"


@whole_and_streamed
@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_key_is_not_worth_another_try(client: str, stream: bool) -> None:
    said = answered(client, status=401, stream=stream)
    assert (said.status, said.headers["x-should-retry"]) == (401, "false")


def test_a_provider_that_wants_a_refused_key_tried_again_is_heeded() -> None:
    said = answered("anthropic_messages", status=401, stream=False, x_should_retry="true")
    assert said.headers["x-should-retry"] == "true"


def test_a_date_to_try_again_at_is_told_in_seconds() -> None:
    said = answered("openai_chat", status=429, stream=False, retry_after="Wed, 21 Oct 2015 07:28:00 GMT")
    assert said.headers["retry-after"] == "0"
