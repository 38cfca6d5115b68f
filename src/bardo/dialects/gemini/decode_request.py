"""A client's generateContent body as a Request. Both spellings of the real API are read: `topP` and `top_p`."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.dialects.bounded_json import MAX_DEPTH
from bardo.dialects.gemini import wire
from bardo.dialects.gemini.constants import NAME, split_fields
from bardo.dialects.gemini.decode_config import Config, decode_config
from bardo.dialects.gemini.decode_parts import CallBook, PartsReader
from bardo.dialects.gemini.decode_tools import decode_tool_choice, decode_tools
from bardo.dialects.jsonfield import decode_object, optional, take
from bardo.dialects.known_beginnings import KnownBeginnings
from bardo.dialects.options import read_options
from bardo.dialects.repeated_items import read_once
from bardo.dialects.structs import carried_fields, read
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import BardoOptions, Message, Request, Role
from bardo.values.wire import Arrival

READ = ("model", "contents", "systemInstruction", "tools", "toolConfig", "generationConfig")


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read the body; model and streaming stand in the URL. Raises InvalidRequest, naming the field."""
    parsed = decode_object(body)
    try:
        return _request(parsed, body, arrival)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply", hint=f"stay under {MAX_DEPTH} levels") from None


def _request(body: dict[str, Any], raw: bytes, arrival: Arrival) -> Request:
    own = {name: value for name, value in body.items() if name != "bardo"}
    fields, extra = split_fields(own, READ)
    if not fields.get("contents"):
        raise InvalidRequest("contents is required", hint="give at least one content", param="contents")
    config = decode_config(fields.get("generationConfig"))
    choice, tool_config = decode_tool_choice(fields.get("toolConfig"))
    extra |= {"generationConfig": config.unknown_fields} if config.unknown_fields else {}
    extra |= {"toolConfig": tool_config} if tool_config else {}
    return Request(
        model=_model(fields, arrival),
        messages=(*_system(body, fields), *decode_contents(fields["contents"])),
        tools=decode_tools(fields.get("tools")),
        tool_choice=choice,
        max_output_tokens=config.max_output_tokens,
        sampling=config.sampling,
        reasoning=config.reasoning,
        output_format=config.output_format,
        choices=config.choices,
        stream=bool(arrival.stream),
        dialect=NAME,
        extra=extra,
        body=own,
        body_bytes=raw,
        options=_options(body, config),
    )


def _system(body: dict[str, Any], fields: dict[str, Any]) -> tuple[Message, ...]:
    """Return the system prompt, which stands in `body` under one of two spellings."""
    field = "systemInstruction" if "systemInstruction" in body else "system_instruction"
    return read_once(body, field, f"{NAME}.system", lambda: decode_system(fields.get("systemInstruction")))


def _model(fields: dict[str, Any], arrival: Arrival) -> str:
    model = arrival.model or optional(fields, "model", str) or ""
    if not model:
        raise InvalidRequest(
            "the URL names no model", hint="post to /v1beta/models/{model}:generateContent", param="model"
        )
    return model.removeprefix("models/")


def _options(fields: dict[str, Any], config: Config) -> BardoOptions:
    asked = read_options(fields)
    hidden = config.reasoning is not None and config.reasoning.visible is False
    return msgspec.structs.replace(asked, omit_reasoning=True) if hidden else asked


_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}


def decode_system(value: Any) -> tuple[Message, ...]:
    """Read a system instruction: an object, a string, or parts."""
    if value is None:
        return ()
    if isinstance(value, str | list):
        value = {"parts": value}
    reader = PartsReader(CallBook())
    reader.read(read(value, wire.Content, "systemInstruction"))
    blocks = reader.finish()
    return (Message("system", blocks),) if blocks else ()


def decode_contents(value: Any) -> tuple[Message, ...]:
    """Read the conversation. Raises InvalidRequest, naming the field."""
    listed: Any = take(value, (list, dict), "contents")
    contents = [listed] if isinstance(listed, dict) else listed
    return _BEGINNINGS.read(contents, Conversation, _read_content).finish()


def _read_content(conversation: Conversation, content: Any, place: int) -> None:
    conversation.read(content, f"contents[{place}]")


class Conversation:
    """Contents to messages. Google's SDK brings a streamed answer back as one content for each chunk: they are one message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._book = CallBook()
        self._reader: PartsReader | None = None
        self._role: Role = "user"
        self._carried: Carried | None = None

    def read(self, value: Any, at: str) -> None:
        content = read(value, wire.Content, at)
        other_fields, role = carried_fields(content) or {}, content.role or "user"
        if role not in _ROLES:
            raise InvalidRequest(f"{at}.role {role!r:.60} is unknown", hint="use `user` or `model`", param=f"{at}.role")
        if role == "function":
            other_fields = {"role": role, **other_fields}
        if not self._continues(_ROLES[role], other_fields):
            self._begin(_ROLES[role], other_fields)
        if self._reader is not None:
            self._reader.read(content)

    def copy(self) -> Conversation:
        """Return a conversation that has read the same, and goes on by itself."""
        copied = Conversation()
        copied._messages, copied._book = [*self._messages], self._book.copy()
        copied._reader = None if self._reader is None else self._reader.copy(copied._book)
        copied._role, copied._carried = self._role, self._carried
        return copied

    def finish(self) -> tuple[Message, ...]:
        self._end()
        return tuple(self._messages)

    def _continues(self, role: Role, other_fields: dict[str, Any]) -> bool:
        both = role == self._role == "assistant" and self._reader is not None
        return both and not other_fields and self._carried is None

    def _begin(self, role: Role, other_fields: dict[str, Any]) -> None:
        self._end()
        if role == "assistant" and self._role == "user":
            self._book.new_turn()
        self._role, self._carried = role, Carried(NAME, other_fields) if other_fields else None
        self._reader = PartsReader(self._book, answer=role == "assistant")

    def _end(self) -> None:
        if self._reader is not None:
            self._messages.append(Message(self._role, self._reader.finish(), self._carried))


_BEGINNINGS: KnownBeginnings[Conversation] = KnownBeginnings()
