"""Output items as they are written for a client, whole or streamed.

They gather what the reply says of each item and give it as the object that stands in `output`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects.openai_responses.item_objects import MergedFields, reasoning_item
from bardo.dialects.openai_responses.state import attach, is_native, seal_thinking
from bardo.dialects.signed_blocks import AFTER
from bardo.values.blocks import Opaque
from bardo.values.collected import OpaqueStates


class WrittenPart:
    """One text: of a message, of thinking, of a summary, or the arguments of a call. `number` is the part of a summary it holds."""

    __slots__ = ("closed", "fields", "index", "item", "kind", "number", "pieces", "plain", "prefix", "states")

    def __init__(self, kind: str, fields: dict[str, Any] | None = None, *, number: int | None = None) -> None:
        # Whether it holds text, and not what the provider itself gave as a summary.
        self.plain = number is None
        self.kind = kind
        self.fields: dict[str, Any] = fields or {}
        self.number = number
        self.pieces: list[str] = []
        # Set when it is announced: where it stands, and how each of its deltas begins.
        self.index = 0
        self.item: WrittenItem | None = None
        self.states = OpaqueStates()
        self.prefix = b""
        self.closed = False

    @property
    def text(self) -> str:
        """All of it."""
        return "".join(self.pieces)

    @property
    def over(self) -> bool:
        """Whether state comes too late for it: its message is closed."""
        return self.item is not None and self.item.closed

    @property
    def is_empty(self) -> bool:
        """Whether it is an answer's text without a character or a field."""
        return self.kind == "output_text" and not self.text and not self.fields

    def take(self, opaque: Opaque) -> None:
        """Keep opaque state."""
        self.states.add(opaque)
        if self.item is not None:
            self.item.has_states = True

    def learn(self, fields: dict[str, Any]) -> None:
        """Take fields of this dialect; those of the message become the message's."""
        if not isinstance(self.fields, MergedFields):
            self.fields = MergedFields(self.fields)
        self.fields.merge(fields)
        if self.item is not None and isinstance(fields.get("item"), dict):
            self.item.fields = fields["item"]

    def done_item(self, text: str) -> dict[str, Any]:
        """Return the part with `text` in it."""
        if self.kind == "refusal":
            return {"type": "refusal", "refusal": text, **self._own_fields()}
        if self.kind == "output_text":
            return {"type": "output_text", "annotations": [], "logprobs": [], "text": text, **self._own_fields()}
        return {"type": self.kind, "text": text}

    def _own_fields(self) -> dict[str, Any]:
        return {name: value for name, value in self.fields.items() if name != "item"}


class WrittenItem:
    """An output item being written. `states` is opaque state that must be written with it."""

    prefix = ""

    def __init__(self, fields: dict[str, Any]) -> None:
        self.fields = fields
        self.id = str(fields.get("id") or "")
        self.index = -1
        self.parts: list[WrittenPart] = []
        self.open_parts: list[WrittenPart] = []
        self.blocks: set[int] = set()
        """The blocks that further text of may come for."""
        self.has_states = False
        self._by_number: dict[tuple[str, int | None], WrittenPart] = {}
        self._counts: dict[str, int] = {}
        self.states = OpaqueStates()
        self.status = ""

    @property
    def closed(self) -> bool:
        """Whether it was told to be over."""
        return self.status != ""

    @property
    def over(self) -> bool:
        """Whether state comes too late for it."""
        return self.closed

    def add(self, part: WrittenPart) -> int:
        """Take a part, and return its place among those of its kind: all texts of a message are of one."""
        count = self._counts.get(part.kind, 0)
        place = len(self.parts) if part.kind in ("output_text", "refusal") else count
        self._counts[part.kind] = count + 1
        self._by_number.setdefault((part.kind, part.number), part)
        self.parts.append(part)
        self.open_parts.append(part)
        self.has_states |= bool(part.states)
        return place

    def find(self, kind: str, number: int | None) -> WrittenPart | None:
        """Return the part of this kind with this number, None where there is none yet."""
        return self._by_number.get((kind, number))

    def done_item(self, status: str) -> dict[str, Any]:
        """Return the item as it stands in the output."""
        raise NotImplementedError

    def added_item(self) -> dict[str, Any]:
        """Return the item as it is announced, before it says anything."""
        return self.done_item("in_progress")

    @property
    def additional(self) -> dict[str, Any]:
        """The fields that bardo has no word for. An id that comes after the announcement comes too late."""
        return {name: value for name, value in self.fields.items() if name != "id"}

    def take(self, opaque: Opaque) -> None:
        """Keep opaque state; a later one of its kind replaces the earlier."""
        self.states.add(opaque)

    def learn(self, fields: dict[str, Any]) -> None:
        """Take fields of this dialect."""
        if not isinstance(self.fields, MergedFields):
            self.fields = MergedFields(self.fields)
        self.fields.merge(fields)
        if self.index < 0 and "id" in fields:
            self.id = str(fields["id"])

    def riders(self) -> list[tuple[str, list[Opaque]]]:
        """Return the state that must travel in an item of its own, with what it belongs to."""
        return []


