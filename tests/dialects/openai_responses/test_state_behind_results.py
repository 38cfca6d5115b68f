"""State of a call that comes back behind the call's result belongs to the call."""

from __future__ import annotations

from bardo.dialects.openai_responses.request_in import decode_input
from bardo.dialects.openai_responses.wire import attach
from bardo.values.blocks import Opaque, ToolCallBlock


def test_state_behind_the_result_of_its_call_goes_to_the_call() -> None:
    signature = Opaque("signature", "c2lnbmVk", "google-gemini-v1")
    messages = decode_input(
        [
            {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c1", "output": "sunny"},
            {"type": "reasoning", "summary": [], "encrypted_content": attach("call:c1", (signature,))},
        ],
        "input",
    )
    assert [message.role for message in messages] == ["assistant", "user"]
    (call,) = messages[0].blocks
    assert isinstance(call, ToolCallBlock)
    assert call.opaque == (signature,)
