"""Read an OpenAI Responses request, refusing what OpenAI refuses."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bardo.simulators import chat_request, marks
from bardo.simulators.conversation import Conversation, Tool
from bardo.simulators.fields import Fields, at, fields, joined_text, pretty, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import Reply, whole

_CALLS = ("function_call", "custom_tool_call")
_OUTPUTS = ("function_call_output", "custom_tool_call_output")
_ROLES = ("assistant", "system", "developer", "user")
_LONGEST_CALL_ID = 64
_LONGEST_NAME = 64
_KNOWN = frozenset(
    (
        "access_programs", "background", "background_options", "client_metadata", "context_management", "conversation", "image", "include",
        "input",
        "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation", "parallel_tool_calls", "personality",
        "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "reasoning",
        "safety_identifier", "service_tier", "store", "stream", "stream_options", "temperature", "text", "tool_choice", "tools",
        "top_logprobs", "top_p", "truncation", "user",
    )
)  # fmt: skip
"""What openai 2.x's own types say a request may hold, as of 2026-11, and what Codex sends to this host besides (0.169)."""


@dataclass(frozen=True, slots=True)
class RememberedReply:
    """What the server keeps of a reply it gave, for a request that continues it."""

    rounds: int
    calls: frozenset[str]


def read(incoming: Incoming, memory: Mapping[str, RememberedReply]) -> Conversation:
    """Decode the request; `memory` holds earlier replies by id. Raises Refusal."""
    body = chat_request.json_body(incoming)
    model = chat_request.required_text(body, "model", "Missing required parameter: 'model'.")
    before = _before(body, memory)
    _check_names(body)
    items = _items(body)
    _check_roles(items)
    for index, item in enumerate(items):
        chat_request.check_length(f"input[{index}].call_id", text(item.get("call_id")), _LONGEST_CALL_ID)
    _check_tool_names(body, items)
    _check_outputs(items, before)
    check_reasoning(items, model)
    _check_include(body, model)
    return Conversation(
        model=model,
        question=next((joined_text(i.get("content")) for i in reversed(items) if i.get("role") == "user"), ""),
        rounds=before.rounds + _rounds(items),
        tools=() if body.get("tool_choice") == "none" else _tools(body),
        forced_tool=text(at(body, "tool_choice.name")) or None,
        tool_results=_tool_results(items),
        schema=fields(at(body, "text.format.schema")) or None,
        streamed=body.get("stream") is True,
        characters=len(text(body.get("instructions"))) + sum(len(str(item)) for item in items),
    )


def _check_names(body: Fields) -> None:
    for name in body:
        if name not in _KNOWN:
            raise Refusal("unknown_field", f"Unknown parameter: '{name}'.", parameter=name)


def _check_tool_names(body: Fields, items: Sequence[Fields]) -> None:
    tools = [(f"tools[{index}]", tool) for index, tool in enumerate(rows(body.get("tools")))]
    calls = [(f"input[{index}]", item) for index, item in enumerate(items) if item.get("type") in _CALLS]
    for place, value in (*tools, ("tool_choice", fields(body.get("tool_choice"))), *calls):
        chat_request.check_length(f"{place}.name", text(value.get("name")), _LONGEST_NAME)


_WITHOUT_THINKING = ("gpt-4", "gpt-3.5", "chatgpt-")


def _check_include(body: Fields, model: str) -> None:
    """Refuse ciphertext of thinking for a model that does not think, in OpenAI's words as of 2026-11."""
    included = body.get("include")
    asked = isinstance(included, list) and "reasoning.encrypted_content" in included
    if asked and model.startswith(_WITHOUT_THINKING):
        message = "Encrypted content is not supported with this model."
        raise Refusal("bad_value", message, parameter="include")


_COUNTED = (
    "conversation", "input", "instructions", "model", "parallel_tool_calls", "personality", "previous_response_id",
    "reasoning", "text", "tool_choice", "tools", "truncation",
)  # fmt: skip


def counted(incoming: Incoming, memory: Mapping[str, RememberedReply]) -> Reply:
    """Count the tokens of a request that nobody answers. Raises Refusal, for fields too that have no tokens."""
    unknown = [name for name in incoming.fields if name not in _COUNTED]
    if unknown:
        raise Refusal("unknown_field", f"Unknown parameter: '{unknown[0]}'.", parameter=unknown[0])
    tokens = read(incoming, memory).token_count
    return whole(pretty({"object": "response.input_tokens", "input_tokens": tokens}))


