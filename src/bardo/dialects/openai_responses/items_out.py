"""Output items as they are written for a client: each gathers what the reply says of it and gives the object that stands in `output`.

A stream announces them, tells them piece by piece and closes them; a whole reply fills each at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from bardo.dialects.openai_responses.functions import FreeInput, FunctionNames
from bardo.dialects.openai_responses.wire import attach, digest_of, is_native, made_id, seal_thinking
from bardo.dialects.shared.json_values import JsonObject, encode_json, input_of
from bardo.dialects.shared.states import AFTER
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque
from bardo.values.fold import OpaqueStates
from bardo.values.runs import JoinedText


class MergedFields(JsonObject):
    """Fields to which more are added: lists are appended to, as in a Response. What was given first is never changed."""

    __slots__ = ("_own_lists",)

    def __init__(self, fields: JsonObject) -> None:
        super().__init__(fields)
        self._own_lists: set[str] = set()

    def merge(self, fields: JsonObject) -> None:
        """Add fields."""
        for name, value in fields.items():
            before = self.get(name)
            if not isinstance(before, list) or not isinstance(value, list):
                self[name] = value
                self._own_lists.discard(name)
            elif name in self._own_lists:
                before.extend(value)
            else:
                self[name] = [*before, *value]
                self._own_lists.add(name)


class WrittenPart:
    """One text: of a message, of thinking, of a summary, or the arguments of a call. `number` is the part of a summary it holds."""

    __slots__ = ("closed", "fields", "index", "item", "kind", "number", "plain", "prefix", "states", "written")

    def __init__(self, kind: str, fields: JsonObject | None = None, *, number: int | None = None) -> None:
        # Whether it holds text, and not what the provider itself gave as a summary.
        self.plain = number is None
        self.kind = kind
        self.fields: JsonObject = fields or {}
        self.number = number
        self.written = JoinedText()
        # Set when it is announced: where it stands, and how each of its deltas begins.
        self.index = 0
        self.item: WrittenItem | None = None
        self.states = OpaqueStates()
        self.prefix = b""
        self.closed = False

    @property
    def text(self) -> str:
        """All of it."""
        return self.written.text()

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

    def learn(self, fields: JsonObject) -> None:
        """Take fields of this dialect; those of the message become the message's."""
        if not isinstance(self.fields, MergedFields):
            self.fields = MergedFields(self.fields)
        self.fields.merge(fields)
        if self.item is not None and isinstance(fields.get("item"), dict):
            self.item.fields = fields["item"]

    def done_item(self, text: str) -> JsonObject:
        """Return the part with `text` in it."""
        if self.kind == "refusal":
            return {"type": "refusal", "refusal": text, **self._own_fields()}
        if self.kind == "output_text":
            return {"type": "output_text", "annotations": [], "logprobs": [], "text": text, **self._own_fields()}
        return {"type": self.kind, "text": text}

    def _own_fields(self) -> JsonObject:
        return {name: value for name, value in self.fields.items() if name != "item"}


