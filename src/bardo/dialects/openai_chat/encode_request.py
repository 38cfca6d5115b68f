"""A Request to a Chat Completions body for one provider."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from bardo.catalog.fragments import merge_fields
from bardo.catalog.request_shapes import shape_at
from bardo.catalog.rows import ProviderRow, Quirks
from bardo.dialects.declaration import Declaration, limitations
from bardo.dialects.hosted_tools import is_asked_otherwise
from bardo.dialects.losses import Losses
from bardo.dialects.openai_chat.constants import DEVELOPER, NAME
from bardo.dialects.openai_chat.encode_messages import MessageWriter
from bardo.dialects.openai_chat.system_messages import has_later_system
from bardo.dialects.openai_chat.unsigned_calls import has_unsigned_calls, waive_signatures
from bardo.dialects.reasoning_fields import with_own_words
from bardo.dialects.repeated_tools import written_tools
from bardo.dialects.sampling import OPENAI_SAMPLING, encode_sampling
from bardo.values.blocks import DocumentBlock, ImageBlock, ReasoningBlock, ToolResultBlock, fields_for
from bardo.values.histories import parts_of
from bardo.values.request import OutputFormat, Request, Tool, ToolChoice

_LIMITS = ("max_tokens", "max_completion_tokens")
DECLARATION = Declaration(
    dialect=NAME,
    title="Chat Completions",
    # A request of the library has no dialect; its fields are those of Chat.
    also_speaks=frozenset({""}),
    expresses=frozenset(
        (
            "choices",
            "tools.strict",
            "tool_choice.parallel",
            "output_format.strict",
            "output_format.description",
            "image.detail",
            "document",
            "document.source",
            "document.name",
            "sampling.top_k",
            "sampling.min_p",
            "sampling.repetition_penalty",
            "sampling.frequency_penalty",
            "sampling.presence_penalty",
            "sampling.seed",
        )
    ),
    lacks={
        **limitations("Chat Completions does not tell a failed tool from another", "tool_result.is_error"),
    },
)


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> dict[str, Any]:
    """Return the body for one provider."""
    quirks = row.quirks
    if not quirks.developer_role and _names_developer(request):
        losses.lose("messages.role.developer", DEVELOPER, "this provider calls that role system", sent="system")
    between = "no_user_after_tool" in shape_at(row, request.model).rules
    writer = MessageWriter(quirks, losses, own=request.dialect == NAME, generic=row.generic, speaks_between=between)
    messages = writer.write_all(request.messages)
    messages = waive_signatures(request.model, messages, quirks, losses)
    body: dict[str, Any] = {"model": request.model, "messages": messages}
    tools = written_tools(request, losses, _tools)
    if tools:
        body["tools"] = tools
        body |= _tool_choice(request.tool_choice)
    if request.max_output_tokens is not None:
        body[quirks.output_limit_field] = request.max_output_tokens
    body |= encode_sampling(request.sampling, OPENAI_SAMPLING)
    if request.choices > 1:
        body["n"] = request.choices
    if request.output_format is not None:
        body["response_format"] = _output_format(request.output_format)
    body |= losses.own_extra(request)
    body = merge_fields(body, encode_control(request, losses))
    return body | _stream(request, quirks, body.pop("stream_options", None))


def differs(request: Request, row: ProviderRow) -> bool:
    """Whether a body of this dialect holds what the provider does not take.

    That is the name of its output limit, a role or its place, an unsigned call, a picture in the result of a tool, or earlier thinking
    where there is no field for it.
    """
    body = request.body
    if not body:
        return False
    for limit in _LIMITS:
        if limit in body and limit != row.quirks.output_limit_field:
            return True
    if request.extra and is_asked_otherwise(request, row):
        return True
    if row.quirks.signed_calls and has_unsigned_calls(request.model, body.get("messages"), row.quirks):
        return True
    # What any server takes is not known: a client that gives thinking back in a field knows its own.
    if row.quirks.replay == "none" and not row.generic and _gives_thinking_back(request):
        return True
    if not row.quirks.media_in_results and _shows_media_in_results(request):
        return True
    if row.quirks.one_system and has_later_system(body.get("messages")):
        return True
    return not row.quirks.developer_role and _names_developer(request)


_MEDIA = frozenset((ImageBlock, DocumentBlock))


def _shows_media_in_results(request: Request) -> bool:
    if _MEDIA.isdisjoint(parts_of(request.messages)):
        return False
    results = (block for message in request.messages for block in message.blocks if isinstance(block, ToolResultBlock))
    return any(isinstance(part, ImageBlock | DocumentBlock) for result in results for part in result.content)


def _gives_thinking_back(request: Request) -> bool:
    if ReasoningBlock not in parts_of(request.messages):
        return False
    return any(message.role == "assistant" and ReasoningBlock in message.kinds for message in request.messages)


def _names_developer(request: Request) -> bool:
    """Whether a client of this dialect gave a message the role that bardo reads and writes as `system`."""
    if request.dialect != NAME or not request.body:
        return False
    messages = request.body.get("messages")
    # Each was read as an object; no step of Python for each.
    return isinstance(messages, list) and DEVELOPER in map(dict.get, messages, repeat("role"))


def _stream(request: Request, quirks: Quirks, value: Any) -> dict[str, Any]:
    if not request.stream:
        return {}
    options = {**(value or {}), **({"include_usage": True} if quirks.stream_usage else {})}
    return {"stream": True, "stream_options": options} if options else {"stream": True}


def _tools(tools: Sequence[Tool], losses: Losses) -> list[dict[str, Any]]:
    return [written for tool in tools for written in _tool(tool, losses)]


def _tool(tool: Tool, losses: Losses) -> list[dict[str, Any]]:
    own = fields_for(NAME, tool.carried)
    if tool.hosted:
        if not own:
            losses.lose_tool(tool)
        return [own] if own else []
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    if tool.schema is not None:
        function["parameters"] = tool.schema
    if tool.strict is not None:
        function["strict"] = tool.strict
    more = own.get("function")
    if more:
        own = {name: value for name, value in own.items() if name != "function"}
        function |= more
    return [{"type": "function", "function": function, **own}]


def _tool_choice(choice: ToolChoice | None) -> dict[str, Any]:
    if choice is None:
        return {}
    written: dict[str, Any] = {}
    if choice.mode == "named":
        written["tool_choice"] = {"type": "function", "function": {"name": choice.name}}
    elif choice.mode != "auto" or choice.parallel is None:
        written["tool_choice"] = choice.mode
    if choice.parallel is not None:
        written["parallel_tool_calls"] = choice.parallel
    return written


def _output_format(output_format: OutputFormat) -> dict[str, Any]:
    if output_format.mode == "json_object":
        return {"type": "json_object"}
    inner: dict[str, Any] = {"name": output_format.name or "answer"}
    if output_format.schema is not None:
        inner["schema"] = output_format.schema
    if output_format.strict is not None:
        inner["strict"] = output_format.strict
    if output_format.description:
        inner["description"] = output_format.description
    return {"type": "json_schema", "json_schema": inner}


def encode_control(request: Request, losses: Losses) -> dict[str, Any]:
    """Return what is written of thinking: the control, and the caller's own words beside it."""
    if request.control is None:
        return {}
    written, left = with_own_words(request.control.fields, request, NAME)
    for path, value in left.items():
        losses.lose(path, value, "it goes with words that are not sent to this provider")
    return written