class WrittenMessage(WrittenItem):
    """A message. Its fields are what the blocks carry under `item`; `sealed` is the state of its texts, where it holds that itself."""

    prefix = "msg"

    def __init__(self, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.sealed = ""

    def done_item(self, status: str) -> dict[str, Any]:
        parts = [part.done_item(part.text) for part in self.parts]
        fixed = {"type": "message", "id": self.id, "status": status, "role": "assistant", "content": parts}
        return {**fixed, **self.additional, **({"encrypted_content": self.sealed} if self.sealed else {})}

    def added_item(self) -> dict[str, Any]:
        return {**self.done_item("in_progress"), "status": "in_progress", "content": []}

    def riders(self) -> list[tuple[str, list[Opaque]]]:
        states = [opaque for part in self.parts for opaque in part.states]
        return [("text", states)] if states else []

    def seal_states(self) -> None:
        """Hold the state of its texts itself: it ends the reply, and clients look for the answer in the last item.

        An empty text behind another is left out, and its state says so.
        """
        last = self.parts[-1] if self.parts else None
        if last is not None and len(self.parts) > 1 and last.is_empty and last.states:
            self.parts.pop()
            self.seal_empty_text(list(last.states))
        states = [opaque for part in self.parts for opaque in part.states]
        if states and not self.sealed:
            self.sealed = attach("text", states)
            for part in self.parts:
                part.states = OpaqueStates()

    def seal_empty_text(self, states: Sequence[Opaque]) -> None:
        """Hold the state of an empty text behind the last one."""
        self.sealed = attach(AFTER, states)


class WrittenReasoning(WrittenItem):
    """A reasoning item. `as_summary`: its text is written as a summary, which the client asked for."""

    prefix = "rs"

    def __init__(self, fields: dict[str, Any], *, as_summary: bool = False) -> None:
        super().__init__(fields)
        self.as_summary = as_summary

    def place_of(self, number: int | None) -> tuple[str, int | None]:
        """Return the kind and the number of the part that holds thinking; `number` is that of a part of a summary."""
        if number is None and not self.as_summary:
            return "reasoning_text", None
        return "summary_text", number or 0

    def add_text(self, text: str, number: int | None) -> None:
        """Add thinking, or part `number` of a summary, to its part."""
        kind, place = self.place_of(number)
        part = self.find(kind, place)
        if part is None:
            part = WrittenPart(kind, number=place)
            part.plain = number is None
            self.add(part)
        part.pieces.append(text)

    def take(self, opaque: Opaque) -> None:
        super().take(opaque)
        if opaque.kind == "id" and is_native(opaque, self.fields) and self.index < 0:
            self.id = opaque.data

    def done_item(self, status: str) -> dict[str, Any]:
        text = "".join(part.text for part in self.parts if part.kind == "reasoning_text")
        item = reasoning_item(self.id, [part.text for part in self._ordered()], text)
        if encrypted := self._encrypted():
            item["encrypted_content"] = encrypted
        return {**item, **self.additional}

    def added_item(self) -> dict[str, Any]:
        return {"type": "reasoning", "id": self.id, "summary": []}

    def _encrypted(self) -> str:
        """Return its own ciphertext as it is. Anything else is sealed, an id that came after the announcement included."""
        native = all(is_native(opaque, self.fields) for opaque in self.states)
        if not native or any(opaque.kind == "id" and opaque.data != self.id for opaque in self.states):
            return seal_thinking(self.states.states(), self._text_to_seal())
        if self.as_summary and not self.states and (text := self._text_to_seal()):
            return seal_thinking((), text)
        return next((opaque.data for opaque in self.states if opaque.kind == "encrypted"), "")

    def _text_to_seal(self) -> str:
        # A signature holds for its exact text, and a summary that was none is text again on its way back.
        signed = any(opaque.kind == "signature" for opaque in self.states)
        kind = "summary_text" if self.as_summary else "reasoning_text"
        texts = (part.text for part in self.parts if part.kind == kind and part.plain)
        return "".join(texts) if signed or self.as_summary else ""

    def _ordered(self) -> list[WrittenPart]:
        return sorted((part for part in self.parts if part.kind == "summary_text"), key=lambda part: part.number or 0)


class WrittenOther(WrittenItem):
    """An item passed on whole."""

    prefix = "item"

    def done_item(self, status: str) -> dict[str, Any]:
        return self.fields

    def added_item(self) -> dict[str, Any]:
        return self.fields


class WrittenCarrier(WrittenItem):
    """A reasoning item that holds nothing but the sealed state of something else."""

    prefix = "rs"

    def __init__(self, target: str, states: Sequence[Opaque]) -> None:
        super().__init__({})
        self._sealed = attach(target, states)

    def done_item(self, status: str) -> dict[str, Any]:
        return {"type": "reasoning", "id": self.id, "summary": [], "encrypted_content": self._sealed}


def joins(message: WrittenMessage, part: WrittenPart) -> bool:
    """Whether the part continues the message: it says so, or says nothing of a message of its own.

    State follows the message of its text, and would be taken for that of a later text in the same message.
    """
    item = part.fields.get("item")
    if message.has_states:
        return False
    return item is None or (bool(message.id) and item.get("id") == message.id)


def message_for(part: WrittenPart) -> WrittenMessage:
    """Return a new message for the part."""
    item = part.fields.get("item")
    return WrittenMessage(dict(item) if isinstance(item, dict) else {})
