"""What a later request goes on from, of a response that is kept."""

from __future__ import annotations

from typing import Any

from bardo.dialects.openai_responses.stored import StoredResponse


def test_a_call_in_which_the_reply_broke_off_is_kept_but_nothing_goes_on_from_it() -> None:
    message: dict[str, Any] = {"type": "message", "id": "m", "status": "incomplete"}
    whole: dict[str, Any] = {"type": "function_call", "id": "a", "status": "completed", "arguments": "{}"}
    broken: dict[str, Any] = {"type": "function_call", "id": "b", "status": "incomplete", "arguments": '{"a'}
    custom: dict[str, Any] = {"type": "custom_tool_call", "id": "c", "status": "incomplete", "input": "a"}
    response = {"id": "resp_1", "status": "incomplete", "output": [message, whole, broken, custom]}
    stored = StoredResponse(response=response, input=[])
    assert stored.items == [message, whole]
    assert [item["id"] for item in stored.response["output"]] == ["m", "a", "b", "c"]
