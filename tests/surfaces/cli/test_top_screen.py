"""The screen of `bardo top` from plain values: every size, hostile texts, events in any order; its feed over a connection that breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import msgspec
import pytest
from rich.cells import cell_len

from bardo.adapters.net.client import HttpTransport
from bardo.surfaces.cli.top import GatewayFeed
from bardo.surfaces.render.top_screen import LOST, TopCalls, TopView, screen_of
from bardo.surfaces.render.wording import printable
from bardo.values.inference_events import (
    CallFinished,
    CallProgress,
    CallStarted,
    InferenceEvent,
    PublishedEvent,
    ReasoningText,
)
from support.hostile_text import HOSTILE


def published(event: InferenceEvent, call: str = "req_1", at: float = 100.0) -> PublishedEvent:
    return PublishedEvent(request_id=call, event=event, key_id="k1", at=at)


def started(text: str = "m") -> CallStarted:
    return CallStarted(
        subsystem="", provider=text, model=text, model_asked=text, client_dialect="d", streamed=True, cause="first"
    )


def progress(phase: str = "thinking") -> CallProgress:
    return CallProgress(subsystem="", phase=phase, reasoning_tokens=7, answer_tokens=2)


def finished(text: str = "m", cost: float | None = 0.5, outcome: str = "ok") -> CallFinished:
    return CallFinished(
        subsystem="", provider=text, model=text, outcome=outcome, error=text, seconds=2.0, attempts=1, input_tokens=10,
        output_tokens=20, reasoning_tokens=5, cost_usd=cost, verdict="honoured", degraded=(text,),
    )  # fmt: skip


def whole(text: str) -> Iterator[PublishedEvent]:
    yield published(started(text))
    yield published(progress())
    yield published(ReasoningText(subsystem=text, text=text))
    yield published(started(text), "req_2")
    yield published(finished(text), "req_2", 101.0)


@pytest.mark.parametrize("pane", ["", "details", "reasoning"])
@pytest.mark.parametrize("size", [(1, 1), (5, 3), (20, 6), (40, 10), (80, 24), (200, 60)])
def test_no_size_is_overrun_by_any_text(size: tuple[int, int], pane: str) -> None:
    width, height = size
    for name, text in HOSTILE.items():
        view = TopView(address=text[:2000], pane=pane, wanted="" if pane else text[:200])
        for event in whole(text[:5000]):
            view.calls.take(event)
        lines = screen_of(view, 105.0, width, height)
        assert len(lines) <= height, name
        assert all(cell_len(line.plain) <= width for line in lines), name
        assert all("\n" not in line.plain for line in lines), name
        shown = "".join(line.plain for line in lines).translate(dict.fromkeys(map(ord, "\u200c\u200d")))
        assert printable(shown) == shown, name


def test_a_call_goes_through_its_states() -> None:
    calls = TopCalls()
    seen = []
    for event in (started(), progress(), progress("answering"), finished()):
        calls.take(published(event))
        [call] = calls.shown()
        seen.append((call.state, call.running))
    assert seen == [("waiting", True), ("thinking", True), ("answering", True), ("ok", False)]
    assert (calls.running, calls.finished, calls.failed, calls.spent_usd) == (0, 1, 0, 0.5)


def test_an_event_that_comes_twice_or_after_the_end_counts_once() -> None:
    calls = TopCalls()
    for event in (started(), finished(), finished(), progress()):
        calls.take(published(event))
    assert (calls.running, calls.finished, calls.shown()[0].state) == (0, 1, "ok")


def test_missed_events_make_running_calls_uncertain_until_they_are_heard_of_again() -> None:
    calls = TopCalls()
    calls.take(published(started()))
    calls.miss()
    assert calls.shown()[0].state == LOST
    calls.take(published(progress("answering")))
    assert (calls.running, calls.shown()[0].state) == (1, "answering")


def test_money_of_the_last_minute_grows_old_and_unknown_costs_are_counted() -> None:
    calls = TopCalls()
    calls.take(published(finished(), "a", at=100.0))
    calls.take(published(finished(cost=None, outcome="error"), "b", at=150.0))
    assert calls.last_minute(155.0) == (0.5, 60)
    assert calls.last_minute(165.0) == (0.0, 30)
    assert (calls.unpriced, calls.failed) == (1, 1)


def test_memory_is_bounded() -> None:
    calls = TopCalls()
    for number in range(6_000):
        calls.take(published(started(), f"r{number}"))
        calls.take(published(ReasoningText(subsystem="", text="x" * 1000), f"r{number}"))
        if number % 2:
            calls.take(published(finished(), f"r{number}"))
    for _ in range(100):
        calls.take(published(ReasoningText(subsystem="", text="x" * 1000), "r0"))
    assert len(calls.shown()) <= 2_500
    assert max(len(call.thought) for call in calls.shown()) <= 40_000


def test_a_selected_call_stays_selected_while_others_come() -> None:
    view = TopView(address="a")
    for name in "abc":
        view.calls.take(published(started(), name))
    view.move(1)
    view.move(1)
    chosen = view.chosen()
    assert chosen is not None
    assert chosen.id == "b"
    view.calls.take(published(started(), "d"))
    chosen = view.chosen()
    assert chosen is not None
    assert chosen.id == "b"
    view.move(-9)
    assert view.selected == "d"


def _frame(number: int, event: InferenceEvent) -> bytes:
    data = msgspec.json.encode(published(event, f"r{number}"))
    return b"id: x-%d\nevent: e\ndata: %s\n\n" % (number, data)


async def _told(wanted: int) -> tuple[list[object], list[str]]:
    """Read what a server tells that ends each connection after one event, and what it was asked with."""
    heads: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        writer.write(b"id: x-0\nevent: new:kind\ndata: {}\n\n" + _frame(len(heads), started()))
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    transport = HttpTransport()
    port = server.sockets[0].getsockname()[1]
    found: list[object] = []
    items = GatewayFeed(transport, f"http://127.0.0.1:{port}/", "a-key").items()
    async for one in items:
        found.append(one)
        if sum(isinstance(each, PublishedEvent) for each in found) == wanted:
            break
    await items.aclose()  # type: ignore[attr-defined]
    await transport.close()
    server.close()
    await server.wait_closed()
    return found, heads


def test_a_connection_that_breaks_is_made_again_from_where_it_stopped() -> None:
    found, heads = asyncio.run(_told(2))
    assert [one.request_id for one in found if isinstance(one, PublishedEvent)] == ["r1", "r2"]
    assert next(one for one in found if isinstance(one, str)) == "connected"
    assert "last-event-id" not in heads[0]
    assert "last-event-id: x-1" in heads[1]
    assert "authorization: bearer a-key" in heads[0]


@pytest.mark.parametrize(
    ("reserved", "estimated", "words"),
    [
        (0.0, False, "$1.25 today, by this key"),
        (0.5, False, "$1.25 spent and $0.50 reserved today, by this key"),
        (0.0, True, "~$1.25 today, by this key"),
    ],
)
def test_what_is_spent_and_what_is_reserved_are_told_apart(reserved: float, estimated: bool, words: str) -> None:
    view = TopView(address="a", today_usd=1.25, today_of="today, by this key", reserved_usd=reserved)
    view.today_estimated = estimated
    lines = [line.plain for line in screen_of(view, 100.0, 120, 10)]
    assert lines[2].endswith(f"  {words}")


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_the_name_of_a_model_is_shown_whole_and_other_columns_go_first(width: int) -> None:
    name = "claude-sonnet-5-20261101-preview"
    view = TopView(address="a")
    view.calls.take(published(started(name)))
    lines = [line.plain for line in screen_of(view, 101.0, width, 12)]
    assert f"{name}/{name}" in "".join("".join(lines).split())
    heads = next(line for line in lines if line.startswith("state")).split()
    assert heads[:2] == ["state", "model"]
    assert ("verdict" in heads) is (width == 140)
