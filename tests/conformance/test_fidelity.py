"""Every recorded reply, written for each client dialect, is read by that dialect's official library with nothing missing."""

from __future__ import annotations

import anthropic
import openai
import pytest
from google.genai import errors as google

from bardo.dialects import dialect
from conformance.agreement import WRAPPERS, differences, untold
from conformance.clients import READERS
from conformance.replies import ALL, CLIENTS, Reply, in_fewer_pieces, reply_of, written_stream, written_whole
from recordings import Recording

pytestmark = [
    pytest.mark.skipif(not ALL, reason="no recordings on this machine"),
    # xAI echoes tools of its own, which OpenAI's library has no type for.
    pytest.mark.filterwarnings("ignore:Pydantic serializer warnings"),
]
RAISED: dict[str, type[Exception]] = {
    "openai_chat": openai.APIError,
    "openai_responses": openai.APIError,
    "anthropic_messages": anthropic.APIStatusError,
    "gemini": google.APIError,
}
WHOLE = [recording for recording in ALL if reply_of(recording).response.error is None]


def written(reply: Reply, client: str, *, stream: bool) -> bytes:
    return written_stream(in_fewer_pieces(reply.events), client) if stream else written_whole(reply.response, client)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("recording", WHOLE, ids=str)
def test_nothing_is_missing_for_any_client(recording: Recording, stream: bool) -> None:
    for client in CLIENTS:
        reply = reply_of(recording).for_client(client)
        heard = READERS[client](written(reply, client, stream=stream), stream=stream)
        assert differences(heard, reply.response, client) == [], client
        assert untold(reply.response, client) == [], client


@pytest.mark.parametrize("recording", [one for one in ALL if one not in WHOLE], ids=str)
def test_a_reply_that_broke_raises_its_own_words_in_every_client(recording: Recording) -> None:
    error = reply_of(recording).response.error
    assert error is not None
    for client, problem in RAISED.items():
        stream = written(reply_of(recording).for_client(client), client, stream=True)
        for body, status in ((stream, 200), (dialect(client).encode_error(error), error.status)):
            with pytest.raises(problem) as caught:
                READERS[client](body, stream=body is stream, status=status)
            assert error.message in str(caught.value), client


@pytest.mark.parametrize("client", WRAPPERS)
def test_arguments_that_are_no_object_are_told_to_be_wrapped(client: str) -> None:
    cut = [one for one in WHOLE if any(call.malformed for call in reply_of(one).response.tool_calls)]
    assert cut
    for recording in cut:
        body = written(reply_of(recording).for_client(client), client, stream=False)
        assert f'"sent":"{WRAPPERS[client]}"'.encode() in body, recording.file
