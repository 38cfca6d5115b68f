"""One whole reply as an interaction."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.gemini_interactions.usage import write_usage
from bardo.dialects.gemini_interactions.words import NAME, stamp_of, status_of
from bardo.dialects.gemini_interactions.written import Step, call_step, output_step, thought_step
from bardo.dialects.wire import encode_json
from bardo.values.blocks import ReasoningBlock, ReplyBlock, ToolCallBlock, UnknownBlock, fields_for
from bardo.values.request import Request
from bardo.values.response import Response


def encode_response(response: Response, request: Request) -> bytes:
    """Write the reply. The dialect has one choice, so alternatives are left out."""
    silent = hides_thoughts(request)
    steps = [step for block in response.blocks for step in _steps(block, silent=silent)]
    created = stamp_of(response.created)
    body: dict[str, Any] = {
        "id": response.id,
        "object": "interaction",
        "model": response.model or request.model,
        "status": status_of(response.finish, called=bool(steps) and steps[-1].get("type") == "function_call"),
        "created": created,
        "updated": created,
        "usage": write_usage(response.usage),
        "steps": steps,
        **fields_for(NAME, response.carried),
        "bardo": response.bardo or None,
    }
    return encode_json({name: value for name, value in body.items() if value is not None})


def hides_thoughts(request: Request) -> bool:
    """Whether the client asked for no summaries: then thoughts are written with their state alone, as Google does."""
    policy = request.reasoning
    return request.dialect == NAME and policy is not None and policy.visible is False


def _steps(block: ReplyBlock, *, silent: bool) -> list[Step]:
    if isinstance(block, UnknownBlock):
        return [block.value] if block.dialect == NAME and isinstance(block.value, dict) else []
    if isinstance(block, ToolCallBlock):
        return [call_step(block)]
    if isinstance(block, ReasoningBlock):
        return [thought_step(msgspec.structs.replace(block, text="", summary=()) if silent else block)]
    return [output_step(block)]
