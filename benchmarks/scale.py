"""Subject `scale`: many slow streams and many idle connections at once, new connections to a provider, long bodies beside short calls, and
a fleet over one database.

What a stream and a connection take in memory, how late events come, how long the event loop stands, and what an event takes of the
processor.
"""

from __future__ import annotations

import json
import resource
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.bench import Bench
from benchmarks.canned import events_of, pace_of
from benchmarks.certificate import make_certificate
from benchmarks.contestants import Contestant, Gateway, Lane, Place
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.fleet import measure_fleet
from benchmarks.growth import measure_workers
from benchmarks.long_bodies import ask
from benchmarks.mixed_place import SERVE, state_of
from benchmarks.processes import ROOT, Cores, Started

STREAM_KB, LATE_MS, STRETCH_MS, BESIDE_TIMES = 40, 25, 20, 3
"""The limits: memory of a stream above idle, lateness of events at p99, the longest stretch of the loop, short calls beside long ones."""
_LONG_BYTES = 10_000_000
_SAMPLE_SECONDS = 0.25
_WARM = 8
_BEGUN_A_SECOND = 200
_FILES_BESIDE = 100
_HEALTH = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
_CONFIG = """\
[log]
path = "{log}"
[reasoning]
introspect = false
[refresh]
hours = 0
[[providers]]
id = "plain"
preset = "deepseek"
base_url = "{upstream}"
models = ["whole", "slow-40", "slow-400"]
"""


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure streams through one worker and through two, idle connections, and short calls beside long bodies."""
    files = _raise_open_files()
    streams, targets = _streams(bench)
    idle = _idle(bench, min(500 if bench.pace.quick else 5_000, (files - _FILES_BESIDE) // 2))
    secured = _new_connections(bench)
    beside, times = _beside_long_bodies(bench)
    says = f"short calls beside bodies of {_LONG_BYTES // 1_000_000} MB over alone, p99"
    return [streams, measure_workers(bench), idle, *secured, beside, *measure_fleet(bench)], [
        *targets,
        Target(says=says, limit=BESIDE_TIMES, unit="×", found=times),
    ]


def _raise_open_files() -> int:
    """Let this process and those that it starts hold as many files as they may, and return how many these are."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def _gateway(workers: int, upstream: str = "", certificate: str = "") -> Contestant:
    def command(place: Place) -> list[str]:
        config, script = place.folder / "bardo.toml", place.folder / "serve_counted.py"
        config.write_text(_CONFIG.format(log=place.folder / "log.db", upstream=upstream or place.upstream))
        script.write_text(SERVE)
        return [place.python, str(script), str(config), str(place.port), str(workers)]

    lanes = (Lane(name="forwarded", model="plain/{}"),)
    environment = {"PYTHONPATH": str(ROOT), **({"SSL_CERT_FILE": certificate} if certificate else {})}
    return Contestant(name=f"bardo, {workers}", lanes=lanes, command=command, environment=environment)


@contextmanager
def _started(bench: Bench, workers: int, contestant: Contestant | None = None) -> Iterator[Gateway]:
    # Two workers have no use for one core.
    cores = Cores(bench.cores.all, bench.cores.all) if workers > 1 else None
    gateway = bench.start(contestant or _gateway(workers), cores)
    assert gateway is not None
    try:
        yield gateway
    finally:
        gateway.stop()


@contextmanager
def _peak(measure: Callable[[], int]) -> Iterator[list[int]]:
    """Yield a list that holds the highest value of what is measured while the block runs."""
    found, ends = [measure()], threading.Event()

    def look() -> None:
        while not ends.wait(_SAMPLE_SECONDS):
            found[0] = max(found[0], measure())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        yield found
    finally:
        ends.set()
        looking.join()


def _streams(bench: Bench) -> tuple[Table, list[Target]]:
    model = "slow-40" if bench.pace.quick else "slow-400"
    counts = (50, 100) if bench.pace.quick else (250, 500, 1_000, 2_000)
    rows = [row for number in (1, 2) for row in _streams_of(bench, number, counts, model)]
    events = round(1 / pace_of(model))
    columns = tuple(f"{count:,} streams" for count in counts)
    notes = (
        f"Each stream has {events} events a second, the first half of them thinking; at most {_BEGUN_A_SECOND} begin in a second.",
    )
    table = Table(subject="scale", title="scale: slow streams at once", columns=columns, rows=tuple(rows), notes=notes)
    limits = {
        "memory of a stream": STREAM_KB,
        "an event comes late, p99": LATE_MS,
        "longest stretch of the event loop": STRETCH_MS,
    }
    return table, [
        Target(
            says=f"{row.measure}, {columns[-1]}",
            limit=limit,
            unit=row.unit,
            found=row.figures[columns[-1]].median if columns[-1] in row.figures else None,
        )
        for name, limit in limits.items()
        for row in rows
        if row.measure.endswith(name)
    ]


