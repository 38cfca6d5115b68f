"""The benchmarks' own pieces work: canned replies, load generator, processes, figures. Nothing here is timed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from benchmarks import panel, reuse, routing
from benchmarks.bench import Bench, Pace
from benchmarks.canned import WORD, pace_of, stream_body, stream_pieces, words_in
from benchmarks.contestants import (
    CHAT,
    MODELS,
    CannotStart,
    Contestant,
    Lane,
    Place,
    bardo,
    bare_proxy,
    place_for,
    start,
)
from benchmarks.control import RECEIPT, works
from benchmarks.decode import decode, encode, read, stream_in, translate
from benchmarks.figures import Figure, Row, Table, Target, targets_markdown
from benchmarks.growth import schema_plans
from benchmarks.load import Asked, Job, Result, Spread, execute, spread, without_chunks
from benchmarks.processes import Cores, Started, runs, tree
from benchmarks.sampled_app import OTHER, PLACES, STAGES, THREADS, stage_of
from benchmarks.stages import spent
from benchmarks.upstream import at_once, listen, request_end

import bardo as package
from bardo.adapters.stores.log import LogReader
from bardo.replies.reply_reader import row_reader
from bardo.values.request import Resolution

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmarks read /proc")

WATCHDOG_BEAT_SECONDS = 0.5
TINY = Pace(rounds=1, seconds=0.0, starts=1, soak_requests=20, quick=True)


def against_upstream(run: Callable[[int], Awaitable[Result]]) -> Result:
    """Run something against the static upstream, in this process."""

    async def both() -> Result:
        server = await listen()
        try:
            return await run(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            await server.wait_closed()

    return asyncio.run(both())


@pytest.mark.parametrize("model", ["whole", "burst-3", "paced-3", "thinking-3", "slow-3"])
def test_every_reply_of_the_upstream_is_complete_and_counted(model: str) -> None:
    asked = (CHAT.asked(model),)
    result = against_upstream(lambda port: execute(Job(port=port, asked=asked, concurrency=2, least=6)))
    assert (result.requests, result.failed) == (6, 0), result.first_failure
    assert 0 < result.first_byte.p50 <= result.latency.p50


def test_how_late_events_come_is_told_where_their_pace_is() -> None:
    asked = (CHAT.asked("slow-3"),)
    late, untold = (
        against_upstream(lambda port, pace=pace: execute(Job(port=port, asked=asked, least=1, pace=pace))).late  # type: ignore[misc]
        for pace in (pace_of("slow-3"), 0.0)
    )
    assert 0 <= late.p50 <= late.p99
    assert untold == Spread()


def test_a_mixed_job_sends_exactly_what_it_was_told() -> None:
    asked = (CHAT.asked("whole"), CHAT.asked("burst-3"))
    result = against_upstream(lambda port: execute(Job(port=port, asked=asked, concurrency=3, least=10)))
    assert (result.requests, result.failed) == (10, 0)


def test_a_reply_that_lacks_words_is_a_failure() -> None:
    short = Asked(path="/v1/chat/completions", headers={}, body=CHAT.asked("burst-3").body, words=4)
    result = against_upstream(lambda port: execute(Job(port=port, asked=(short,), least=1)))
    assert (result.requests, result.failed) == (0, 1)
    assert result.first_failure.startswith("3 of 4 words")


def test_a_port_where_nobody_listens_is_a_failure() -> None:
    async def nobody() -> Result:
        server = await listen()
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        return await execute(Job(port=port, asked=(CHAT.asked("whole"),)))

    result = asyncio.run(nobody())
    assert (result.requests, result.failed) == (0, 1)
    assert result.first_failure.startswith("no connection")


@pytest.mark.parametrize("model", MODELS[:3])
def test_a_canned_reply_holds_its_words(model: str) -> None:
    assert at_once(model).count(WORD.encode()) == words_in(model)


def test_the_pieces_of_a_stream_are_its_body_in_chunks() -> None:
    assert without_chunks(b"".join(stream_pieces("burst-5"))) == stream_body("burst-5")


@pytest.mark.parametrize(
    ("held", "end"),
    [
        (b"GET / HTTP/1.1\r\n\r\n", 18),
        (b"GET / HTTP/1.1\r\n", -1),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nab", 40),
        (b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\na", -1),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n", 59),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", -1),
    ],
    ids=["no body", "half a head", "a body", "half a body", "chunks", "half the chunks"],
)
def test_the_upstream_knows_where_a_request_ends(held: bytes, end: int) -> None:
    assert request_end(bytearray(held)) == end


def test_a_word_that_a_chunk_cuts_is_found() -> None:
    assert without_chunks(b"3\r\nquo\r\n3;x=1\r\nkka\r\n0\r\n\r\n") == b"quokka"


def test_the_99th_percentile_is_near_the_end() -> None:
    found = spread([second / 1000 for second in range(1, 101)])
    assert found.p50 == pytest.approx(50_500)
    assert found.p99 == pytest.approx(100_000)


def test_a_tree_of_processes_is_measured_and_ended() -> None:
    code = "import subprocess, sys; child = subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1); sum(range(5_000_000));"
    started = Started([sys.executable, "-c", code + "print(child.pid, flush=True); input()"], every_core(), talks=True)
    child = int(started.hear())
    try:
        assert tree(started.process.pid) == [started.process.pid, child]
        assert started.cpu_seconds() > 0
        assert started.resident_bytes() > 0
    finally:
        started.stop()
    assert not runs(child)


def test_a_gateway_that_ends_at_once_says_why(tmp_path: Path) -> None:
    broken = Contestant(name="broken", lanes=(Lane(name="forwarded"),), command=ending)
    cores = Cores(every_core(), every_core())
    with pytest.raises(CannotStart, match="out of ideas"):
        start(broken, place_for("broken", tmp_path, 1), cores)


def test_a_peer_that_cannot_start_is_left_out_with_a_note() -> None:
    told: list[str] = []
    peer = Contestant(name="broken", lanes=(Lane(name="forwarded"),), command=ending, packages=("broken",))
    with Bench(TINY, told.append) as bench:
        assert bench.start(peer) is None
        assert bench.start(peer) is None
    assert len(bench.notes) == 1
    assert bench.notes[0].startswith("broken is left out")


def test_the_bare_proxy_passes_replies_on() -> None:
    told: list[str] = []
    with Bench(TINY, told.append) as bench:
        gateway = bench.start(bare_proxy())
        assert gateway is not None
        asked = tuple(lane.asked(model) for lane in gateway.contestant.lanes for model in ("whole", "burst-200"))
        sample = bench.measure(gateway, asked, concurrency=2, seconds=0, least=len(asked))
    assert sample.usable, told


def test_a_figure_shows_its_ratio_to_the_first_column_and_to_the_floor() -> None:
    figures = {name: Figure.of([value]) for name, value in (("own", 4.0), ("peer", 8.0), ("floor", 2.0))}
    row = Row(measure="cost", unit="s", figures={name: figure for name, figure in figures.items() if figure})
    table = Table(subject="t", title="t", columns=("own", "peer", "floor"), rows=(row,), floor="floor")
    assert "| 4.00 [2.00×] | 8.00 (2.00×) [4.00×] | 2.00 (0.500×) |" in table.markdown()
    assert (table.ratio("cost", "peer", "floor"), table.ratio("cost", "peer", "nobody")) == (4.0, None)


def test_bardo_answers_in_every_lane() -> None:
    with Bench(TINY, lambda _: None) as bench:
        gateway = bench.start(bardo())
        assert gateway is not None
        for lane in gateway.contestant.lanes:
            for model in ("whole", "burst-200", "paced-10"):
                sample = bench.measure(gateway, (lane.asked(model),), concurrency=2, seconds=0, least=2)
                assert sample.usable, f"{lane.name}, {model}: {sample.result.first_failure}"
                assert sample.cpu > 0


@pytest.mark.parametrize(
    "name", ["openai_chat", "openai_chat with tags", "openai_responses", "anthropic_messages", "gemini"]
)
def test_a_stream_made_for_decode_reads_back_whole(name: str) -> None:
    stream = stream_in(name, 20)
    response = read(stream).fold.response()
    assert (response.reasoning.content or "").count(WORD) == 10
    assert response.text.count(WORD) == 10
    assert decode(stream)
    assert translate(stream, "anthropic_messages") > 0
    assert encode(decode(stream), "openai_chat") > 0


def test_a_figure_is_the_median_with_its_spread() -> None:
    figure = Figure.of([90, 100, 130])
    assert figure is not None
    assert (figure.median, figure.spread_percent, figure.text()) == (100, 20, "100 ±20 %")
    assert Figure.of([]) is None


def test_a_table_gives_ratios_to_its_first_column() -> None:
    def one(value: float) -> Figure:
        return Figure(median=value, low=value, high=value, rounds=1)

    row = Row(measure="cost", unit="µs", figures={"bardo": one(50), "peer": one(200)}, failed={"other": "broken"})
    table = Table(subject="gateway", title="gateway", columns=("bardo", "peer", "other", "none"), rows=(row,))
    assert "| cost, µs | 50.0 | 200 (4.00×) | failed | – |" in table.markdown()
    assert table.figure("cost", "peer") == one(200)


def test_targets_say_whether_they_are_met() -> None:
    targets = (
        Target(says="cost", limit=300, unit="µs", found=200),
        Target(says="memory", limit=90, unit="MB", found=91),
        Target(says="ratio", limit=30, unit="×", found=31, better="higher"),
        Target(says="start", limit=1, unit="s", found=None),
    )
    assert [target.met for target in targets] == [True, False, True, None]
    assert "| memory | ≤ 90.0 MB | 91.0 MB | **not met** |" in targets_markdown(targets)


def every_core() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0))


def ending(place: Place) -> list[str]:
    return [place.python, "-c", "import sys; sys.exit('out of ideas')"]


def test_the_subject_control_does_all_that_it_times() -> None:
    done = {name: work() for name, work in works().items()}
    verdicts = done[RECEIPT]
    assert isinstance(verdicts, list)
    assert all("verdict=honoured" in header for header in verdicts)
    assert len({type(one) for one in done.values()}) == 1


def test_the_subject_reuse_does_all_that_it_times() -> None:
    done = {name: [work() for work in works] for name, works in reuse.works(1).items()}
    assert {*done} == {reuse.WHOLE, reuse.PLANS, reuse.TOOLS, reuse.CHECKERS, reuse.ANSWERS}
    assert all(one is not None for found in done.values() for one in found)


def test_the_subject_routing_does_all_that_it_times() -> None:
    done = {name: work() for name, work in routing.works().items()}
    needs, named = done[routing.RESOLVED], done[routing.NAMED]
    assert isinstance(needs, Resolution)
    assert "visible_thinking" in needs.features
    assert isinstance(named, Resolution)
    assert named.model == "lab/model-7"
    relaxed = done[routing.RELAXED]
    assert relaxed is None
    assert done[routing.PLAIN] is None
    assert len([*routing.candidates()]) == routing.PROVIDERS * routing.MODELS
    assert {*routing.LIMITS} <= done.keys()


def test_requests_are_sent_when_they_are_due() -> None:
    asked = (CHAT.asked("whole"),)
    result = against_upstream(lambda port: execute(Job(port=port, asked=asked, concurrency=4, least=8, rate=200)))
    assert (result.requests, result.failed) == (8, 0), result.first_failure
    assert result.seconds >= 7 / 200


def test_a_stack_is_in_the_stage_of_its_innermost_known_function() -> None:
    found: list[str] = []

    class Row:
        """Looks when it is asked for its first field."""

        def __getattr__(self, name: str) -> object:
            found.append(stage_of(sys._getframe()))
            raise AttributeError(name)

    with contextlib.suppress(AttributeError):
        row_reader(Row(), streamed=False)  # type: ignore[arg-type]
    assert (found, stage_of(sys._getframe())) == (["reply"], OTHER)


def test_every_place_of_a_stage_is_one_that_there_is() -> None:
    packages = [Path(package.__file__).parent]
    files = {path.as_posix(): path.read_text(encoding="utf-8") for root in packages for path in root.rglob("*.py")}
    for part, function, stage in PLACES:
        inside = [text for path, text in files.items() if part in path]
        assert any(not function or f"def {function}(" in text for text in inside), (part, function, stage)


def test_the_stages_of_a_request_are_all_of_it() -> None:
    with Bench(TINY, lambda _: None) as bench:
        gateway = bench.start(bardo(factory="benchmarks.sampled_app:create_app"))
        assert gateway is not None
        spent(gateway)
        bench.measure(gateway, (gateway.contestant.lanes[0].asked("whole"),), concurrency=2, seconds=0, least=50)
        seen = spent(gateway)
    assert set(seen) <= set(STAGES)
    assert sum(seen.values()) > 0


def test_stages_are_seen_after_the_watchdog_of_the_gateway_has_set_its_timer_anew() -> None:
    with Bench(TINY, lambda _: None) as bench:
        gateway = bench.start(bardo(factory="benchmarks.sampled_app:create_app"))
        assert gateway is not None
        spent(gateway)
        asked = (gateway.contestant.lanes[0].asked("whole"),)
        bench.measure(gateway, asked, concurrency=2, seconds=1.5 * WATCHDOG_BEAT_SECONDS)
        spent(gateway)
        bench.measure(gateway, asked, concurrency=2, seconds=0, least=200)
        seen = spent(gateway)
    assert set(seen) - {THREADS}, seen


def test_a_schema_is_planned_for_in_every_size() -> None:
    with Bench(TINY, lambda _: None) as bench:
        plans = schema_plans(bench)
    assert [row.unit for row in plans.rows] == ["µs"] * 3
    assert all(row.figures for row in plans.rows)


def test_the_log_that_the_panel_is_measured_over_is_full(tmp_path: Path) -> None:
    panel.fill_log(tmp_path / "log.db", 100)
    with LogReader(tmp_path / "log.db") as reader:
        assert len(reader.recent(1000)) == 100
        assert reader.get("req_000000") is not None


def test_the_files_of_the_panel_are_small() -> None:
    assert 1 < panel.files_kilobytes() <= panel.FILES_KB
