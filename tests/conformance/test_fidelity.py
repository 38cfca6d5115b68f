"""Every recorded reply, written for each client dialect, is read by that dialect's official library with nothing missing."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

import anthropic
import openai
import pytest
from google.genai import errors as google

from bardo.dialects import dialect
from bardo.values.blocks import Block, ReplyBlock, ToolCallBlock
from bardo.values.request import Message
from bardo.values.wire import Arrival
from conformance.agreement import WRAPPERS, differences, untold
from conformance.clients import READERS
from conformance.heard import Heard
from conformance.replies import ALL, CLIENTS, Reply, in_fewer_pieces, reply_of, written_stream, written_whole
from recordings import RECORDINGS, Recording, each_recording
from support.sampling import COVERED

pytestmark = [
    # xAI echoes tools of its own, which OpenAI's library has no type for.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
]
RAISED: dict[str, type[Exception]] = {
    "openai_chat": openai.APIError,
    "openai_responses": openai.APIError,
    "anthropic_messages": anthropic.APIStatusError,
    "gemini": google.APIError,
}
SAME_OBJECTS = ("anthropic_messages", "openai_responses")
"""Dialects whose library makes the same objects of a whole reply and of its stream. The others' libraries join pieces in another way,
or not at all: there it is the same that bardo reads when these objects are given back."""
NOT_ALIKE = (
    "openai-responses/codex-mini-latest-stream-tool-07f0af2a.sse",
    "vercel-gateway/gemini-3-pro-preview-stream-thinking-a9a84cc4.sse",
    "anthropic-messages/claude-sonnet-4-0-thinking-servertool-2122c011.json",
    "openrouter/o4-mini-stream-thinking-09211809.sse",
)
"""Two replies with state for a block after the next one began, which a stream cannot put back; a call of an MCP server's tool, whose
input Anthropic's library leaves empty when it comes in a delta; and thinking whose id comes after its text."""


def written(reply: Reply, client: str, *, stream: bool) -> bytes:
    return written_stream(in_fewer_pieces(reply.events), client) if stream else written_whole(reply.response, client)


@each_recording(ALL, together=6, by_day=0.1)
def test_nothing_is_missing_for_any_client_and_opaque_state_comes_back(recording: Recording) -> None:
    """Both laws are about what the library made of the same bytes, and reading them is what costs."""
    if reply_of(recording).response.error is not None:
        pytest.skip("the reply broke")
    for client in CLIENTS:
        reply = reply_of(recording).for_client(client)
        assert untold(reply.response, client) == [], client
        sent = states(reply.response.blocks)
        turns = []
        for stream in (False, True):
            COVERED[f"replies read by the library of {client}"] += 1
            body = written(reply, client, stream=stream)
            heard = READERS[client](body, stream=stream)
            # State that came behind the answer of a stream is left to the replay store, and told.
            stored = stream and b'"opaque state"' in body
            if recording.file not in NOT_ALIKE and not stored and not _has_cut_arguments(reply):
                turns.append(heard.turn() if client in SAME_OBJECTS else _decoded(heard, client))
            assert differences(heard, reply.response, client) == [], (client, stream)
            if sent:
                back = _sent_back(heard, client)
                assert back < sent if stored else back == sent, (client, stream)
        assert turns[1:] == turns[:-1], client


def states(blocks: Sequence[Block | ReplyBlock]) -> Counter[tuple[str, bytes]]:
    """Return the opaque state of blocks: signatures, ciphertexts, ids. Google's library writes base64 in its other alphabet."""
    held = [state for block in blocks for state in getattr(block, "opaque", ())]
    return Counter(
        (state.kind, state.data.encode().translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")) for state in held
    )


def _sent_back(heard: Heard, client: str) -> Counter[tuple[str, bytes]]:
    """Return the state in the turn that a library makes of its own objects."""
    return states([block for one in _decoded(heard, client) if one.role == "assistant" for block in one.blocks])


def _decoded(heard: Heard, client: str) -> tuple[Message, ...]:
    return dialect(client).decode_request(json.dumps(heard.turn()).encode(), Arrival(model="m")).messages


@each_recording(ALL)
def test_a_reply_that_broke_raises_its_own_words_in_every_client(recording: Recording) -> None:
    error = reply_of(recording).response.error
    if error is None:
        pytest.skip("the reply did not break")
    for client, problem in RAISED.items():
        stream = written(reply_of(recording).for_client(client), client, stream=True)
        for body, status in ((stream, 200), (dialect(client).encode_error(error), error.status)):
            with pytest.raises(problem) as caught:
                READERS[client](body, stream=body is stream, status=status)
            assert error.message in str(caught.value), client


def test_replies_of_every_kind_were_recorded() -> None:
    responses = [reply_of(recording).response for recording in ALL]
    real = RECORDINGS is not None
    assert sum(response.error is None for response in responses) > (900 if real else 110)
    assert sum(response.error is not None for response in responses) > (20 if real else 5)
    assert sum(bool(states(response.blocks)) for response in responses) > (200 if real else 15)


@pytest.mark.parametrize("client", WRAPPERS)
def test_a_call_in_which_a_recorded_reply_broke_off_is_left_out_and_told(client: str) -> None:
    cut = [reply_of(one) for one in ALL if _has_cut_arguments(reply_of(one))]
    assert cut
    for reply in cut:
        body = written(reply.for_client(client), client, stream=False)
        assert not any(call.id.encode() in body for call in _broken_calls(reply)), reply.recording.file
        assert "tool_calls" in [one.what for one in reply.response.degraded], reply.recording.file
        assert reply.response.finish.reason == "length", reply.recording.file


def _has_cut_arguments(reply: Reply) -> bool:
    return reply.response.error is None and bool(_broken_calls(reply))


def _broken_calls(reply: Reply) -> list[ToolCallBlock]:
    return [block for block in reply.response.blocks if isinstance(block, ToolCallBlock) and not block.complete]
