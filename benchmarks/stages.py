"""Subject `stages`: at which stage of a request the processor time goes, from a sampling profile of the gateway under load."""

from __future__ import annotations

import http.client
import json
from collections import defaultdict

from benchmarks.bench import Bench
from benchmarks.contestants import Gateway, bardo
from benchmarks.figures import Figure, Row, Table
from benchmarks.sampled_app import PATH, STAGES

_REQUESTS = {
    "whole, forwarded": ("forwarded", "whole"),
    "whole, translated": ("translated", "whole"),
    "200 events in one piece, forwarded": ("forwarded", "burst-200"),
    "200 events, forwarded": ("forwarded", "paced-200"),
    "200 events, translated": ("translated", "paced-200"),
}
_CONCURRENCY = 16
_LEAST_SECONDS = 3.0


def run(bench: Bench) -> Table:
    """Send each kind of request for a while, and return what a request spent at each stage."""
    gateway = bench.start(bardo(factory="benchmarks.sampled_app:create_app"))
    assert gateway is not None
    bench.tell("stages: sampling")
    lanes = {lane.name: lane for lane in gateway.contestant.lanes}
    seconds = max(_LEAST_SECONDS, bench.pace.seconds * 6)
    found: dict[str, dict[str, Figure]] = defaultdict(dict)
    for label, (lane, model) in _REQUESTS.items():
        asked = (lanes[lane].asked(model),)
        bench.measure(gateway, asked, concurrency=_CONCURRENCY, seconds=seconds / 8, least=_CONCURRENCY)
        spent(gateway)
        sample = bench.measure(gateway, asked, concurrency=_CONCURRENCY, seconds=seconds, least=_CONCURRENCY)
        seen = spent(gateway)
        total = sum(seen.values())
        for stage in STAGES:
            figure = Figure.of([sample.cpu * seen.get(stage, 0.0) / total])
            if figure is not None and total:
                found[stage][label] = figure
        whole = Figure.of([sample.cpu])
        if whole is not None:
            found["all of it"][label] = whole
    gateway.stop()
    rows = [Row(measure=stage, unit="µs", figures=figures) for stage, figures in found.items()]
    return Table(
        subject="stages", title="stages of a request", columns=tuple(_REQUESTS), rows=tuple(rows), notes=_NOTES
    )


_NOTES = (
    "Processor time of one request, 16 at once. In brackets: times the first column.",
    "Server: what reads a request and writes a reply. Decode: the request's body, path and key. Call: what "
    "holds it together: attempts, failover, health, time limits. Plan: the target, the provider's form of the request. Send: the "
    "connection to the provider, in both directions. Reply: its frames, events and Response. Encode: headers, and what is written anew "
    "for the client. Log: journal, row, and what is kept for replay.",
    "Sampled by a signal each few milliseconds of the program's own time. What the kernel does, and what runs in C between two lines "
    "of Python, counts for the next line that is looked at.",
)


def spent(gateway: Gateway) -> dict[str, float]:
    """Return the seconds of each stage since this was asked last."""
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=20)
    try:
        connection.request("GET", PATH)
        seconds: dict[str, float] = json.loads(connection.getresponse().read())
    finally:
        connection.close()
    return seconds
