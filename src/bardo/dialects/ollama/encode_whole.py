"""One whole reply as Ollama writes it.

One message has one place for its thinking, one for its text and one for its calls, so blocks of a kind are joined: the text verbatim,
stretches of thinking with a blank line between them.
"""

from __future__ import annotations

from typing import Any

from bardo.dialects.ollama.calls import write_call
from bardo.dialects.ollama.sealed import Owned, seal_owned, stretch
from bardo.dialects.ollama.usage import encode_usage
from bardo.dialects.ollama.words import NAME, stamp_of, write_finish
from bardo.dialects.wire import encode_json
from bardo.values.blocks import ReasoningBlock, TextBlock, ToolCallBlock, fields_for
from bardo.values.request import Request
from bardo.values.response import Response

_GAP = "\n\n"


def encode_response(response: Response, request: Request) -> bytes:
    """Write the reply. The dialect has one choice, so alternatives are left out."""
    fields = dict(fields_for(NAME, response.carried))
    body: dict[str, Any] = {
        "model": response.model or request.model,
        "created_at": fields.pop("created_at", None) or stamp_of(response.created),
        "message": _message(response),
        "done": True,
        "done_reason": write_finish(response.finish),
        **encode_usage(response.usage),
        **fields,
    }
    if response.bardo:
        body["bardo"] = response.bardo
    return encode_json(body)


def _message(response: Response) -> dict[str, Any]:
    calls = [block for block in response.blocks if isinstance(block, ToolCallBlock)]
    message: dict[str, Any] = {"role": "assistant", "content": response.text + response.refusal}
    thinking, stretches = join_thinking(response.reasoning_blocks)
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = [write_call(call, place) for place, call in enumerate(calls)]
    signature = seal_owned([*stretches, *_owned(response, calls)])
    if signature:
        message["signature"] = signature
    return message | fields_for(NAME, response.choice_carried)


def join_thinking(blocks: list[ReasoningBlock]) -> tuple[str, list[Owned]]:
    """Return the thinking as one text, and where each block stands in it, where one of them has opaque state."""
    text = ""
    stretches: list[Owned] = []
    for block in blocks:
        said = block.readable
        text += _GAP if text and said else ""
        stretches.append(stretch(len(text), len(text) + len(said), block.opaque))
        text += said
    return text, stretches if any(block.opaque for block in blocks) else []


def _owned(response: Response, calls: list[ToolCallBlock]) -> list[Owned]:
    """Return the states of calls and of the text."""
    texts = tuple(state for block in response.blocks if isinstance(block, TextBlock) for state in block.opaque)
    called = [Owned(f"call:{place}", call.opaque) for place, call in enumerate(calls) if call.opaque]
    return [*called, *([Owned("text", texts)] if texts else ())]
