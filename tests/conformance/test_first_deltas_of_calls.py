"""The signature of a call stands in the first delta that a Chat client has of it, as the AI SDK reads it."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.values.blocks import ToolCallBlock
from conformance.replies import ALL, reply_of, written_stream
from recordings import Recording, each_recording

_GEMINI = ("gemini/", "gemini-interactions/", "gemini-openai-compat/", "vertex/")


@each_recording([one for one in ALL if one.file.startswith(_GEMINI)], by_day=0.3)
def test_the_first_delta_of_a_call_has_its_signature(recording: Recording) -> None:
    reply = reply_of(recording).for_client("openai_chat")
    first: dict[tuple[int, int], dict[str, Any]] = {}
    for frame in written_stream(reply.events, "openai_chat").split(b"\n\n"):
        if not frame.startswith(b"data: {"):
            continue
        for choice in msgspec.json.decode(frame[6:]).get("choices", ()):
            for call in choice["delta"].get("tool_calls", ()):
                first.setdefault((choice["index"], call["index"]), call)
    choices = [reply.response, *reply.response.alternatives]
    for number, said in enumerate(choices):
        calls = [block for block in said.blocks if isinstance(block, ToolCallBlock)]
        for index, call in enumerate(calls):
            google = first[number, index].get("extra_content", {}).get("google", {})
            signatures = [one.data for one in call.opaque if one.kind == "signature"]
            assert google.get("thought_signature") == (signatures[0] if signatures else None)
