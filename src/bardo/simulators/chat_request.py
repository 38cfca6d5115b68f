"""Read a Chat Completions request, with the refusals that all servers share."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.simulators.exchange import Incoming, Refusal
from bardo.simulators.fields import Fields, at, fields, joined_text, rows, text
from bardo.simulators.turns import Conversation, closing_tool_results, function_tools

_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
_BAD_JSON = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP library "
    "correctly. The API expects a JSON payload, but what was sent was not valid JSON.)"
)


def read(incoming: Incoming, *, checks_tool_messages: bool = False) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = json_body(incoming)
    model = required_text(body, "model", "you must provide a model parameter")
    messages = _messages(body)
    if checks_tool_messages:
        _check_tool_messages(messages)
    return Conversation(
        model=model,
        question=next((joined_text(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), ""),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=() if body.get("tool_choice") == "none" else function_tools(body),
        forced_tool=text(at(body, "tool_choice.function.name")) or None,
        tool_results=closing_tool_results(messages),
        schema=fields(at(body, "response_format.json_schema.schema")) or None,
        streamed=body.get("stream") is True,
        characters=sum(len(joined_text(message.get("content"))) for message in messages),
    )


def continues_answer(body: Fields) -> bool:
    """Whether the model continues the last assistant message (prefill). Raises Refusal where the request contradicts itself."""
    if body.get("continue_final_message") is not True:
        return False
    if body.get("add_generation_prompt") is True:
        raise Refusal("bad_value", "Cannot set both `continue_final_message` and `add_generation_prompt` to True.")
    if text(rows(body.get("messages"))[-1].get("role")) != "assistant":
        raise Refusal("bad_value", "continue_final_message is set but the final message is not an assistant message.")
    return True


def json_body(incoming: Incoming) -> Fields:
    """Return the body, or refuse one that is not a JSON object."""
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", _BAD_JSON)
    return incoming.fields


def required_text(body: Fields, name: str, message: str) -> str:
    """Return a field that must hold some text, or refuse."""
    value = text(body.get(name))
    if not value:
        raise Refusal("missing_field", message, parameter=name)
    return value


def error_type(refusal: Refusal) -> str:
    """Return OpenAI's type of an error."""
    if refusal.status == 429:
        return "rate_limit_error"
    return "server_error" if refusal.status >= 500 else "invalid_request_error"


def error_code(refusal: Refusal) -> str | None:
    """Return OpenAI's code of an error."""
    if refusal.status == 429:
        return "rate_limit_exceeded"
    if refusal.reason == "missing_field" and refusal.parameter != "model":
        return "missing_required_parameter"
    return {
        "wrong_key": "invalid_api_key",
        "unknown_model": "model_not_found",
        "bad_value": "invalid_value",
        "too_long": "string_above_max_length",
        "unknown_field": "unknown_parameter",
        "unsupported_field": "unsupported_parameter",
        "unknown_path": "unknown_url",
        "wrong_method": "method_not_supported",
        "bad_ciphertext": "invalid_encrypted_content",
    }.get(refusal.reason)


def _messages(body: Fields) -> list[Fields]:
    messages = rows(body.get("messages"))
    if not messages:
        raise Refusal("missing_field", "Missing required parameter: 'messages'.", parameter="messages")
    for index, message in enumerate(messages):
        if message.get("role") not in _ROLES:
            supported = ", ".join(f"'{role}'" for role in _ROLES[:-1])
            raise Refusal(
                "bad_value",
                f"Invalid value: '{message.get('role')}'. Supported values are: {supported}, and '{_ROLES[-1]}'.",
                parameter=f"messages[{index}].role",
            )
    return messages


def _check_tool_messages(messages: Sequence[Fields]) -> None:
    """Every tool result answers a call of the assistant message before it, and every call is answered."""
    open_calls: set[str] = set()
    for index, message in enumerate(messages):
        if message.get("role") == "tool":
            call = text(message.get("tool_call_id"))
            if call not in open_calls:
                raise Refusal(
                    "trouble",
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
                    "with 'tool_calls'.",
                    parameter=f"messages.[{index}].role",
                    status=400,
                )
            open_calls.discard(call)
            continue
        _check_answered(open_calls, index)
        open_calls = {text(call.get("id")) for call in rows(message.get("tool_calls"))}
    _check_answered(open_calls, len(messages))


def developer_message(body: Fields) -> int | None:
    """Return the place of the first message of the role `developer`, which many speakers do not have."""
    roles = [message.get("role") for message in rows(body.get("messages"))]
    return roles.index("developer") if "developer" in roles else None


def check_system_place(body: Fields) -> None:
    """Refuse a system message behind the first message, as the chat template of Qwen3.5 does."""
    if any(message.get("role") == "system" for message in rows(body.get("messages"))[1:]):
        raise Refusal("bad_value", "System message must be at the beginning.")


def check_length(where: str, given: str, most: int) -> None:
    """Refuse text of more than `most` characters, in OpenAI's words."""
    if len(given) > most:
        raise Refusal(
            "too_long",
            f"Invalid '{where}': string too long. Expected a string with maximum length {most}, but got a string with length "
            f"{len(given)} instead.",
            parameter=where,
        )


def check_call_ids(body: Fields, most: int) -> None:
    """Refuse an id of a call with more than `most` characters."""
    for index, message in enumerate(rows(body.get("messages"))):
        named = [
            (f"tool_calls[{at}].id", text(call.get("id"))) for at, call in enumerate(rows(message.get("tool_calls")))
        ]
        for field, given in (*named, ("tool_call_id", text(message.get("tool_call_id")))):
            check_length(f"messages[{index}].{field}", given, most)


def check_tool_names(body: Fields, most: int) -> None:
    """Refuse the name of a function with more than `most` characters: of a tool, of the one that is chosen, or of a call."""
    named = [(f"tools[{index}]", tool) for index, tool in enumerate(rows(body.get("tools")))]
    named += [("tool_choice", fields(body.get("tool_choice")))]
    for index, message in enumerate(rows(body.get("messages"))):
        named += [
            (f"messages[{index}].tool_calls[{at}]", call) for at, call in enumerate(rows(message.get("tool_calls")))
        ]
    for place, value in named:
        check_length(f"{place}.function.name", text(fields(value.get("function")).get("name")), most)


def own_fields_of_answers(body: Fields) -> list[tuple[int, str]]:
    """Return the fields of OpenAI's replies in assistant's messages, which strict servers refuse, each with the place of its message."""
    return [
        (index, name)
        for index, message in enumerate(rows(body.get("messages")))
        if message.get("role") == "assistant"
        for name in ("annotations", "audio", "refusal")
        if name in message
    ]


def check_pictures(body: Fields) -> None:
    """Refuse a picture beside the user's own messages, in OpenAI's words as of 2026-11."""
    for index, message in enumerate(rows(body.get("messages"))):
        role = text(message.get("role"))
        if role != "user" and any(part.get("type") == "image_url" for part in rows(message.get("content"))):
            raise Refusal(
                "bad_value",
                f"Invalid 'messages[{index}]'. Image URLs are only allowed for messages with role 'user', but this message with role "
                f"'{role}' contains an image URL.",
                parameter=f"messages.[{index}]",
            )


def _check_answered(open_calls: set[str], index: int) -> None:
    if open_calls:
        raise Refusal(
            "trouble",
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(sorted(open_calls))}",
            parameter=f"messages.[{index}].role",
            status=400,
        )
