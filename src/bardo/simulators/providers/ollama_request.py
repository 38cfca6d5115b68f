"""Read a request of Ollama's own chat route, refusing what Ollama refuses."""

from __future__ import annotations

from bardo.simulators.conversation import Conversation, closing_tool_results, function_tools
from bardo.simulators.fields import Fields, fields, rows, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.refusal import Refusal

_THINK = (True, False, "high", "medium", "low", "max")
_THINK_WORDS = '"high", "medium", "low", "max", true, or false'


def read(incoming: Incoming) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        words = "invalid character in JSON" if incoming.raw else "missing request body"
        raise Refusal("bad_json", words)
    if not text(body.get("model")):
        raise Refusal("missing_field", "model is required", parameter="model")
    _check(body)
    messages = rows(body.get("messages"))
    return Conversation(
        model=text(body.get("model")),
        question=next((text(m.get("content")) for m in reversed(messages) if m.get("role") == "user"), ""),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=function_tools(body),
        tool_results=closing_tool_results(messages, read_content=text),
        schema=fields(body.get("format")) or None,
        streamed=body.get("stream") is not False,
        characters=sum(len(text(message.get("content"))) for message in messages),
    )


def _check(body: Fields) -> None:
    think = body.get("think")
    if think is not None and not any(type(think) is type(known) and think == known for known in _THINK):
        raise Refusal("bad_value", f"invalid think value: {think!r} (must be {_THINK_WORDS})", parameter="think")
    for index, message in enumerate(rows(body.get("messages"))):
        if not isinstance(message.get("content", ""), str | None):
            words = "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
            raise Refusal("bad_value", words, parameter=f"messages[{index}].content")
        for call in rows(message.get("tool_calls")):
            if not isinstance(fields(call.get("function")).get("arguments", {}), dict):
                raise Refusal("bad_value", "Value looks like object, but can't find closing '}' symbol")