class WrittenItem:
    """An output item being written. `states` is opaque state that must be written with it."""

    prefix = ""
    empty: ClassVar[JsonObject] = {}
    """Its fields before its content."""

    def __init__(self, fields: JsonObject) -> None:
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
        """Return the part of this kind with this number, or None if there is none yet."""
        return self._by_number.get((kind, number))

    def done_item(self, status: str) -> JsonObject:
        """Return the item as it stands in the output."""
        raise NotImplementedError

    def added_item(self) -> JsonObject:
        """Return the item as it is announced, before it says anything."""
        item = self.done_item("in_progress")
        return {**item, "status": "in_progress", **self.empty} if self.empty else item

    @property
    def additional(self) -> JsonObject:
        """The fields that bardo has no word for. An id that comes after the announcement comes too late."""
        return {name: value for name, value in self.fields.items() if name != "id"}

    def take(self, opaque: Opaque) -> None:
        """Keep opaque state; a later one of its kind replaces the earlier."""
        self.states.add(opaque)

    def learn(self, fields: JsonObject) -> None:
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
    empty: ClassVar = {"content": []}

    def __init__(self, fields: JsonObject) -> None:
        super().__init__(fields)
        self.sealed = ""

    def done_item(self, status: str) -> JsonObject:
        parts = [part.done_item(part.text) for part in self.parts]
        fixed = {"type": "message", "id": self.id, "status": status, "role": "assistant", "content": parts}
        return {**fixed, **self.additional, **({"encrypted_content": self.sealed} if self.sealed else {})}

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

    def __init__(self, fields: JsonObject, *, as_summary: bool = False) -> None:
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
        part.written.add(text)

    def take(self, opaque: Opaque) -> None:
        super().take(opaque)
        if opaque.kind == "id" and is_native(opaque, self.fields) and self.index < 0:
            self.id = opaque.data

    def done_item(self, status: str) -> JsonObject:
        ordered = sorted(
            (part for part in self.parts if part.kind == "summary_text"), key=lambda part: part.number or 0
        )
        summary = [{"type": "summary_text", "text": part.text} for part in ordered]
        item: JsonObject = {"type": "reasoning", "id": self.id, "summary": summary}
        if text := "".join([part.text for part in self.parts if part.kind == "reasoning_text"]):
            item["content"] = [{"type": "reasoning_text", "text": text}]
        if encrypted := self._encrypted():
            item["encrypted_content"] = encrypted
        return {**item, **self.additional}

    def added_item(self) -> JsonObject:
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


class WrittenOther(WrittenItem):
    """An item passed on whole."""

    prefix = "item"

    def done_item(self, status: str) -> JsonObject:
        return self.fields

    def added_item(self) -> JsonObject:
        return self.fields


class WrittenCarrier(WrittenItem):
    """A reasoning item that holds nothing but the sealed state of something else."""

    prefix = "rs"

    def __init__(self, target: str, states: Sequence[Opaque]) -> None:
        super().__init__({})
        self._sealed = attach(target, states)

    def done_item(self, status: str) -> JsonObject:
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


class WrittenCall(WrittenItem):
    """A function call. `part_kind` is the kind of its one part. `complete` False: the reply broke off in it."""

    prefix = "fc"
    empty: ClassVar = {"arguments": ""}
    part_kind = "arguments"
    complete = True

    def __init__(self, call_id: str, name: str, fields: JsonObject) -> None:
        super().__init__(fields)
        self.call_id = call_id
        self.name = name

    def read(self, arguments: str) -> str:
        """Take a piece of the arguments, and return what of it is written."""
        return arguments

    def read_rest(self) -> str:
        """Return the events at the end of the arguments."""
        return ""

    def done_item(self, status: str) -> JsonObject:
        return {
            "type": "function_call",
            "id": self.id,
            "status": status,
            "arguments": "".join([part.text for part in self.parts]),
            "call_id": self.call_id,
            "name": self.name,
            **self.additional,
        }

    def riders(self) -> list[tuple[str, list[Opaque]]]:
        return [(f"call:{self.call_id}", [*self.states])] if self.states else []


class WrittenCustomCall(WrittenCall):
    """A call of a custom tool. `read` reads its text from the arguments of the function that stood for it."""

    prefix = "ctc"
    empty: ClassVar = {"input": ""}
    part_kind = "input"

    def __init__(self, call_id: str, name: str, fields: JsonObject) -> None:
        super().__init__(call_id, name, fields)
        self.reader = FreeInput()

    def read(self, arguments: str) -> str:
        return self.reader.feed(arguments)

    def read_rest(self) -> str:
        return self.reader.finish()

    def done_item(self, status: str) -> JsonObject:
        return {
            "type": "custom_tool_call",
            "id": self.id,
            "status": status,
            "call_id": self.call_id,
            "input": "".join(part.text for part in self.parts),
            "name": self.name,
            **self.additional,
        }


