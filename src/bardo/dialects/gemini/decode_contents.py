"""A client's `contents` and `systemInstruction` as messages."""

from __future__ import annotations

from typing import Any

from bardo.dialects.gemini.call_book import CallBook
from bardo.dialects.gemini.decode_parts import PartsReader
from bardo.dialects.gemini.words import NAME, split_fields
from bardo.dialects.jsonfield import optional, take
from bardo.values.blocks import Carried
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Role

_ROLES: dict[str, Role] = {"user": "user", "function": "user", "model": "assistant"}


def decode_system(value: Any) -> tuple[Message, ...]:
    """Read a system instruction: an object, a string, or parts."""
    if value is None:
        return ()
    if isinstance(value, str | list):
        value = {"parts": value}
    reader = PartsReader(CallBook())
    reader.read(take(value, dict, "systemInstruction").get("parts"), "systemInstruction")
    blocks = reader.finish()
    return (Message("system", blocks),) if blocks else ()


def decode_contents(value: Any) -> tuple[Message, ...]:
    """Read the conversation. Raises InvalidRequest, naming the field."""
    listed = take(value, (list, dict), "contents")
    conversation = _Conversation()
    for index, content in enumerate([listed] if isinstance(listed, dict) else listed):
        conversation.read(content, f"contents[{index}]")
    return conversation.finish()


class _Conversation:
    """Contents to messages. Google's SDK brings a streamed answer back as one content for each chunk: they are one message."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._book = CallBook()
        self._reader: PartsReader | None = None
        self._role: Role = "user"
        self._carried: Carried | None = None

    def read(self, value: Any, at: str) -> None:
        fields, others = split_fields(take(value, dict, at), ("parts", "role"))
        role = optional(fields, "role", str, f"{at}.") or "user"
        if role not in _ROLES:
            raise InvalidRequest(f"{at}.role {role!r:.60} is unknown", hint="use `user` or `model`", param=f"{at}.role")
        if role == "function":
            others = {"role": role, **others}
        if not self._continues(_ROLES[role], others):
            self._begin(_ROLES[role], others)
        if self._reader is not None:
            self._reader.read(fields.get("parts"), at)

    def finish(self) -> tuple[Message, ...]:
        self._end()
        return tuple(self._messages)

    def _continues(self, role: Role, others: dict[str, Any]) -> bool:
        both = role == self._role == "assistant" and self._reader is not None
        return both and not others and self._carried is None

    def _begin(self, role: Role, others: dict[str, Any]) -> None:
        self._end()
        if role == "assistant" and self._role == "user":
            self._book.new_turn()
        self._role, self._carried = role, Carried(NAME, others) if others else None
        self._reader = PartsReader(self._book, answer=role == "assistant")

    def _end(self) -> None:
        if self._reader is not None:
            self._messages.append(Message(self._role, self._reader.finish(), self._carried))
