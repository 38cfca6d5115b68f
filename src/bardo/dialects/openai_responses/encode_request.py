"""A request for a provider of this dialect.

By default nothing is stored, and the ciphertext of reasoning is asked for, so that a conversation can go on anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.catalog.rows import ProviderRow
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.losses import Losses
from bardo.dialects.openai_responses.output_items import encode_input
from bardo.dialects.openai_responses.state import NAME
from bardo.dialects.reasoning_fields import with_own_words
from bardo.dialects.repeated_tools import written_tools
from bardo.dialects.sampling import OPENAI_SAMPLING, encode_sampling
from bardo.values.blocks import ReasoningBlock
from bardo.values.histories import parts_of
from bardo.values.request import OutputFormat, Request, Tool

ENCRYPTED = "reasoning.encrypted_content"
# OpenAI's own parameters. A caller who writes this dialect means a server that knows more of it than OpenAI.
_SAMPLING = {"temperature": "temperature", "top_p": "top_p"}
# Fields that rest on what the provider stored, or ask it to store: then the caller's silence on `store` stays silence.
_STORED = ("previous_response_id", "conversation", "background", "prompt")

DECLARATION = Declaration(
    dialect=NAME,
    title="Responses",
    # A caller who writes this dialect means a server that knows more of it than OpenAI.
    own=frozenset(f"sampling.{name}" for name in OPENAI_SAMPLING.keys() - _SAMPLING.keys()),
    expresses=frozenset(
        (
            "tools.strict",
            "tool_choice.parallel",
            "output_format.strict",
            "output_format.description",
            "image.detail",
            "document",
            "document.source",
            "document.name",
        )
    ),
    lacks={
        **limitations("Responses gives one answer a call", "choices", sent=1),
        **limitations("Responses has no such field; the text stays", "tool_result.is_error"),
    },
)


def gives_untaken_thinking(request: Request, row: ProviderRow) -> bool:
    """Whether a client's own body gives back thinking of another model, which has no state here: OpenAI refuses the item, or its id."""
    if row.quirks.replay != "none" or row.generic or ReasoningBlock not in parts_of(request.messages):
        return False
    blocks = (block for message in request.messages for block in message.blocks if isinstance(block, ReasoningBlock))
    return any(not block.opaque for block in blocks)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body for one provider."""
    own = request.dialect == NAME
    instructions, items = encode_input(request, row, losses)
    body: dict[str, Any] = {"model": request.model, "input": items}
    if instructions:
        body["instructions"] = instructions
    body |= _tools(request, losses)
    if request.max_output_tokens is not None:
        body["max_output_tokens"] = request.max_output_tokens
    body |= encode_sampling(request.sampling, OPENAI_SAMPLING if own else _SAMPLING)
    body |= _text(request)
    if request.stream:
        body["stream"] = True
    body |= {name: value for name, value in losses.own_extra(request).items() if name != "text"}
    body = merge_fields(body, encode_control(request, losses))
    _add_storage(
        body, thinks=request.control is None or request.control.thinks is not False, kept=request.kept_as is not None
    )
    return body


def _tools(request: Request, losses: Losses) -> dict[str, Any]:
    fields: dict[str, Any] = {}

    def write(tools: Sequence[Tool], losses: Losses) -> list[dict[str, Any]]:
        return [written for tool in tools if (written := _tool(tool, request.dialect, losses)) is not None]

    tools = written_tools(request, losses, write, request.dialect)
    if tools:
        fields["tools"] = tools
    choice = request.tool_choice
    if choice is not None and (tools or choice.mode != "auto"):
        fields["tool_choice"] = {"type": "function", "name": choice.name} if choice.mode == "named" else choice.mode
    if choice is not None and choice.parallel is not None:
        fields["parallel_tool_calls"] = choice.parallel
    return fields


def _tool(tool: Tool, asked_in: str, losses: Losses) -> dict[str, Any] | None:
    own = losses.own_fields(tool.carried)
    if tool.hosted:
        if not own:
            losses.lose_tool(tool)
        return own or None
    written: dict[str, Any] = {
        "type": "function",
        "name": tool.name,
        "parameters": {"type": "object", "properties": {}} if tool.schema is None else tool.schema,
    }
    if tool.description:
        written["description"] = tool.description
    # Left out, strict would be on here, and off in the other dialects.
    if tool.strict is not None or asked_in != NAME:
        written["strict"] = bool(tool.strict)
    return {**written, **own}


def _text(request: Request) -> dict[str, Any]:
    text = dict(request.extra.get("text") or {}) if request.dialect == NAME else {}
    if request.output_format is not None:
        text["format"] = _format(request.output_format)
    return {"text": text} if text else {}


def _format(output_format: OutputFormat) -> dict[str, Any]:
    if output_format.mode == "json_object":
        return {"type": "json_object"}
    written = {"type": "json_schema", "name": output_format.name or "answer", "schema": output_format.schema}
    if output_format.strict is not None:
        written["strict"] = output_format.strict
    if output_format.description:
        written["description"] = output_format.description
    return written


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control, and the caller's own words beside it."""
    if request.control is None:
        return {}
    written, left = with_own_words(request.control.fields, request, NAME)
    for path, value in left.items():
        losses.lose(path, value, "it goes with words that are not sent to this provider")
    return written


def _add_storage(body: dict[str, Any], *, thinks: bool, kept: bool) -> None:
    """Ask for nothing to be stored and for thinking as ciphertext; the latter not of a model that never thinks, which OpenAI refuses.

    Of a reply that the gateway keeps, the ciphertext is needed whatever else its client asked to be included.
    """
    if "store" not in body and not any(body.get(name) for name in _STORED):
        body["store"] = False
    if thinks and "include" not in body and body.get("store") is False:
        body["include"] = [ENCRYPTED]
    elif thinks and kept and ENCRYPTED not in (included := body.get("include") or []):
        body["include"] = [*included, ENCRYPTED]