def _streams_of(bench: Bench, workers: int, counts: tuple[int, ...], model: str) -> Iterator[Row]:
    """Yield what was found of each number of streams. A number of which a stream failed has no figures."""
    found: dict[str, dict[str, Figure]] = {}
    with _started(bench, workers) as gateway:
        asked = (gateway.contestant.lanes[0].asked(model),)
        bench.measure(gateway, asked, concurrency=_WARM, seconds=0, least=_WARM)
        # What one number of streams took stays with the process for the next.
        idle = gateway.started.resident_bytes()
        for count in counts:
            bench.tell(f"scale: {count:,} streams, workers: {workers}")
            state_of(gateway.port, workers, "?watch")
            with _peak(gateway.started.resident_bytes) as peak:
                sample = bench.send(
                    gateway,
                    asked,
                    concurrency=count,
                    least=count,
                    rate=min(count / 2, _BEGUN_A_SECOND),
                    pace=pace_of(model),
                )
            held = state_of(gateway.port, workers, "?watch")
            if sample.result.failed:
                bench.note(
                    f"{count:,} streams, {workers}: {sample.result.failed} failed: {sample.result.first_failure}"
                )
                continue
            values = {
                "memory of a stream, kB": (peak[0] - idle) / count / 1e3,
                "an event comes late, p99, ms": sample.result.late.p99 / 1e3,
                "longest stretch of the event loop, ms": max(one["longest_microseconds"] for one in held.values())
                / 1e3,
                "processor for an event, µs": sample.cpu / events_of(model),
            }
            for name, value in values.items():
                figure = Figure.of([value])
                assert figure is not None
                found.setdefault(name, {})[f"{count:,} streams"] = figure
    for name, figures in found.items():
        measure, _, unit = name.rpartition(", ")
        yield Row(measure=f"workers: {workers}, {measure}", unit=unit, figures=figures)


def _idle(bench: Bench, count: int) -> Table:
    """Measure the memory of connections that asked once and are kept."""
    bench.tell(f"scale: {count:,} idle connections")
    with _started(bench, 1) as gateway, ExitStack() as stack:
        idle = gateway.started.resident_bytes()
        opened = [stack.enter_context(socket.create_connection(("127.0.0.1", gateway.port))) for _ in range(count)]
        for one in opened:
            one.sendall(_HEALTH)
        for one in opened:
            one.recv(4096)
        held = gateway.started.open_sockets()
        taken = (gateway.started.resident_bytes() - idle) / max(1, held) / 1e3
    rows = (
        Row.of_one_round("memory of a connection", "kB", {"bardo": taken}),
        Row.of_one_round("sockets", "number", {"bardo": held}),
    )
    return Table(subject="scale", title=f"scale: {count:,} idle connections", columns=("bardo",), rows=rows)


def _new_connections(bench: Bench) -> list[Table]:
    """Measure calls to a provider over TLS that closes each connection, so that each call makes a new one."""
    try:
        made = make_certificate()
    except ImportError:
        bench.note("scale: new connections with TLS are left out, cryptography is not installed")
        return []
    bench.tell(f"scale: {_BEGUN_A_SECOND} new connections with TLS a second")
    certificate = bench.folder / "upstream.pem"
    certificate.write_bytes(made)
    upstream = Started([sys.executable, "-m", "benchmarks.upstream", str(certificate)], bench.cores.rest, talks=True)
    try:
        contestant = _gateway(1, f"https://127.0.0.1:{upstream.hear()}", str(certificate))
        with _started(bench, 1, contestant) as gateway:
            asked = (contestant.lanes[0].asked("whole"),)
            bench.measure(gateway, asked, concurrency=_WARM, seconds=0, least=_WARM)
            state_of(gateway.port, 1, "?watch")
            count = _BEGUN_A_SECOND * (1 if bench.pace.quick else 10)
            sample = bench.measure(gateway, asked, concurrency=100, seconds=0, least=count, rate=_BEGUN_A_SECOND)
            watched = state_of(gateway.port, 1, "?watch")
    finally:
        upstream.stop()
    stretch = max(one["longest_microseconds"] for one in watched.values()) / 1e3
    rows = (
        Row.of_one_round("a call, p50", "ms", {"bardo": sample.result.latency.p50 / 1e3}),
        Row.of_one_round("a call, p99", "ms", {"bardo": sample.result.latency.p99 / 1e3}),
        Row.of_one_round("processor for a call", "µs", {"bardo": sample.cpu}),
        Row.of_one_round("longest stretch of the event loop", "ms", {"bardo": stretch}),
    )
    title = f"scale: {_BEGUN_A_SECOND} new connections with TLS a second to a provider"
    return [Table(subject="scale", title=title, columns=("bardo",), rows=rows)]


def _beside_long_bodies(bench: Bench) -> tuple[Table, float]:
    """Measure short calls alone and beside bodies that come one after the other on another connection."""
    bench.tell("scale: short calls beside long bodies")
    message = {"role": "user", "content": "a word\n" * (_LONG_BYTES // 7)}
    body = json.dumps({"model": "plain/whole", "messages": [message]}).encode()
    seconds = 1.0 if bench.pace.quick else 10.0
    with _started(bench, 1) as gateway:
        asked = (gateway.contestant.lanes[0].asked("whole"),)
        alone = bench.measure(gateway, asked, concurrency=1, seconds=seconds, least=100).result.latency
        ends = threading.Event()

        def send() -> None:
            while not ends.is_set():
                ask(gateway.port, "/v1/chat/completions", body)

        sending = threading.Thread(target=send)
        sending.start()
        try:
            beside = bench.measure(gateway, asked, concurrency=1, seconds=seconds, least=100).result.latency
        finally:
            ends.set()
            sending.join()
    columns = {"alone": alone, "beside long bodies": beside}
    rows = (
        Row.of_one_round("short call, p50", "ms", {name: one.p50 / 1e3 for name, one in columns.items()}),
        Row.of_one_round("short call, p99", "ms", {name: one.p99 / 1e3 for name, one in columns.items()}),
    )
    title = f"scale: short calls beside bodies of {len(body) / 1e6:.0f} MB"
    return Table(subject="scale", title=title, columns=tuple(columns), rows=rows), beside.p99 / max(alone.p99, 1e-9)