class WrittenSearch(WrittenCall):
    """A call of the search for tools that the client runs: its arguments are an object, given at its end."""

    prefix = "tsc"
    empty: ClassVar = {"arguments": {}}
    part_kind = "search"

    def done_item(self, status: str) -> JsonObject:
        return {
            "type": "tool_search_call",
            "id": self.id,
            "status": status,
            "call_id": self.call_id,
            "execution": "client",
            "arguments": input_of("".join(part.text for part in self.parts)),
            **self.additional,
        }


def call_for(call_id: str, name: str, fields: JsonObject, names: FunctionNames) -> WrittenCall:
    """Return the call of the tool that a function of this name stands for."""
    form = None if "namespace" in fields else names.form(name)
    if form is None:
        return WrittenCall(call_id, name, fields)
    space = {"namespace": form.namespace} if form.namespace else {}
    kinds = {"function": WrittenCall, "custom": WrittenCustomCall, "tool_search": WrittenSearch}
    return kinds[form.kind](call_id, form.name, {**fields, **space})


def target_of(unit: WrittenPart | WrittenItem) -> str:
    """Return what state that comes too late for `unit` is said to belong to."""
    if isinstance(unit, WrittenCall):
        return f"call:{unit.call_id}"
    return "text" if isinstance(unit, WrittenPart) else "reasoning"


_DELTAS = {
    "output_text": "response.output_text.delta",
    "refusal": "response.refusal.delta",
    "reasoning_text": "response.reasoning_text.delta",
    "summary_text": "response.reasoning_summary_text.delta",
    "arguments": "response.function_call_arguments.delta",
    "input": "response.custom_tool_call_input.delta",
}
_OF_CALLS = frozenset({"arguments", "input", "search"})
"""The parts that are all there is of their item."""


class ItemIds:
    """Ids for the items of one reply whose provider gave them none. `reply_id` is asked when the first is needed."""

    def __init__(self, reply_id: Callable[[], str]) -> None:
        self._reply_id = reply_id
        self._digest = ""

    def make(self, prefix: str, index: int) -> str:
        """Return a stable id for item `index`."""
        self._digest = self._digest or digest_of(self._reply_id())
        return made_id(prefix, self._digest, index)


