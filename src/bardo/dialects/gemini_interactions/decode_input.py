"""A client's `input` as messages: text, contents of one turn, or the steps of a conversation."""

from __future__ import annotations

from typing import Any

from bardo.dialects.gemini.constants import FORMAT
from bardo.dialects.gemini.reply_parts import arguments_text
from bardo.dialects.gemini_interactions.constants import NAME, states_of
from bardo.dialects.jsonfield import optional, required, take
from bardo.dialects.wire import encode_json, without
from bardo.values.blocks import (
    Block,
    Carried,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    ResultPart,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    UnknownBlock,
)
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_CONTENTS = frozenset({"text", "image", "audio", "document", "video", "file"})
# Formats whose readable part is a summary; what any other provider thought is full text.
_SUMMARISING = frozenset({FORMAT, "openai-responses-v1", "xai-responses-v1"})


def read_input(value: Any) -> tuple[Message, ...]:
    """Return the messages. Raises InvalidRequest naming the field."""
    given = take(value, (str, dict, list), "input")
    if isinstance(given, str):
        return (Message("user", (TextBlock(given),)),)
    turns = _Turns()
    if isinstance(given, dict):
        turns.add(given, "input")
    else:
        for place, item in enumerate(given):
            turns.add(take(item, dict, f"input[{place}]"), f"input[{place}]")
    return turns.messages()


class _Turns:
    """Steps that follow one another on the same side are one message; so are contents without a step around them."""

    def __init__(self) -> None:
        self._done: list[Message] = []
        self._role: Role = "user"
        self._kind = ""
        self._blocks: list[Block] = []

    def add(self, item: dict[str, Any], at: str) -> None:
        """Take one element of the input."""
        kind = required(item, "type", str, f"{at}.")
        if kind in _CONTENTS:
            self._turn("user", "content").append(_content(item, at))
        elif kind == "user_input":
            self._turn("user", at).extend(_contents(item, at))
        elif kind == "function_result":
            self._turn("user", "results").append(_result(item, at))
        else:
            self._turn("assistant", "steps").extend(_assistant_step(item, kind, at))

    def messages(self) -> tuple[Message, ...]:
        """Return all messages."""
        self._end()
        return tuple(self._done)

    def _turn(self, role: Role, kind: str) -> list[Block]:
        if (role, kind) != (self._role, self._kind):
            self._end()
            self._role, self._kind = role, kind
        return self._blocks

    def _end(self) -> None:
        if self._kind:
            self._done.append(Message(self._role, tuple(self._blocks)))
            self._blocks = []


def _assistant_step(item: dict[str, Any], kind: str, at: str) -> list[Block]:
    if kind == "thought":
        return [_decode_thought(item, at)]
    if kind == "model_output":
        return _output(item, at)
    if kind == "function_call":
        return [_call(item, at)]
    return [UnknownBlock(NAME, item)]


def _decode_thought(item: dict[str, Any], at: str) -> ReasoningBlock:
    opaque = tuple(states_of(optional(item, "signature", str, f"{at}.") or ""))
    given = optional(item, "summary", list, f"{at}.") or []
    items = [take(one, dict, f"{at}.summary[{place}]") for place, one in enumerate(given)]
    texts = [
        required(one, "text", str, f"{at}.summary[{place}].")
        for place, one in enumerate(items)
        if one.get("type", "text") == "text"
    ]
    others = [one for one in items if one.get("type", "text") != "text"]
    fields = {**without(item, "type", "signature", "summary"), **({"summary": others} if others else {})}
    form = opaque[0].format if opaque else FORMAT
    summarised = form in _SUMMARISING
    return ReasoningBlock(
        # Clients keep the pieces of a stream as items.
        text="" if summarised else "".join(texts),
        summary=tuple(texts) if summarised else (),
        format=form,
        opaque=opaque,
        carried=_carried_fields(fields),
    )


def _output(item: dict[str, Any], at: str) -> list[Block]:
    blocks = _contents(item, at)
    opaque = tuple(states_of(optional(item, "signature", str, f"{at}.") or ""))
    first = next((place for place, block in enumerate(blocks) if isinstance(block, TextBlock)), None)
    if opaque and first is not None and isinstance(blocks[first], TextBlock):
        blocks[first] = TextBlock(blocks[first].text, opaque, blocks[first].carried)  # type: ignore[union-attr]
    return blocks


def _call(item: dict[str, Any], at: str) -> ToolCallBlock:
    at = f"{at}."
    return ToolCallBlock(
        id=required(item, "id", str, at),
        name=required(item, "name", str, at),
        arguments=arguments_text(optional(item, "arguments", dict, at) or {}),
        opaque=tuple(states_of(optional(item, "signature", str, at) or "")),
        carried=_carried_fields(without(item, "type", "id", "name", "arguments", "signature")),
    )


def _result(item: dict[str, Any], at: str) -> ToolResultBlock:
    if item.get("result") is None:
        raise InvalidRequest(f"{at}.result is required", param=f"{at}.result")
    return ToolResultBlock(
        call_id=required(item, "call_id", str, f"{at}."),
        name=optional(item, "name", str, f"{at}.") or "",
        content=_result_content(item["result"], f"{at}.result"),
        is_error=optional(item, "is_error", bool, f"{at}.") or False,
        carried=_carried_fields(without(item, "type", "call_id", "name", "result", "is_error", "signature")),
    )


def _result_content(value: Any, at: str) -> tuple[ResultPart, ...]:
    given = take(value, (str, dict, list), at)
    if isinstance(given, str):
        return (TextBlock(given),)
    if isinstance(given, dict):
        return (TextBlock(encode_json(given).decode()),)
    return tuple(_medium(take(one, dict, f"{at}[{place}]"), f"{at}[{place}]") for place, one in enumerate(given))


def _contents(item: dict[str, Any], at: str) -> list[Block]:
    given = item.get("content")
    if isinstance(given, str):
        return [TextBlock(given)]
    listed = optional(item, "content", (list, dict), f"{at}.") or []
    at = f"{at}.content"
    return [
        _content(take(one, dict, f"{at}[{place}]"), f"{at}[{place}]")
        for place, one in enumerate([listed] if isinstance(listed, dict) else listed)
    ]


def _content(item: dict[str, Any], at: str) -> Block:
    # Some clients put results among the contents of a turn.
    return _result(item, at) if item.get("type") == "function_result" else _medium(item, at)


def _medium(item: dict[str, Any], at: str) -> ResultPart:
    kind = required(item, "type", str, f"{at}.")
    if kind == "text":
        return TextBlock(required(item, "text", str, f"{at}."), carried=_carried_fields(without(item, "type", "text")))
    if kind in ("image", "document") and (item.get("data") or item.get("uri")):
        block = ImageBlock if kind == "image" else DocumentBlock
        return block(
            media_type=optional(item, "mime_type", str, f"{at}.") or "",
            data=optional(item, "data", str, f"{at}.") or "",
            url=optional(item, "uri", str, f"{at}.") or "",
            carried=_carried_fields(without(item, "type", "mime_type", "data", "uri")),
        )
    return UnknownBlock(NAME, item)


def _carried_fields(fields: dict[str, Any]) -> Carried | None:
    return Carried(NAME, fields) if fields else None
