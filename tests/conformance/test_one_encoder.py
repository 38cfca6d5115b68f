"""Every recorded reply is the same message whole and streamed for the libraries of AWS, Cohere, Ollama and Google (Interactions).

The same law for the other client dialects stands in `test_fidelity.py`, beside what is read there anyway.
"""

from __future__ import annotations

import pytest

from bardo.values.blocks import ToolCallBlock
from conformance.block_clients import BLOCK_CLIENTS
from conformance.replies import ALL, in_fewer_pieces, reply_of, written_stream, written_whole
from recordings import Recording, each_recording

NOT_ALIKE = {("bedrock_converse", "vercel-gateway/gemini-3-pro-preview-stream-thinking-a9a84cc4.sse")}
"""A reply with state for a block after the next one began, which a stream of Converse cannot put back."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@each_recording(ALL, together=12, by_day=0.06)
def test_a_reply_is_the_same_message_whole_and_streamed(recording: Recording) -> None:
    response = reply_of(recording).response
    broken = any(isinstance(block, ToolCallBlock) and not block.complete for block in response.blocks)
    if response.error is not None or broken:
        pytest.skip(
            "the reply broke, or a call's arguments were cut, which a stream passes on and a whole reply leaves out"
        )
    for client, (whole, streamed) in BLOCK_CLIENTS.items():
        if (client, recording.file) in NOT_ALIKE:
            continue
        reply = reply_of(recording).for_client(client)
        stream = written_stream(in_fewer_pieces(reply.events), client)
        if b'"opaque state"' in stream:
            # State that came behind the answer of a stream is left to the replay store, and told.
            continue
        assert streamed(stream) == whole(written_whole(reply.response, client)), client
