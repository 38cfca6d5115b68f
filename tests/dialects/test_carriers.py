"""State of a tool call that travels in a block of its own is given back wherever a client puts that block."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.values.blocks import Block, Opaque, ReasoningBlock, ReplyBlock, TextBlock, ToolCallBlock
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.wire import Arrival

SIGNATURE = Opaque("signature", "R2VtaW5p", "google-gemini-v1")
REPLY: tuple[ReplyBlock, ...] = (
    TextBlock("Let me see."),
    ToolCallBlock(id="one", name="look", arguments='{"at":1}', opaque=(SIGNATURE,)),
    ToolCallBlock(id="two", name="look", arguments='{"at":2}'),
)
REQUEST = Request(model="m", messages=())


def written(client: str) -> list[Any]:
    """Return the pieces of the reply as this client's library holds them."""
    body = json.loads(dialect(client).encode_response(Response(blocks=REPLY), REQUEST))
    match client:
        case "anthropic_messages":
            return list(body["content"])
        case "bedrock_converse":
            return list(body["output"]["message"]["content"])
        case _:
            return list(body["output"])


def read(client: str, pieces: list[Any]) -> tuple[Block, ...]:
    """Return the assistant's message of a request that sends the pieces back."""
    body: dict[str, Any] = {"model": "m", "max_tokens": 10}
    if client == "openai_responses":
        body["input"] = pieces
    else:
        question = [{"text": "?", "type": "text"}] if client == "anthropic_messages" else [{"text": "?"}]
        body["messages"] = [{"role": "user", "content": question}, {"role": "assistant", "content": pieces}]
    request = dialect(client).decode_request(json.dumps(body).encode(), Arrival(model="m"))
    (blocks,) = (message.blocks for message in request.messages if message.role == "assistant")
    return blocks


@pytest.mark.parametrize("client", ["anthropic_messages", "bedrock_converse", "openai_responses"])
def test_a_calls_signature_is_found_before_and_behind_the_call(client: str) -> None:
    pieces = written(client)
    assert len(pieces) == 4, "text, two calls and the carrier"
    for order in permutations(pieces):
        blocks = read(client, list(order))
        states = {block.id: block.opaque for block in blocks if isinstance(block, ToolCallBlock)}
        assert states == {"one": (SIGNATURE,), "two": ()}
        assert not any(isinstance(block, ReasoningBlock) for block in blocks)


@pytest.mark.parametrize("client", ["anthropic_messages", "bedrock_converse", "openai_responses"])
def test_the_signature_of_a_call_that_is_gone_is_given_to_no_other(client: str) -> None:
    kept = [piece for piece in written(client) if '"one"' not in json.dumps(piece)]
    blocks = read(client, kept)
    assert [block.opaque for block in blocks if isinstance(block, ToolCallBlock)] == [()]
