"""A whole body is one frame, and stages chain as one stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.streams.eventstream import EventStreamDecoder, encode_event
from bardo.streams.frames import Frame, FramingError, OversizedFrame, WholeBody
from bardo.streams.json_frames import JsonArrayDecoder, NdjsonDecoder
from bardo.streams.sse import SseDecoder
from bardo.streams.stage import Chain, Stage

pytestmark = pytest.mark.each_python


@given(st.lists(st.binary(max_size=20), max_size=8))
def test_a_whole_body_is_one_frame_however_it_arrives(pieces: list[bytes]) -> None:
    framing = WholeBody()
    assert [frame for piece in pieces for frame in framing.feed(piece)] == []
    [frame] = framing.finish()
    assert frame.data == frame.raw == b"".join(pieces)
    assert frame.complete


def test_a_body_over_the_limit_is_refused_before_it_is_whole() -> None:
    framing = WholeBody(limit=10)
    framing.feed(b"a" * 10)
    with pytest.raises(OversizedFrame) as refusal:
        framing.feed(b"b")
    assert refusal.value.limit == 10


class Pairs:
    """Holds every other item, and gives two at once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._held: list[str] = []

    def feed(self, item: str) -> Sequence[str]:
        self._held.append(item)
        return self._give() if len(self._held) == 2 else ()

    def finish(self) -> Sequence[str]:
        return [*self._give(), f"{self._name} is over"]

    def _give(self) -> list[str]:
        held, self._held = self._held, []
        return [f"{self._name}({item})" for item in held]


def test_items_pass_the_stages_in_order() -> None:
    chain = Chain([Pairs("a"), Pairs("b")])
    assert [list(chain.feed(item)) for item in "123"] == [[], ["b(a(1))", "b(a(2))"], []]


def test_what_a_stage_held_passes_those_after_it() -> None:
    chain = Chain([Pairs("a"), Pairs("b")])
    chain.feed("1")
    assert list(chain.finish()) == ["b(a(1))", "b(a is over)", "b is over"]


def test_a_chain_of_nothing_changes_nothing() -> None:
    chain: Chain[str] = Chain([])
    assert list(chain.feed("1")) == ["1"]
    assert list(chain.finish()) == []


FRAMINGS: dict[str, tuple[Callable[[], Stage[bytes, Frame]], bytes]] = {
    "sse": (lambda: SseDecoder(50), b"data: a\n\ndata: " + b"b" * 100 + b"\n\n"),
    "ndjson": (lambda: NdjsonDecoder(50), b"[1]\n" + b"2" * 100 + b"\n[3]\n"),
    "json_array": (lambda: JsonArrayDecoder(50), b'[{"a":1},{"b":"' + b"x" * 100 + b'"},{"c":1}]'),
    "event stream, too long": (lambda: EventStreamDecoder(50), encode_event(b"a", {}) + encode_event(b"b" * 100, {})),
    "event stream, corrupt": (EventStreamDecoder, encode_event(b"a", {}) + b"\x00" * 20),
}


@pytest.mark.parametrize(("opened", "body"), FRAMINGS.values(), ids=FRAMINGS.keys())
def test_a_bad_frame_behind_good_ones_is_told_at_the_end_where_nothing_follows(
    opened: Callable[[], Stage[bytes, Frame]], body: bytes
) -> None:
    decoder = opened()
    assert [frame.complete for frame in decoder.feed(body)] == [True]
    with pytest.raises(FramingError):
        decoder.finish()
    decoder = opened()
    decoder.feed(body)
    with pytest.raises(FramingError):
        decoder.feed(b"")
