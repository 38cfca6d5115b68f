"""The frames of one streamed reply: `chat.completion.chunk` objects, all with the same head.

The bytes before a delta are written once for each choice, so that a plain delta costs two joins. Small fields of the reply stand in
that head, as the providers' own servers have it; large ones are sent once, in the next frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from bardo.dialects.openai_chat.details import piece_of_text
from bardo.streams.sse import encode_sse
from bardo.values.events import ReplyStart

json_bytes = msgspec.json.Encoder().encode
_END = b',"finish_reason":null}]}\n\n'
# The bytes around the two texts of a piece of thinking, and its index.
_PLAIN, _DETAIL, _ = json_bytes({"reasoning_content": "", "reasoning_details": [piece_of_text("", None)]}).split(b'""')
_DETAIL_END = b',"index":%d}]}'
_TEXT = b'{"content":'
_TEXT_END = b"}" + _END
_SMALL = 200
# Fields that stand in every frame; the others stand in the next one only.
_MOST_REPEATED = 32


class ChunkWriter:
    """Writes frames; knows nothing of what is said in them."""

    def __init__(self, model: str) -> None:
        self._head: dict[str, Any] = {"id": "", "object": "chat.completion.chunk", "created": 0, "model": model}
        self._small: dict[str, Any] = {}
        self._pending: dict[str, Any] = {}
        self._prefixes: dict[int, bytes] = {}
        self._text_prefixes: dict[int, bytes] = {}
        self._begun: set[int] = set()

    @property
    def choices(self) -> set[int]:
        """The choices that have begun."""
        return self._begun

    def begin(self, start: ReplyStart) -> None:
        """Take the id, the model and the time, as far as they are known."""
        self._head["id"] = start.id or self._head["id"]
        self._head["model"] = start.model or self._head["model"]
        self._head["created"] = start.created if start.created is not None else self._head["created"]
        self._forget_prefixes()

    def add_fields(self, fields: dict[str, Any]) -> None:
        """Take fields of the reply, for the next frame and, where they are small, for all after it."""
        for name, value in fields.items():
            plain = value is None or (isinstance(value, str | int | float) and len(str(value)) <= _SMALL)
            repeated = plain and (name in self._small or len(self._small) < _MOST_REPEATED)
            target = self._small if repeated else self._pending
            held = target.get(name)
            if isinstance(held, list) and isinstance(value, list):
                held.extend(value)
            else:
                target[name] = [*value] if isinstance(value, list) else value
        self._forget_prefixes()

    def delta(self, choice: int, delta: bytes) -> Sequence[bytes]:
        """Return the frame of a delta that is written already."""
        prefix = self._prefixes.get(choice)
        if prefix is not None:
            return (prefix + delta + _END,)
        return self._next(choice, delta)

    def text(self, choice: int, text: str) -> Sequence[bytes]:
        """Return the frame of a piece of the answer."""
        prefix = self._text_prefixes.get(choice)
        if prefix is not None:
            return (prefix + json_bytes(text) + _TEXT_END,)
        return self.delta(choice, _TEXT + json_bytes(text) + b"}")

    def texts(self, choice: int, texts: Sequence[str]) -> Sequence[bytes]:
        """Return the frames of pieces of the answer, which go on with one that was written."""
        prefix = self._text_prefixes[choice]
        return [prefix + json_bytes(text) + _TEXT_END for text in texts]

    def thinking(self, choice: int, text: str) -> Sequence[bytes]:
        """Return the frame of a piece of thinking of which only the text is known."""
        return self.delta(choice, b'{"reasoning_content":' + json_bytes(text) + b"}")

    def detailed_thinking(self, choice: int, text: str, index: int) -> Sequence[bytes]:
        """Return the frame of text that goes on with the piece `index` of the details."""
        written = json_bytes(text)
        return self.delta(choice, b"".join((_PLAIN, written, _DETAIL, written, _DETAIL_END % index)))

    def arguments(self, choice: int, index: int, text: str) -> Sequence[bytes]:
        """Return the frame of a piece of the arguments of call `index`."""
        head = b'{"tool_calls":[{"index":%d,"function":{"arguments":' % index
        return self.delta(choice, head + json_bytes(text) + b"}}]}")

    def add(self, choice: int, delta: dict[str, Any]) -> Sequence[bytes]:
        """Return the frame of a delta."""
        return self.delta(choice, json_bytes(delta))

    def add_choice(self, choice: int, delta: dict[str, Any], fields: dict[str, Any]) -> Sequence[bytes]:
        """Return the frame of a delta with further fields of its choice."""
        said = {"index": choice, "delta": delta, "finish_reason": None, **fields}
        return (*self._opening(choice), self.frame({"choices": [said]}))

    def finish(self, choice: int, word: str, last: dict[str, Any]) -> Sequence[bytes]:
        """Return the frame with a choice's finish reason; `last` are fields of the reply."""
        said = {"index": choice, "delta": {}, "finish_reason": word}
        return (*self._opening(choice), self.frame({"choices": [said], **last}))

    def frame(self, fields: dict[str, Any]) -> bytes:
        """Return a frame with all that is known of the reply, and `fields`."""
        pending, self._pending = self._pending, {}
        return encode_sse(json_bytes({**self._head, **self._small, **pending, **fields}))

    def _next(self, choice: int, delta: bytes) -> Sequence[bytes]:
        """Return the first frame after the head changed, and keep the head for those that follow."""
        opening = self._opening(choice, content="" if delta.startswith(_TEXT) else None)
        head = json_bytes({**self._head, **self._small})[:-1]
        place = b',"choices":[{"index":' + str(choice).encode() + b',"delta":'
        self._prefixes[choice] = b"data: " + head + place
        self._text_prefixes[choice] = b"data: " + head + place + _TEXT
        large, self._pending = self._pending, {}
        more = b"," + json_bytes(large)[1:-1] if large else b""
        return (*opening, b"data: " + head + more + place + delta + _END)

    def _forget_prefixes(self) -> None:
        self._prefixes.clear()
        self._text_prefixes.clear()

    def _opening(self, choice: int, *, content: str | None = None) -> Sequence[bytes]:
        """Return the frame that begins a choice. Its content is null where no text follows at once, as OpenAI begins a call."""
        if choice in self._begun:
            return ()
        self._begun.add(choice)
        said = {"index": choice, "delta": {"role": "assistant", "content": content}, "finish_reason": None}
        return (self.frame({"choices": [said]}),)


def encode_partial(value: Any, start: ReplyStart) -> bytes:
    """Write a partial answer as a chunk without choices, as the chunk with the usage is."""
    head = {"id": start.id, "object": "chat.completion.chunk", "created": start.created or 0, "model": start.model}
    return encode_sse(json_bytes({**head, "choices": [], "bardo": {"partial": value}}))
