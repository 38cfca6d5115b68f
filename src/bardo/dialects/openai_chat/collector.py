"""Collect the deltas of a reply into one whole reply, as a client would."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.openai_chat.carried import add_carried
from bardo.dialects.openai_chat.constants import NAME
from bardo.dialects.openai_chat.encode_messages import call_object
from bardo.dialects.openai_chat.extra import merge_extra
from bardo.values.collected import CarriedFields
from bardo.values.events import ReplyStart


class MessageCollector:
    """Collects one reply; it takes what a ChunkWriter takes."""

    def __init__(self, model: str) -> None:
        self._start = ReplyStart(model=model)
        self._fields = CarriedFields(NAME)
        self._messages: dict[int, _Message] = {}
        self._end: dict[str, Any] = {}

    @property
    def choices(self) -> set[int]:
        """The choices that have begun."""
        return set(self._messages)

    def body(self) -> dict[str, Any]:
        """Return the reply."""
        return {
            "id": self._start.id,
            "object": "chat.completion",
            "created": self._start.created or 0,
            "model": self._start.model,
            **self._fields.fields,
            "choices": [self._messages[choice].choice(choice) for choice in sorted(self._messages)],
            **self._end,
        }

    def begin(self, start: ReplyStart) -> None:
        """Take the id, the model and the time, as far as they are known."""
        known = self._start
        created = known.created if start.created is None else start.created
        self._start = ReplyStart(id=start.id or known.id, model=start.model or known.model, created=created)

    def add_fields(self, fields: dict[str, Any]) -> None:
        """Take fields of the reply."""
        self._fields.merge(NAME, fields)

    def text(self, choice: int, text: str) -> Sequence[bytes]:
        """Take a piece of the answer."""
        self._message(choice).texts.append(text)
        return ()

    def thinking(self, choice: int, text: str) -> Sequence[bytes]:
        """Take a piece of thinking."""
        self._message(choice).thinking.append(text)
        return ()

    def arguments(self, choice: int, index: int, text: str) -> Sequence[bytes]:
        """Take a piece of the arguments of call `index`."""
        self._message(choice).call(index).arguments.append(text)
        return ()

    def add(self, choice: int, delta: dict[str, Any]) -> Sequence[bytes]:
        """Take a delta."""
        self._message(choice).add(delta)
        return ()

    def add_choice(self, choice: int, delta: dict[str, Any], fields: dict[str, Any]) -> Sequence[bytes]:
        """Take fields of a message, and further fields of its choice."""
        message = self._message(choice)
        message.carried |= delta
        message.fields |= fields
        return ()

    def finish(self, choice: int, word: str, last: dict[str, Any]) -> Sequence[bytes]:
        """Take a choice's finish reason; `last` are fields of the reply."""
        self._message(choice).finish = word
        self._end |= last
        return ()

    def frame(self, fields: dict[str, Any]) -> bytes:
        """Take the last fields of the reply."""
        self._end |= {name: value for name, value in fields.items() if name != "choices"}
        return b""

    def _message(self, choice: int) -> _Message:
        message = self._messages.get(choice)
        if message is None:
            message = self._messages[choice] = _Message()
        return message


class _Message:
    """The message of one choice, and the fields of the choice."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.thinking: list[str] = []
        self.carried: dict[str, Any] = {}
        self.fields: dict[str, Any] = {}
        self.finish = ""
        self._details: list[dict[str, Any]] = []
        self._calls: dict[int, _Call] = {}
        self._refusals: list[str] = []
        self._extra: dict[str, Any] = {}
        self._blocks: list[Any] = []

    def call(self, index: int) -> _Call:
        """Return call `index`."""
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _Call()
        return call

    def add(self, delta: dict[str, Any]) -> None:
        """Take a delta."""
        for name, value in delta.items():
            if name == "tool_calls":
                for piece in value:
                    self.call(piece["index"]).add(piece)
            elif name == "reasoning_details":
                for piece in value:
                    _add_detail(self._details, piece)
            elif name == "reasoning_content":
                self.thinking.append(value)
            elif name == "refusal":
                self._refusals.append(value)
            elif name == "content_blocks":
                self._blocks += value
            else:
                self._extra = merge_states(self._extra, value)

    def choice(self, index: int) -> dict[str, Any]:
        """Return the choice."""
        message = add_carried(self._message(), self.carried)
        return {"index": index, "message": message, "finish_reason": self.finish, **self.fields}

    def _message(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.texts) if self.texts else None}
        if self._refusals:
            message["refusal"] = "".join(self._refusals)
        if self.thinking:
            message["reasoning_content"] = "".join(self.thinking)
        if self._details:
            message["reasoning_details"] = self._details
        if self._calls:
            message["tool_calls"] = [self._calls[index].object() for index in sorted(self._calls)]
        if self._extra:
            message["extra_content"] = self._extra
        if self._blocks:
            message["content_blocks"] = self._blocks
        return message


class _Call:
    """One tool call."""

    def __init__(self) -> None:
        self.arguments: list[str] = []
        self._id = self._name = ""
        self._carried: dict[str, Any] = {}

    def add(self, piece: dict[str, Any]) -> None:
        """Take a piece: the first one has the id and the name."""
        fields = {
            name: value for name, value in piece.items() if name not in ("index", "id", "function", "extra_content")
        }
        function = {name: value for name, value in piece["function"].items() if name not in ("name", "arguments")}
        self._id = piece.get("id") or self._id
        self._name = piece["function"].get("name") or self._name
        self._carried |= fields
        if function:
            self._carried["function"] = self._carried.get("function", {}) | function
        if "extra_content" in piece:
            self._carried["extra_content"] = merge_states(
                self._carried.get("extra_content", {}), piece["extra_content"]
            )

    def object(self) -> dict[str, Any]:
        """Return the call."""
        return call_object(self._id, self._name, "".join(self.arguments), self._carried)


def _add_detail(details: list[dict[str, Any]], piece: dict[str, Any]) -> None:
    """Add a piece of thinking: to the one before where that is of its index and type, or where one of them holds no content."""
    last = details[-1] if details and details[-1]["index"] == piece["index"] else None
    if last is None:
        details.append(dict(piece))
    elif not (_is_bare(last) or _is_bare(piece) or last["type"] == piece["type"]):
        details.append({"format": last["format"], **piece})
    else:
        kind = piece["type"] if _is_bare(last) else last["type"]
        texts = {name: last.get(name, "") + piece[name] for name in ("text", "summary") if piece.get(name)}
        empty = [name for name in ("text", "summary") if name in piece and not piece[name]]
        last |= {name: value for name, value in piece.items() if name not in empty} | texts | {"type": kind}


def _is_bare(piece: dict[str, Any]) -> bool:
    return not (piece.get("text") or piece.get("summary") or "data" in piece or "signature" in piece)


def merge_states(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return two `extra_content` objects as one; both may hold state that bardo keeps there."""
    before, more = one.get("bardo"), other.get("bardo")
    merged = merge_extra(one, other)
    if isinstance(before, dict) and isinstance(more, dict) and "opaque" in before and "opaque" in more:
        merged["bardo"]["opaque"] = before["opaque"] | more["opaque"]
    return merged
