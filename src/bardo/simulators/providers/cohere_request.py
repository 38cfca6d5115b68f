"""Read a Cohere chat request, refusing what Cohere refuses."""

from __future__ import annotations

from bardo.simulators.conversation import Conversation, closing_tool_results, function_tools
from bardo.simulators.fields import Fields, at, fields, joined_text, number, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal

_ROLES = ("user", "assistant", "system", "tool")


def read(incoming: Incoming) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "invalid json syntax")
    messages = _messages(body)
    _check(body)
    return Conversation(
        model=text(body.get("model")),
        question=next((joined_text(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), ""),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=() if body.get("tool_choice") == "NONE" else function_tools(body),
        tool_results=closing_tool_results(messages),
        schema=fields(at(body, "response_format.json_schema")) or None,
        streamed=body.get("stream") is True,
        characters=sum(len(joined_text(message.get("content"))) for message in messages),
    )


def _messages(body: Fields) -> list[Fields]:
    if not text(body.get("model")):
        raise Refusal("missing_field", "model is required", parameter="model")
    messages = rows(body.get("messages"))
    if not messages:
        words = "invalid request: message must be at least 1 token long or tool results must be specified."
        raise Refusal("missing_field", words, parameter="messages")
    called: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") not in _ROLES:
            words = f"invalid request: role of message {index} must be one of {', '.join(_ROLES)}"
            raise Refusal("bad_value", words, parameter=f"messages[{index}].role")
        called |= {text(call.get("id")) for call in rows(message.get("tool_calls"))}
        if message.get("role") == "tool" and text(message.get("tool_call_id")) not in called:
            words = "invalid request: the tool_call_id of a tool message must be of a call before it"
            raise Refusal("bad_value", words, parameter=f"messages[{index}].tool_call_id")
    return messages


def _check(body: Fields) -> None:
    if body.get("tool_choice") not in (None, "REQUIRED", "NONE"):
        raise Refusal("bad_value", "invalid request: tool_choice must be REQUIRED or NONE", parameter="tool_choice")
    if body.get("response_format") and body.get("tools"):
        words = "invalid request: response_format is not supported with RAG or tools"
        raise Refusal("bad_value", words, parameter="response_format")
    budget = at(body, "thinking.token_budget")
    if budget is not None and (number(budget) or 0) < 1:
        words = "invalid request: thinking.token_budget must be a positive integer"
        raise Refusal("bad_value", words, parameter="thinking.token_budget")
    for name, most in (("p", 0.99), ("frequency_penalty", 1), ("presence_penalty", 1)):
        value = body.get(name)
        if isinstance(value, int | float) and not 0 <= value <= most:
            raise Refusal("bad_value", f"invalid request: {name} must be between 0 and {most}", parameter=name)
