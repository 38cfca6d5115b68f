"""Output items as events: announced, told piece by piece, and closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bardo.dialects.openai_responses.state import digest_of, made_id
from bardo.dialects.openai_responses.written_calls import WrittenCall
from bardo.dialects.openai_responses.written_items import WrittenCarrier, WrittenItem, WrittenPart
from bardo.dialects.wire import encode_json
from bardo.streams.sse import encode_sse
from bardo.values.blocks import Opaque

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

    def write(self, name: str, fields: dict[str, Any], out: list[bytes]) -> None:
        """Write one event."""
        body = {"type": name, **fields, "sequence_number": self._sequence}
        self._sequence += 1
        out.append(encode_sse(encode_json(body), name))

    def delta(self, part: WrittenPart, text: str) -> bytes:
        """Write a piece of an announced part."""
        part.pieces.append(text)
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
        waiting, self._riders = self._riders, [one for one in self._riders if one[0] != target]
        return len(waiting) > len(self._riders)

    def output(self) -> list[dict[str, Any]]:
        """Return the items as the finished response lists them."""
        return [item.done_item(item.status or "incomplete") for item in self.items]

    def output_of_failed(self) -> list[dict[str, Any]]:
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


def _item_index(part: WrittenPart) -> dict[str, Any]:
    assert part.item is not None
    place: dict[str, Any] = {"item_id": part.item.id, "output_index": part.item.index}
    if part.kind == "summary_text":
        place["summary_index"] = part.index
    elif part.kind not in _OF_CALLS:
        place["content_index"] = part.index
    return place


def _prefix(name: str, place: dict[str, Any]) -> bytes:
    fields = {"type": name, **place} | ({"logprobs": []} if name == _DELTAS["output_text"] else {})
    return b"event: " + name.encode() + b"\ndata: " + encode_json(fields)[:-1] + b',"delta":'