class ItemStream:
    """Writes the events of the items of one reply."""

    def __init__(self, ids: ItemIds) -> None:
        self.items: list[WrittenItem] = []
        self._ids = ids
        self._sequence = 0
        self._riders: list[tuple[str, list[Opaque]]] = []

    def write(self, name: str, fields: JsonObject, out: list[bytes]) -> None:
        """Write one event."""
        body = {"type": name, **fields, "sequence_number": self._sequence}
        self._sequence += 1
        out.append(encode_sse(encode_json(body), name))

    def delta(self, part: WrittenPart, text: str) -> bytes:
        """Write a piece of an announced part."""
        part.written.add(text)
        if not part.prefix:
            return b""
        number = self._sequence
        self._sequence = number + 1
        return part.prefix + encode_json(text) + b',"sequence_number":%d}\n\n' % number

    def open(self, item: WrittenItem, out: list[bytes]) -> None:
        """Announce an item."""
        item.index = len(self.items)
        item.id = item.id or self._ids.make(item.prefix, item.index)
        self.items.append(item)
        self._write_start(item, out)

    def open_part(self, item: WrittenItem, part: WrittenPart, out: list[bytes]) -> None:
        """Announce a part of an item; the one before it is over."""
        self._close_parts(item, out)
        part.item = item
        part.index = item.add(part)
        self._write_part_start(part, out)

    def annotate(self, part: WrittenPart, since: int, out: list[bytes]) -> None:
        """Tell the annotations of a part, from number `since` on."""
        annotations = part.fields.get("annotations") or ()
        for index in range(since, len(annotations)):
            fields = {**_item_index(part), "annotation_index": index, "annotation": annotations[index]}
            self.write("response.output_text.annotation.added", fields, out)

    def close(self, item: WrittenItem, status: str, out: list[bytes]) -> None:
        """Tell that an item is over. Its riders wait for `write_riders`."""
        if item.closed:
            return
        self._close_parts(item, out)
        item.status = status
        self._write_end(item, out)
        self._riders.extend(item.riders())

    def ride(self, target: str, states: list[Opaque]) -> None:
        """Keep state whose item is over already."""
        self._riders.append((target, states))

    def write_riders(self, out: list[bytes]) -> None:
        """Write the items that hold other items' opaque state."""
        waiting, self._riders = self._riders, []
        for target, states in waiting:
            item = WrittenCarrier(target, states)
            self.open(item, out)
            self.close(item, "completed", out)

    def drop_riders(self, target: str) -> bool:
        """Leave out the items that would hold state of `target`, and return whether there were any."""
        waiting, self._riders = self._riders, [rider for rider in self._riders if rider[0] != target]
        return len(waiting) > len(self._riders)

    def output(self) -> list[JsonObject]:
        """Return the items as the finished response lists them."""
        return [item.done_item(item.status or "incomplete") for item in self.items]

    def output_of_failed(self) -> list[JsonObject]:
        """Return the items as a failed response lists them: a call that did not end is none of them."""
        items = [item for item in self.items if item.status or not isinstance(item, WrittenCall)]
        return [item.done_item(item.status or "incomplete") for item in items]

    def _close_parts(self, item: WrittenItem, out: list[bytes]) -> None:
        closing, item.open_parts = item.open_parts, []
        for part in closing:
            if isinstance(item, WrittenCall) and (rest := item.read_rest()):
                out.append(self.delta(part, rest))
            part.closed = True
            self._write_part_end(part, out)

    def _write_start(self, item: WrittenItem, out: list[bytes]) -> None:
        self.write("response.output_item.added", {"output_index": item.index, "item": item.added_item()}, out)

    def _write_end(self, item: WrittenItem, out: list[bytes]) -> None:
        self.write("response.output_item.done", {"output_index": item.index, "item": item.done_item(item.status)}, out)

    def _write_part_start(self, part: WrittenPart, out: list[bytes]) -> None:
        if part.kind in _DELTAS:
            part.prefix = _prefix(_DELTAS[part.kind], _item_index(part))
        if part.kind == "summary_text":
            self.write("response.reasoning_summary_part.added", {**_item_index(part), "part": part.done_item("")}, out)
        elif part.kind not in _OF_CALLS:
            self.write("response.content_part.added", {**_item_index(part), "part": part.done_item("")}, out)

    def _write_part_end(self, part: WrittenPart, out: list[bytes]) -> None:
        place, text = _item_index(part), part.text
        if part.kind == "search":
            return
        done = _DELTAS[part.kind].removesuffix("delta") + "done"
        if part.kind == "arguments":
            self.write(done, {**place, "name": part.fields.get("name", ""), "arguments": text}, out)
            return
        if part.kind == "input":
            self.write(done, {**place, "input": text}, out)
            return
        if part.kind == "refusal":
            self.write(done, {**place, "refusal": text}, out)
        elif part.kind == "output_text":
            self.write(done, {**place, "logprobs": part.fields.get("logprobs") or [], "text": text}, out)
        else:
            self.write(done, {**place, "text": text}, out)
        closing = (
            "response.reasoning_summary_part.done" if part.kind == "summary_text" else "response.content_part.done"
        )
        self.write(closing, {**place, "part": part.done_item(text)}, out)


def _item_index(part: WrittenPart) -> JsonObject:
    assert part.item is not None
    place: JsonObject = {"item_id": part.item.id, "output_index": part.item.index}
    if part.kind == "summary_text":
        place["summary_index"] = part.index
    elif part.kind not in _OF_CALLS:
        place["content_index"] = part.index
    return place


def _prefix(name: str, place: JsonObject) -> bytes:
    fields = {"type": name, **place} | ({"logprobs": []} if name == _DELTAS["output_text"] else {})
    return b"event: " + name.encode() + b"\ndata: " + encode_json(fields)[:-1] + b',"delta":'
