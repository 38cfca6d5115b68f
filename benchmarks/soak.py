"""Subject `soak`: many requests, whole and streamed, and what is left of them in memory, sockets, tasks and the log."""

from __future__ import annotations

import http.client
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing

from benchmarks.bench import Bench, Sample
from benchmarks.contestants import Gateway, bardo
from benchmarks.counting_app import PATH
from benchmarks.figures import Figure, Row, Table

_KINDS = (("forwarded", "whole"), ("translated", "whole"), ("forwarded", "burst-200"), ("translated", "burst-200"))
_STEPS = 20
_CONCURRENCY = 16

# What was seen after a step: by the measure's name.
Seen = dict[str, float]


def run(bench: Bench) -> Table:
    """Send all requests and return what was held on the way, and the log's count beside ours."""
    gateway = bench.start(bardo(factory="benchmarks.counting_app:create_app"))
    assert gateway is not None
    step = bench.pace.soak_requests // _STEPS
    curve: dict[int, Seen] = {}
    sent = 1  # The answer that said it was ready.
    failed = 0
    for place in range(1, _STEPS + 1):
        sample = _send(bench, gateway, step)
        sent += sample.result.requests
        failed += sample.result.failed
        curve[place * step] = _seen(gateway, sample)
        bench.tell(f"soak: {place * step:,} requests, {curve[place * step]['resident memory']:.0f} MB")
    gateway.stop()
    rows = _logged(gateway)
    return _table(curve, _notes(curve, sent, failed, rows))


def _send(bench: Bench, gateway: Gateway, count: int) -> Sample:
    lanes = {lane.name: lane for lane in gateway.contestant.lanes}
    asked = tuple(lanes[lane].asked(model) for lane, model in _KINDS)
    return bench.measure(gateway, asked, concurrency=_CONCURRENCY, seconds=0, least=count)


def _seen(gateway: Gateway, sample: Sample) -> Seen:
    held = _state(gateway.port)
    return {
        "resident memory": gateway.started.resident_bytes() / 1e6,
        "memory, shared pages counted once": gateway.started.proportional_bytes() / 1e6,
        "sockets": gateway.started.open_sockets(),
        "tasks of the event loop": held["tasks"],
        "threads": held["threads"],
        "objects the collector sees": held["objects"],
        "processor for each request": sample.cpu,
        "rate": sample.result.requests / sample.result.seconds,
    }


_UNITS = {
    "resident memory": "MB",
    "memory, shared pages counted once": "MB",
    "processor for each request": "µs",
    "rate": "requests/s",
}


def _state(port: int) -> dict[str, int]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", PATH)
        held: dict[str, int] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return held


def _logged(gateway: Gateway) -> int:
    """Return the rows of the log, once bardo has ended: then all must be there."""
    path = gateway.folder / "log.db"
    with closing(sqlite3.connect(path)) as log:
        (rows,) = log.execute("select count(*) from inference_log").fetchone()
    return int(rows)


def _notes(curve: dict[int, Seen], sent: int, failed: int, rows: int) -> Iterator[str]:
    yield "In brackets: times the first column. Half of the requests are streams of 200 events; half are translated."
    memory = " ".join(f"{seen['resident memory']:.0f}" for seen in curve.values())
    yield f"Resident memory in MB, every {next(iter(curve)):,} requests: {memory}"
    verdict = "equal" if rows == sent + failed else "**not equal**"
    yield f"{sent:,} requests answered, {failed:,} failed, {rows:,} rows in the log: {verdict}"


def _table(curve: dict[int, Seen], notes: Iterator[str]) -> Table:
    places = list(curve)
    shown = [places[0], *(places[len(places) * part // 4 - 1] for part in (1, 2, 3, 4))]
    columns = {count: f"{count:,}" for count in shown}
    rows = []
    for measure in curve[places[0]]:
        figures = {
            label: figure
            for count, label in columns.items()
            if (figure := Figure.of([curve[count][measure]])) is not None
        }
        rows.append(Row(measure=measure, unit=_UNITS.get(measure, "number"), figures=figures))
    title = "soak: what is held after so many requests"
    return Table(subject="soak", title=title, columns=tuple(columns.values()), rows=tuple(rows), notes=tuple(notes))
