"""What an official library got, it can send back: no signature, ciphertext or id of a recorded reply is lost or changed on the way."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from bardo.dialects import dialect
from bardo.values.blocks import Block
from bardo.values.wire import Arrival
from conformance.clients import READERS
from conformance.replies import ALL, CLIENTS, in_fewer_pieces, reply_of, written_stream, written_whole
from recordings import Recording


def _stateful(recording: Recording) -> bool:
    response = reply_of(recording).response
    return response.error is None and any(getattr(block, "opaque", ()) for block in response.blocks)


STATEFUL = [recording for recording in ALL if _stateful(recording)]
pytestmark = [
    pytest.mark.skipif(not ALL, reason="no recordings on this machine"),
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
]


def states(blocks: tuple[Block, ...] | list[Block]) -> Counter[tuple[str, bytes]]:
    """Return the opaque state of blocks; Google's library writes base64 in its other alphabet."""
    held = [state for block in blocks for state in getattr(block, "opaque", ())]
    return Counter(
        (state.kind, state.data.encode().translate(bytes.maketrans(b"-_", b"+/")).rstrip(b"=")) for state in held
    )


@pytest.mark.parametrize("recording", STATEFUL, ids=str)
def test_opaque_state_comes_back_from_every_client(recording: Recording) -> None:
    for client in CLIENTS:
        reply = reply_of(recording).for_client(client)
        bodies = {
            False: written_whole(reply.response, client),
            True: written_stream(in_fewer_pieces(reply.events), client),
        }
        for stream, body in bodies.items():
            turn = json.dumps(READERS[client](body, stream=stream).turn).encode()
            request = dialect(client).decode_request(turn, Arrival(model="m"))
            answer = [block for one in request.messages if one.role == "assistant" for block in one.blocks]
            assert states(answer) == states(list(reply.response.blocks)), (client, stream)
