"""Read an Anthropic Messages request, refusing what Anthropic refuses.

Rules about thinking blocks that come back are in `anthropic_thinking`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from bardo.simulators.conversation import Conversation, Tool
from bardo.simulators.fields import Fields, at, fields, joined_text, number, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.providers import anthropic_cache, anthropic_context, anthropic_thinking
from bardo.simulators.refusal import Refusal

_KNOWN = frozenset(
    (
        "billing_policy",
        "cache_control",
        "compaction",
        "container",
        "context_management",
        "diagnostics",
        "fallback_credit_token",
        "fallbacks",
        "inference_geo",
        "max_tokens",
        "mcp_servers",
        "messages",
        "metadata",
        "model",
        "output_config",
        "output_format",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "temperature",
        "thinking",
        "thread",
        "tool_choice",
        "tools",
        "top_k",
        "top_p",
        "user_profile_id",
        "workspace_id",
    )
)
_LEAST_BUDGET = 1024


COUNTED = (
    "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed",
    "context_management", "mcp_servers",
)  # fmt: skip
"""What a request to count tokens may hold."""
_TAKES_SYSTEM = re.compile(r"claude-(?:(?:fable|mythos)-5|opus-(?:4-8|5)|(?:sonnet|haiku)-5-5)")
"""The models that take messages with the role `system` (pydantic-ai-slim 2.68.0, 2026-11)."""

_NO_PREFILL = re.compile(r"claude-(?:(?:opus|sonnet|haiku)-(?:4-[6-9]|[5-9])|(?:fable|mythos)-)")
"""The models that go on with no answer that the caller began (ericc-ch/copilot-api#261, vybestack/llxprt-code#3695, 2026)."""


_NEVER_FORCED = re.compile(r"claude-(?:(?:fable|mythos)-5[-.][12]|(?:opus|sonnet)-5[-.]5)")
"""The models that are never made to call a tool (can1357/oh-my-pi#12939 and vercel/ai#21364, 2026-09)."""


def read(incoming: Incoming, *, counting: bool = False, budgets: bool = True) -> Conversation:
    """Read what the request says; `counting` needs no `max_tokens`, and without `budgets` a budget has no effect. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "The request body is not valid JSON: unexpected character: line 1 column 1 (char 0)")
    _check_fields(body, counting=counting)
    if budgets:
        _check_budget(body)
    messages = rows(body.get("messages"))
    for index, message in enumerate(messages):
        _check_message(index, message, messages[index - 1] if index else {}, text(body.get("model")))
    _check_calls_answered(messages)
    _check_texts(messages)
    _check_end(messages[-1], text(body.get("model")))
    _check_forced(body)
    anthropic_cache.check(body)
    anthropic_thinking.check(incoming)
    anthropic_context.check(incoming)
    return Conversation(
        model=text(body.get("model")),
        question=next((said for m in reversed(messages) if (said := _message_text(m))), ""),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=() if at(body, "tool_choice.type") == "none" else _tools(body),
        forced_tool=text(at(body, "tool_choice.name")) or None,
        tool_results=tuple(_result_text(block) for block in _blocks(messages[-1], "tool_result")),
        schema=fields(at(body, "output_config.format.schema") or at(body, "output_format.schema")) or None,
        streamed=body.get("stream") is True,
        characters=len(joined_text(body.get("system"))) + sum(len(json.dumps(m.get("content"))) for m in messages),
    )


def _check_fields(body: Fields, *, counting: bool) -> None:
    for name in ("model", "max_tokens", "messages"):
        if name not in body and not (counting and name == "max_tokens"):
            raise Refusal("missing_field", f"{name}: Field required", parameter=name)
    for name in sorted(body.keys() - _KNOWN):
        raise Refusal("unknown_field", f"{name}: Extra inputs are not permitted", parameter=name)
    limit = number(body.get("max_tokens"))
    if not counting and (limit is None or limit < 0):
        raise Refusal("bad_value", "max_tokens: Input should be greater than or equal to 0", parameter="max_tokens")
    if not rows(body.get("messages")):
        raise Refusal("bad_value", "messages: at least one message is required", parameter="messages")


def _check_budget(body: Fields) -> None:
    limit = number(body.get("max_tokens"))
    budget = number(at(body, "thinking.budget_tokens"))
    if at(body, "thinking.type") != "enabled":
        return
    if budget is None:
        raise Refusal("missing_field", "thinking.enabled.budget_tokens: Field required")
    if budget < _LEAST_BUDGET:
        words = f"Input should be greater than or equal to {_LEAST_BUDGET}"
        raise Refusal("bad_value", f"thinking.enabled.budget_tokens: {words}")
    if limit is not None and budget >= limit:
        raise Refusal("bad_value", "`max_tokens` must be greater than `thinking.budget_tokens`.")


def _check_message(index: int, message: Fields, before: Fields, model: str) -> None:
    role = message.get("role")
    if role == "system" and _TAKES_SYSTEM.search(model):
        return
    if role not in ("user", "assistant"):
        words = 'Unexpected role "system". The Messages API accepts a top-level `system` parameter, not "system" as an'
        if role == "system":
            raise Refusal("bad_value", f"messages: {words} input message role.", parameter="messages")
        raise Refusal("bad_value", f"messages.{index}.role: Input should be 'user' or 'assistant'")
    called = {text(block.get("id")) for block in _blocks(before, "tool_use")}
    for position, block in enumerate(_blocks(message, "tool_result")):
        identifier = text(block.get("tool_use_id"))
        if identifier not in called:
            raise Refusal(
                "bad_value",
                f"messages.{index}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{identifier}. Each `tool_result` block must have a corresponding `tool_use` block in the previous "
                "message.",
            )


def _check_texts(messages: Sequence[Fields]) -> None:
    """Refuse text that says nothing, and an answer begun by the caller that ends with white space (anomalyco/opencode#1295)."""
    for index, message in enumerate(messages):
        said = message.get("content")
        may_be_empty = index == len(messages) - 1 and message.get("role") == "assistant"
        if not said and not may_be_empty:
            words = "all messages must have non-empty content except for the optional final assistant message"
            raise Refusal("bad_value", f"messages.{index}: {words}")
        for written in (
            [said] if isinstance(said, str) else [text(block.get("text")) for block in _blocks(message, "text")]
        ):
            if not written and not isinstance(said, str):
                raise Refusal("bad_value", "messages: text content blocks must be non-empty")
            if written and not written.strip():
                raise Refusal("bad_value", "messages: text content blocks must contain non-whitespace text")
    last = rows(messages[-1].get("content"))
    end = text(last[-1].get("text")) if last else text(messages[-1].get("content"))
    if messages[-1].get("role") == "assistant" and end != end.rstrip():
        raise Refusal("bad_value", "messages: final assistant content cannot end with trailing whitespace")


def _check_end(last: Fields, model: str) -> None:
    if last.get("role") == "assistant" and _NO_PREFILL.search(model):
        words = "This model does not support assistant message prefill. The conversation must end with a user message."
        raise Refusal("bad_value", words)


def _check_forced(body: Fields) -> None:
    """Refuse a forced tool beside thinking (BerriAI/litellm#17129 and can1357/oh-my-pi#341), and of some models always."""
    if at(body, "tool_choice.type") in ("any", "tool") and _NEVER_FORCED.search(text(body.get("model"))):
        raise Refusal("bad_value", 'tool_choice: type "tool" and "any" are not supported for this model.')
    if at(body, "tool_choice.type") in ("any", "tool") and at(body, "thinking.type") == "enabled":
        raise Refusal("bad_value", "Thinking may not be enabled when tool_choice forces tool use.")


def _check_calls_answered(messages: Sequence[Fields]) -> None:
    for index, message in enumerate(messages):
        called = {text(block.get("id")) for block in _blocks(message, "tool_use")}
        following = messages[index + 1] if index + 1 < len(messages) else {}
        answered = {text(block.get("tool_use_id")) for block in _blocks(following, "tool_result")}
        if missing := sorted(called - answered):
            raise Refusal(
                "bad_value",
                f"messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the "
                "next message.",
            )


def _blocks(message: Fields, kind: str) -> list[Fields]:
    return [block for block in rows(message.get("content")) if block.get("type") == kind]


def _message_text(message: Fields) -> str:
    return joined_text(message.get("content")) if message.get("role") == "user" else ""


def _result_text(block: Fields) -> str:
    return joined_text(block.get("content"))


def _tools(body: Fields) -> tuple[Tool, ...]:
    return tuple(
        Tool(text(tool.get("name")), text(tool.get("description")), fields(tool.get("input_schema")))
        for tool in rows(body.get("tools"))
        if "input_schema" in tool
    )
