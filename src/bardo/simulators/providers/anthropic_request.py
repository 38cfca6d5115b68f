"""Read an Anthropic Messages request, refusing what Anthropic refuses, its cache markers and context management too.

Rules about thinking blocks that come back are in `anthropic_thinking`. Source of context management: platform.claude.com/docs, "Context
editing" and "Compaction at a token threshold", 2026-11; the parameters of anthropic 2.12.0.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Final

from bardo.simulators.exchange import Incoming, Refusal
from bardo.simulators.fields import Fields, at, fields, joined_text, last_text, number, rows, text
from bardo.simulators.prompt_cache import MarkedPrefix
from bardo.simulators.providers import anthropic_thinking
from bardo.simulators.turns import Conversation, Tool

_MOST = 4
_NAME = "cache_control"
_CHARACTERS_PER_TOKEN = 4


def check_cache_markers(body: Fields) -> None:
    """Refuse what Anthropic refuses of markers: more than four, in empty texts and thinking, and durations that it does not have.

    The words are those of Anthropic's answers with status 400, of 2025 and 2026.
    """
    marked = [(path, block) for path, block in _parts(body) if block.get(_NAME) is not None]
    if len(marked) + (body.get(_NAME) is not None) > _MOST:
        words = f"A maximum of {_MOST} blocks with cache_control may be provided. Found {len(marked)}."
        raise Refusal("bad_value", words)
    for path, block in marked:
        marker = fields(block.get(_NAME))
        if marker.get("type") != "ephemeral" or marker.get("ttl", "5m") not in ("5m", "1h"):
            raise Refusal("bad_value", f"{path}.{_NAME}.ttl: Input should be '5m' or '1h'")
        if block.get("type") == "text" and not text(block.get("text")):
            raise Refusal("bad_value", f"{path}: {_NAME} cannot be set for empty text blocks")
        if block.get("type") in ("thinking", "redacted_thinking"):
            raise Refusal("bad_value", f"{path}.thinking.{_NAME}: Extra inputs are not permitted")
        if block.get("defer_loading") is True:
            raise Refusal("bad_value", f"{path}: Tools with defer_loading cannot use prompt caching.")


def marked_prefixes(body: Fields) -> list[MarkedPrefix]:
    """Return the prefixes that end at a marker, the shortest first; a marker of the whole request marks all of it."""
    prefixes, before = [], ""
    for _, block in _parts(body):
        before += json.dumps({name: value for name, value in block.items() if name != _NAME}, sort_keys=True)
        if block.get(_NAME) is not None:
            prefixes.append(MarkedPrefix(before, len(before) // _CHARACTERS_PER_TOKEN))
    if body.get(_NAME) is not None:
        prefixes.append(MarkedPrefix(before, len(before) // _CHARACTERS_PER_TOKEN))
    return prefixes


def _parts(body: Fields) -> Iterator[tuple[str, Fields]]:
    """Yield tools, system prompt and turns in the order of the prompt, each block with its path."""
    for index, tool in enumerate(rows(body.get("tools"))):
        yield f"tools.{index}", tool
    yield from _cached_blocks("system", body.get("system"))
    for index, message in enumerate(rows(body.get("messages"))):
        yield from _cached_blocks(f"messages.{index}.content", message.get("content"))


def _cached_blocks(path: str, content: object) -> Iterator[tuple[str, Fields]]:
    if isinstance(content, str):
        yield path, {"type": "text", "text": content}
    for index, block in enumerate(rows(content)):
        yield f"{path}.{index}", block


_BETAS: Final = {
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "clear_thinking_20251015": "context-management-2025-06-27",
    "compact_20260112": "compact-2026-01-12",
}
_COMPACTION: Final = frozenset(("type", "trigger", "instructions", "pause_after_compaction"))
_LEAST_TRIGGER: Final = 50_000


def check(incoming: Incoming) -> None:
    """Refuse edits that are unknown, that lack their beta, or that would begin too early, and blocks of compaction without a beta."""
    betas = {beta.strip() for beta in incoming.headers.get("anthropic-beta", "").split(",")}
    for index, edit in enumerate(rows(at(incoming.fields, "context_management.edits"))):
        where, kind = f"context_management.edits.{index}", text(edit.get("type"))
        if kind not in _BETAS:
            tags = ", ".join(repr(tag) for tag in sorted(_BETAS))
            raise Refusal("bad_value", f"{where}: Input tag '{kind}' does not match any of the expected tags: {tags}")
        if _BETAS[kind] not in betas:
            raise Refusal(
                "bad_value", "context_management: Extra inputs are not permitted", parameter="context_management"
            )
        if kind == "compact_20260112":
            _check_compaction(where, edit)


def _check_compaction(where: str, edit: Fields) -> None:
    for name in sorted(edit.keys() - _COMPACTION):
        raise Refusal("bad_value", f"{where}.compact_20260112.{name}: Extra inputs are not permitted")
    trigger = edit.get("trigger")
    if trigger is None:
        return
    if text(fields(trigger).get("type")) != "input_tokens":
        raise Refusal("bad_value", f"{where}.compact_20260112.trigger.type: Input should be 'input_tokens'")
    value = number(fields(trigger).get("value"))
    if value is None or value < _LEAST_TRIGGER:
        words = f"Input should be greater than or equal to {_LEAST_TRIGGER}"
        raise Refusal("bad_value", f"{where}.compact_20260112.trigger.value: {words}")


_KNOWN = frozenset((
    "billing_policy", "cache_control", "compaction", "container", "context_management", "diagnostics",
    "fallback_credit_token", "fallbacks", "inference_geo", "max_tokens", "mcp_servers", "messages", "metadata",
    "model", "output_config", "output_format", "service_tier", "speed", "stop_sequences", "stream", "system",
    "temperature", "thinking", "thread", "tool_choice", "tools", "top_k", "top_p", "user_profile_id",
    "workspace_id",
))  # fmt: skip
_LEAST_BUDGET = 1024


COUNTED = (
    "model", "messages", "system", "tools", "tool_choice", "thinking", "output_config", "cache_control", "speed",
    "context_management", "mcp_servers",
)  # fmt: skip
"""The fields of a request to count tokens."""
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
    if budgets:
        _check_budget(body)
    messages = rows(body.get("messages"))
    for index, message in enumerate(messages):
        _check_message(index, message, messages[index - 1] if index else {}, text(body.get("model")))
    _check_calls_answered(messages)
    _check_texts(messages)
    if messages[-1].get("role") == "assistant" and _NO_PREFILL.search(text(body.get("model"))):
        words = "This model does not support assistant message prefill. The conversation must end with a user message."
        raise Refusal("bad_value", words)
    _check_forced(body)
    check_cache_markers(body)
    anthropic_thinking.check(incoming)
    check(incoming)
    return Conversation(
        model=text(body.get("model")),
        question=last_text(messages, "role", "user"),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=() if at(body, "tool_choice.type") == "none" else _tools(body),
        forced_tool=text(at(body, "tool_choice.name")) or None,
        tool_results=tuple(joined_text(block.get("content")) for block in _blocks(messages[-1], "tool_result")),
        schema=fields(at(body, "output_config.format.schema") or at(body, "output_format.schema")) or None,
        streamed=body.get("stream") is True,
        characters=len(joined_text(body.get("system"))) + sum(len(json.dumps(m.get("content"))) for m in messages),
    )


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
        content = message.get("content")
        may_be_empty = index == len(messages) - 1 and message.get("role") == "assistant"
        if not content and not may_be_empty:
            words = "all messages must have non-empty content except for the optional final assistant message"
            raise Refusal("bad_value", f"messages.{index}: {words}")
        for written in (
            [content] if isinstance(content, str) else [text(block.get("text")) for block in _blocks(message, "text")]
        ):
            if not written and not isinstance(content, str):
                raise Refusal("bad_value", "messages: text content blocks must be non-empty")
            if written and not written.strip():
                raise Refusal("bad_value", "messages: text content blocks must contain non-whitespace text")
    last = rows(messages[-1].get("content"))
    end = text(last[-1].get("text")) if last else text(messages[-1].get("content"))
    if messages[-1].get("role") == "assistant" and end != end.rstrip():
        raise Refusal("bad_value", "messages: final assistant content cannot end with trailing whitespace")


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


def _tools(body: Fields) -> tuple[Tool, ...]:
    return tuple(
        Tool(text(tool.get("name")), text(tool.get("description")), fields(tool.get("input_schema")))
        for tool in rows(body.get("tools"))
        if "input_schema" in tool
    )
