"""Read a Converse request, refusing what Bedrock refuses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from bardo.simulators.exchange import Incoming, Refusal
from bardo.simulators.fields import Fields, at, fields, joined_text, last_text, rows, text
from bardo.simulators.turns import Conversation, Tool

_PATH = re.compile(r"/model/(?P<model>.+)/(?P<method>converse|converse-stream)")
_SCHEMA = "outputConfig.textFormat.structure.jsonSchema.schema"


def called(path: str) -> tuple[str, str]:
    """Split a path into the model and the method; both empty where it is no call."""
    found = _PATH.fullmatch(path)
    return (found["model"], found["method"]) if found else ("", "")


def read(incoming: Incoming, path: str) -> Conversation:
    """Decode the request. Raises Refusal."""
    body = incoming.fields
    if not isinstance(incoming.body, dict):
        raise Refusal("bad_json", "Unexpected end of stream while parsing JSON")
    model, method = called(path)
    messages = rows(body.get("messages"))
    if not messages:
        words = "1 validation error detected: Value at 'messages' failed to satisfy constraint: Member must not be null"
        raise Refusal("missing_field", words, parameter="messages")
    for index, message in enumerate(messages):
        _check_message(index, message, messages[index - 1] if index else {}, signs="claude" in model)
    _check_tools(body, messages)
    return Conversation(
        model=model,
        question=last_text(messages, "role", "user"),
        rounds=sum(message.get("role") == "assistant" for message in messages),
        tools=_tools(body),
        forced_tool=text(at(body, "toolConfig.toolChoice.tool.name")) or None,
        tool_results=tuple(_result_text(result) for result in _blocks(messages[-1], "toolResult")),
        schema=_schema(text(at(body, _SCHEMA))),
        streamed=method == "converse-stream",
        sse=False,
        characters=len(joined_text(body.get("system"))) + sum(len(json.dumps(m.get("content"))) for m in messages),
    )


def _check_message(index: int, message: Fields, before: Fields, *, signs: bool) -> None:
    role = message.get("role")
    if role not in ("user", "assistant"):
        words = "failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]"
        raise Refusal("bad_value", f"1 validation error detected: Value at 'messages.{index + 1}.member.role' {words}")
    if index == 0 and role != "user":
        words = "A conversation must start with a user message. Try again with a conversation that starts with one."
        raise Refusal("bad_value", words)
    content = rows(message.get("content"))
    for position, block in enumerate(content):
        where = f"messages.{index}.content.{position}"
        if isinstance(block.get("text"), str) and not text(block["text"]).strip():
            words = f"The text field in the ContentBlock object at {where} is blank. Add text to the text field, and try again."
            raise Refusal("bad_value", words)
        thought = fields(at(block, "reasoningContent.reasoningText"))
        signature = thought.get("signature")
        if thought and signs and signature is None:
            raise Refusal("bad_value", f"{where}.thinking.signature: Field required")
        if thought and signature == "":
            raise Refusal("bad_value", f"{where}: Invalid `signature` in `thinking` block")
    called = [text(use.get("toolUseId")) for use in _blocks(before, "toolUse")]
    answered = [text(result.get("toolUseId")) for result in _blocks(message, "toolResult")]
    if sorted(called) != sorted(answered) and (answered or called):
        words = "Expected toolResult blocks at messages.{0}.content for the following Ids: {1}, but found: {2}"
        raise Refusal("bad_value", words.format(index, ", ".join(called), ", ".join(answered)))


def _check_tools(body: Fields, messages: Sequence[Fields]) -> None:
    used = any(
        name in block for m in messages for block in rows(m.get("content")) for name in ("toolUse", "toolResult")
    )
    if used and not rows(at(body, "toolConfig.tools")):
        words = "The toolConfig field must be defined when using toolUse and toolResult content blocks."
        raise Refusal("missing_field", words, parameter="toolConfig")


def _tools(body: Fields) -> tuple[Tool, ...]:
    specs = (fields(tool.get("toolSpec")) for tool in rows(at(body, "toolConfig.tools")))
    return tuple(
        Tool(text(spec.get("name")), text(spec.get("description")), fields(at(spec, "inputSchema.json")))
        for spec in specs
        if spec
    )


def _schema(written: str) -> Fields | None:
    if not written:
        return None
    try:
        return fields(json.loads(written))
    except ValueError as error:
        raise Refusal("bad_value", "The provided JSON schema is not valid.", parameter=_SCHEMA) from error


def _blocks(message: Fields, kind: str) -> Iterator[Fields]:
    for block in rows(message.get("content")):
        if isinstance(block.get(kind), dict):
            yield fields(block[kind])


def _result_text(result: Fields) -> str:
    parts = rows(result.get("content"))
    return "".join(json.dumps(part["json"]) if "json" in part else text(part.get("text")) for part in parts)
