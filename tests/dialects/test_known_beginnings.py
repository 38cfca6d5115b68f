"""A history whose beginning was read before is read on from there; `test_repeated_items.py` holds every dialect to what it read."""

from __future__ import annotations

from collections import deque
from typing import Any, Self

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.dialects.gemini import request_in as contents
from bardo.dialects.openai_responses import request_in as items
from bardo.dialects.shared.known_beginnings import MOST_BEGINNINGS, KnownBeginnings
from bardo.dialects.shared.repeated_items import RepeatedItems
from bardo.values.blocks import ToolCallBlock, ToolResultBlock
from bardo.values.wire import Arrival

ITEMS = RepeatedItems()


class Reader:
    def __init__(self) -> None:
        self.read: list[Any] = []

    def copy(self) -> Self:
        copied = type(self)()
        copied.read = [*self.read]
        return copied


def history(*texts: str) -> Any:
    values = [{"text": text, "more": "m" * 1000} for text in texts]
    return ITEMS.decode(msgspec.json.encode({"input": values}), msgspec.json.decode)["input"]


class Counted:
    """Beginnings, and how many items were taken."""

    def __init__(self, most_bytes: int = 8_000_000) -> None:
        self.known: KnownBeginnings[Reader] = KnownBeginnings(most_bytes)
        self.taken = 0

    def read(self, values: list[Any]) -> list[str]:
        def take(reader: Reader, value: Any, place: int) -> None:
            assert place == len(reader.read)
            self.taken += 1
            reader.read.append(value)

        return [value["text"] for value in self.known.read(values, Reader, take).read]


def test_only_what_is_new_is_taken() -> None:
    counted = Counted()
    assert counted.read(history("a", "b", "c")) == ["a", "b", "c"]
    assert counted.taken == 3
    assert counted.read(history("a", "b", "c", "d", "e")) == ["a", "b", "c", "d", "e"]
    assert counted.taken == 5
    # Two that go on from the same beginning, one that was cut, and one whose first item is another.
    assert counted.read(history("a", "b", "c", "x")) == ["a", "b", "c", "x"]
    assert counted.read(history("a", "b", "c", "d", "e")) == ["a", "b", "c", "d", "e"]
    assert counted.taken == 6
    assert counted.read(history("b", "c", "d", "e")) == ["b", "c", "d", "e"]
    assert counted.taken == 10


def test_an_ordinary_list_is_read_and_not_kept() -> None:
    counted = Counted()
    assert counted.read([{"text": "a"}, {"text": "b"}]) == ["a", "b"]
    assert len(counted.known) == 0


def test_what_is_kept_is_bounded() -> None:
    counted = Counted()
    for place in range(3 * MOST_BEGINNINGS):
        counted.read(history("a", "b", str(place)))
    assert len(counted.known) == MOST_BEGINNINGS
    small = Counted(most_bytes=100_000)
    for place in range(30):
        small.read(history("a", "b", f"small {place}"))
    assert 0 < len(small.known) < 10
    small.read(history(*(f"long {place}" for place in range(40))))
    assert len(small.known) < 10


CALL = {"functionCall": {"name": "f", "args": {}}}
CONTENTS: list[Any] = [
    {"role": "user", "parts": [{"text": "a"}]},
    {"role": "model", "parts": [{"text": "b", "thought": True}, CALL, {"functionCall": {"id": "c1", "name": "g"}}]},
    {"role": "user", "parts": [{"functionResponse": {"name": "g", "id": "c1", "response": {}}}]},
    {"role": "model", "parts": [CALL, {"text": "c"}]},
]
STEPS: list[Any] = [
    {"type": "message", "role": "user", "content": "a"},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "c1", "output": "b"},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "c"}]},
]


def state(value: Any) -> Any:
    """Give all that an object holds, down to values."""
    if isinstance(value, list | tuple | deque):
        return [*map(state, value)]
    return {name: state(held) for name, held in vars(value).items()} if hasattr(value, "__dict__") else value


@pytest.mark.parametrize("read", range(1, len(CONTENTS) + 1))
def test_a_reader_of_contents_and_its_copy_have_read_the_same(read: int) -> None:
    reader = contents.Conversation()
    for place, content in enumerate(CONTENTS[:read]):
        reader.read(content, f"contents[{place}]")
    assert state(reader.copy()) == state(reader)


@pytest.mark.parametrize("read", range(1, len(STEPS) + 1))
def test_a_reader_of_items_and_its_copy_have_read_the_same(read: int) -> None:
    reader = items.InputReader()
    for place, item in enumerate(STEPS[:read]):
        reader.take(item, f"input[{place}].")
    assert state(reader.copy()) == state(reader)


def test_a_result_with_an_id_of_the_clients_own_finds_its_call_behind_a_known_beginning() -> None:
    turns: list[Any] = [{"role": "user", "parts": [{"text": "long " * 600}]}]
    for place in range(4):
        turns += [
            {"role": "model", "parts": [CALL]},
            {"role": "user", "parts": [{"functionResponse": {"id": f"own-{place}", "name": "f", "response": {}}}]},
        ]
    for length in range(4, len(turns) + 1):
        body = msgspec.json.encode({"contents": turns[:length]})
        messages = dialect("gemini").decode_request(body, Arrival(model="m")).messages
        blocks = [block for message in messages for block in message.blocks]
        called = [block.id for block in blocks if isinstance(block, ToolCallBlock)]
        answered = [block.call_id for block in blocks if isinstance(block, ToolResultBlock)]
        assert answered == called[: len(answered)]