def _before(body: Fields, memory: Mapping[str, RememberedReply]) -> RememberedReply:
    previous = text(body.get("previous_response_id"))
    if not previous:
        return RememberedReply(0, frozenset())
    if previous not in memory:
        raise Refusal(
            "bad_value", f"Previous response with id '{previous}' not found.", parameter="previous_response_id"
        )
    return memory[previous]


def _items(body: Fields) -> list[Fields]:
    given = body.get("input")
    items = [{"role": "user", "content": given}] if isinstance(given, str) else rows(given)
    if not items and not body.get("previous_response_id"):
        raise Refusal("missing_field", "Missing required parameter: 'input'.", parameter="input")
    return [dict(item) for item in items]


def _check_roles(items: Sequence[Fields]) -> None:
    for index, item in enumerate(items):
        if item.get("type", "message") == "message" and item.get("role") not in _ROLES:
            supported = ", ".join(f"'{role}'" for role in _ROLES[:-1])
            raise Refusal(
                "bad_value",
                f"Invalid value: '{item.get('role')}'. Supported values are: {supported}, and '{_ROLES[-1]}'.",
                parameter=f"input[{index}].role",
            )


def _check_outputs(items: Sequence[Fields], before: RememberedReply) -> None:
    called = set(before.calls) | {text(item.get("call_id")) for item in items if item.get("type") in _CALLS}
    given = {text(item.get("call_id")) for item in items if item.get("type") in _OUTPUTS}
    for call in sorted(given - called):
        raise Refusal(
            "trouble",
            f"No tool call found for function call output with call_id {call}.",
            parameter="input",
            status=400,
        )
    for call in sorted(called - given):
        raise Refusal("trouble", f"No tool output found for function call {call}.", parameter="input", status=400)


def _is_model_item(item: Fields) -> bool:
    return item.get("role") == "assistant" or item.get("type") in (*_CALLS, "reasoning")


def _rounds(items: Sequence[Fields]) -> int:
    """Count the runs of items that the model wrote."""
    rounds, inside = 0, False
    for item in items:
        rounds += _is_model_item(item) and not inside
        inside = _is_model_item(item)
    return rounds


def _tool_results(items: Sequence[Fields]) -> tuple[str, ...]:
    """Return the results that end the conversation."""
    results: list[str] = []
    for item in reversed(items):
        if item.get("type") not in _OUTPUTS:
            break
        results.append(joined_text(item.get("output")))
    return tuple(reversed(results))


def _tools(body: Fields) -> tuple[Tool, ...]:
    return tuple(
        Tool(text(tool.get("name")), text(tool.get("description")), fields(tool.get("parameters")))
        for tool in rows(body.get("tools"))
        if tool.get("type") in ("function", "custom")
    )


def custom_tools(body: Fields) -> frozenset[str]:
    """Return the names of the tools that take plain text."""
    return frozenset(text(tool.get("name")) for tool in rows(body.get("tools")) if tool.get("type") == "custom")


_SIGNER = "openai"
_OPENING = "gAAAAAB"


def encrypted(model: str, reasoning: str, *, size: int) -> str:
    """Return the ciphertext of some reasoning."""
    bound = {"model": model, "said": marks.fingerprint(reasoning)}
    return _OPENING + base64.urlsafe_b64encode(marks.sign(_SIGNER, bound, size=size)).decode()


def check_reasoning(items: Sequence[Fields], model: str) -> None:
    """Refuse ciphertexts that cannot be read, and reasoning that leads to nothing."""
    for index, item in enumerate(items):
        if item.get("type") != "reasoning":
            continue
        if held := text(item.get("encrypted_content")):
            check_one(held, model)
        if not _is_led_to(items[index + 1] if index + 1 < len(items) else {}):
            words = f"Item '{item.get('id') or 'rs_unknown'}' of type 'reasoning' was provided without its required following item."
            raise Refusal("trouble", words, parameter="input", status=400)


def check_one(held: str, model: str) -> None:
    """Refuse a ciphertext that another model wrote, or nobody."""
    opens = held.startswith(_OPENING)
    bound = marks.verify(_SIGNER, marks.decode_base64(held.removeprefix(_OPENING))) if opens else None
    if bound is None or bound.get("model") != model:
        words = f"The encrypted content {held[:4]}...{held[-4:]} could not be verified."
        reason = "Reason: Encrypted content could not be decrypted or parsed."
        raise Refusal("bad_ciphertext", f"{words} {reason}")


def _is_led_to(item: Fields) -> bool:
    kind = item.get("type", "message" if item else "")
    if kind == "message":
        return item.get("role") == "assistant"
    return kind not in ("", "function_call_output", "custom_tool_call_output")
