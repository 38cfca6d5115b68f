"""A history whose beginning was read before is read on from there; `test_repeated_items.py` holds every dialect to what it read."""

from __future__ import annotations

from typing import Any, Self

import msgspec

from bardo.dialects.known_beginnings import MOST_BEGINNINGS, KnownBeginnings
from bardo.dialects.repeated_items import RepeatedItems

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
