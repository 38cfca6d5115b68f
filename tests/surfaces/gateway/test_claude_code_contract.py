"""Claude Code's contract with gateways, a test for each line of the table in docs/reference/clients.md.

The contract is what Anthropic publishes as "Claude Code gateway compatibility guide" (code.claude.com, llm-gateway-protocol, 2026-11).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import anthropic
import pytest

from support.any_model import Simulator
from support.gateway import House, house
from support.talk import QUESTION

boto3: Any = pytest.importorskip("boto3")
botocore: Any = pytest.importorskip("botocore")

TURNS: Any = [{"role": "user", "content": QUESTION}]
UPSTREAMS = {
    "anthropic": "claude-sonnet-4-5-20250929",
    "deepseek": "deepseek-v4-pro",
    "openai_responses": "gpt-5",
    "gemini": "gemini-2.5-flash",
}
"""Models at providers of four dialects."""


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house([Simulator(name, models=[model]) for name, model in UPSTREAMS.items()]) as it:
        yield it


def bedrock(address: str, service: str = "bedrock-runtime", **options: Any) -> Any:
    """Return AWS's own client, which has a bearer token of Bedrock unless told otherwise."""
    own = {"aws_access_key_id": "id", "aws_secret_access_key": "secret", **options}
    quick = botocore.config.Config(retries={"total_max_attempts": 1}, connect_timeout=5)
    return boto3.client(service, region_name="us-east-1", endpoint_url=address, config=quick, **own)


def vertex(address: str) -> anthropic.AnthropicVertex:
    """Return Anthropic's own client of Vertex AI."""
    return anthropic.AnthropicVertex(
        region="us-east5", project_id="p", base_url=f"{address}/v1", access_token="any", max_retries=0
    )


@pytest.mark.parametrize("provider", UPSTREAMS)
def test_the_client_of_bedrock_is_answered_over_each_dialect(running: House, provider: str) -> None:
    body = json.dumps({"anthropic_version": "bedrock-2023-05-31", "max_tokens": 500, "messages": TURNS})
    client = bedrock(running.address)
    with closing(client):
        name = f"{provider}/{UPSTREAMS[provider]}"
        whole = json.loads(client.invoke_model(modelId=name, body=body)["body"].read())
        assert (whole["type"], whole["content"][-1]["text"]) == ("message", "1161")
        chunks = client.invoke_model_with_response_stream(modelId=name, body=body)["body"]
        events = [json.loads(chunk["chunk"]["bytes"]) for chunk in chunks]
        text = "".join(event["delta"].get("text", "") for event in events if event["type"] == "content_block_delta")
        assert (events[0]["type"], events[-1]["type"], text) == ("message_start", "message_stop", "1161")


@pytest.mark.parametrize("provider", UPSTREAMS)
def test_the_client_of_vertex_is_answered_over_each_dialect(running: House, provider: str) -> None:
    name = f"{provider}/{UPSTREAMS[provider]}"
    with closing(vertex(running.address)) as client:
        whole = client.messages.create(model=name, max_tokens=500, messages=TURNS)
        assert whole.content[-1].text == "1161"  # type: ignore[union-attr]
        with client.messages.stream(model=name, max_tokens=500, messages=TURNS) as stream:
            assert stream.get_final_text() == "1161"
        assert client.messages.count_tokens(model=name, messages=TURNS).input_tokens > 0
