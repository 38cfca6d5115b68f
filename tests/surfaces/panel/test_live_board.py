"""The board of live calls: what pages are told, of whose calls, and how much is kept."""

from __future__ import annotations

import asyncio
from typing import Any

from bardo.services.facts.event_feed import EventBus
from bardo.surfaces.panel import live_board
from bardo.surfaces.panel.live_board import MOST_CALLS, MOST_TEXT, LiveBoard
from bardo.values.inference_events import CallFinished, CallStarted, HealthChanged, InferenceEvent, ReasoningText


def started() -> CallStarted:
    return CallStarted(
        subsystem="", provider="p", model="m", model_asked="m", client_dialect="d", streamed=True, cause="first"
    )


def finished(**fields: Any) -> CallFinished:
    given: dict[str, Any] = {"error": None, "seconds": 1.0, "attempts": 1, "input_tokens": 1, "output_tokens": 1}
    given |= {"reasoning_tokens": None, "cost_usd": None, "verdict": None, "degraded": ()}
    return CallFinished(subsystem="", provider="p", model="m", outcome="ok", **{**given, **fields})


def thought(text: str) -> ReasoningText:
    return ReasoningText(subsystem="", text=text)


def listens(bus: EventBus) -> bool:
    return bus.active


def publish(bus: EventBus, own_id: str, *events: InferenceEvent, key: str | None = None) -> None:
    bus.publish(own_id, events, key)


def test_many_pieces_are_one_change() -> None:
    bus = EventBus()
    board = LiveBoard(bus)
    reader = board.open(None)
    publish(bus, "a", started(), *[thought(f"{number} ") for number in range(1000)])
    publish(bus, "b", started())
    changes = reader.take()
    assert [one["id"] for one in changes] == ["a", "b"]
    assert changes[0]["text"] == "".join(f"{number} " for number in range(1000))
    assert changes[0]["started"]["provider"] == "p"
    publish(bus, "a", thought("end"), finished(visibility="visible"))
    (change,) = reader.take()
    assert (change["text"], change["finished"]["visibility"]) == ("end", "visible")
    assert "started" not in change
    assert reader.take() == []


def test_a_page_that_is_opened_later_sees_what_is_kept() -> None:
    bus = EventBus()
    board = LiveBoard(bus)
    board.open(None)
    publish(bus, "a", started(), thought("one "), thought("two"))
    later = board.open(None)
    assert later.take() == []
    (call,) = board.calls(later)
    assert (call["id"], call["text"], call["finished"]) == ("a", "one two", None)


def test_a_key_is_told_of_its_own_calls_alone() -> None:
    bus = EventBus()
    board = LiveBoard(bus)
    own, everyone = board.open("k1"), board.open(None)
    publish(bus, "a", started(), thought("x"), key="k1")
    publish(bus, "b", started(), thought("y"), key="k2")
    publish(bus, "c", started())
    assert [one["id"] for one in own.take()] == ["a"]
    assert [one["id"] for one in board.calls(own)] == ["a"]
    assert [one["id"] for one in everyone.take()] == ["a", "b", "c"]
    assert board.find("b", "k1") is None
    assert board.find("b", None) is not None


def test_what_is_kept_is_bounded() -> None:
    bus = EventBus()
    board = LiveBoard(bus)
    reader = board.open(None)
    for number in range(MOST_CALLS + 10):
        publish(bus, str(number), started())
    assert [one["id"] for one in board.calls(reader)] == [str(number) for number in range(10, MOST_CALLS + 10)]
    publish(bus, "long", *[thought("x" * 1000) for _ in range(2 * MOST_TEXT // 1000)])
    call = board.find("long", None)
    assert call is not None
    assert len("".join(call.text)) == MOST_TEXT
    assert call.length == 2 * MOST_TEXT
    assert len(reader.take()[-1]["text"]) == MOST_TEXT


def test_other_events_are_nothing_to_the_page() -> None:
    bus = EventBus()
    board = LiveBoard(bus)
    reader = board.open(None)
    publish(bus, "", HealthChanged(subsystem="", provider="p", model="m", state="down", reason="x"))
    assert reader.take() == []
    assert board.calls(reader) == []


def test_nobody_listens_before_the_first_page_and_after_the_last(monkeypatch: Any) -> None:
    monkeypatch.setattr(live_board, "KEPT_SECONDS", 0.0)

    async def run() -> None:
        bus = EventBus()
        board = LiveBoard(bus)
        assert not listens(bus)
        reader = board.open(None)
        publish(bus, "a", started())
        assert listens(bus)
        board.leave(reader)
        while listens(bus):  # noqa: ASYNC110 - a timer of the board ends it
            await asyncio.sleep(0.01)
        assert board.calls(reader) == []

    asyncio.run(run())
