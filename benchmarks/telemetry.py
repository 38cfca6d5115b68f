"""Subject `telemetry`: what metrics, spans and OpenTelemetry's metrics add to a call. What is exported goes nowhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from bardo.adapters.stores.log.row import LogRow
from bardo.services.telemetry.meters import CallMeters, package, resource_of
from bardo.services.telemetry.telemetry import CallMetrics, SpanWriter, Telemetry
from bardo.values.request import Request
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

LIMIT = 25
TOGETHER = "all three"
_REQUEST = Request(model="m", messages=(), client_headers={"user-agent": "benchmark"})


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Time the beginning and the end of a call for each thing that is told of it."""
    count = 300 if bench.pace.quick else 5000
    rows = []
    for name, make in _KINDS.items():
        telemetry = make()
        figure = Figure.of(_times(telemetry, count, bench.pace.rounds))
        telemetry.close()
        rows.append(Row(measure=name, unit="µs", figures={"bardo": figure} if figure else {}))
    notes = ("Time of the processor for each call, with that of the thread that gives spans to an exporter.",)
    table = Table(subject="telemetry", title="Telemetry of a call", columns=("bardo",), rows=tuple(rows), notes=notes)
    found = table.figure(TOGETHER, "bardo")
    return [table], [Aim(says=f"telemetry, {TOGETHER}", limit=LIMIT, unit="µs", found=found.median if found else None)]


def _times(telemetry: Telemetry, count: int, repeats: int) -> list[float]:
    """Return the mean microseconds of `count` calls, `repeats` times."""
    calls = [_row(number) for number in range(count)]
    found = []
    for _ in range(repeats + 1):
        began = time.process_time_ns()
        for row in calls:
            telemetry.begin(row.request_id, _REQUEST)
            telemetry.note(row)
        found.append((time.process_time_ns() - began) / count / 1000)
    return found[1:]


def _row(number: int) -> LogRow:
    return LogRow(
        request_id=f"req_{number}",
        started_at=1.7e9,
        seconds=1.5,
        first_byte_seconds=0.25,
        provider="lab",
        model_asked="fast",
        model="m",
        streamed=True,
        finish_reason="stop",
        input_tokens=100,
        output_tokens=40,
        reasoning_tokens=30,
        cost_usd=0.0125,
        cost_nanos=12_500_000,
        status=200,
    )


class _Nowhere:
    """An exporter that drops what it is given."""

    def export(self, data: Any, timeout_millis: float = 0, /) -> Any:
        return package("opentelemetry.sdk.trace.export").SpanExportResult.SUCCESS

    def shutdown(self, timeout_millis: float = 0) -> None:
        """Nothing is open."""


def _spans(*, meters: bool) -> SpanWriter:
    processor = package("opentelemetry.sdk.trace.export").BatchSpanProcessor(_Nowhere())
    counted = CallMeters(_Nowhere(), resource_of("benchmark")) if meters else None
    return SpanWriter(processor, "benchmark", meters=counted)


_KINDS: dict[str, Callable[[], Telemetry]] = {
    "nothing": Telemetry,
    "metrics for Prometheus": lambda: Telemetry(CallMetrics()),
    "spans": lambda: Telemetry(None, _spans(meters=False)),
    "spans and OpenTelemetry's metrics": lambda: Telemetry(None, _spans(meters=True)),
    TOGETHER: lambda: Telemetry(CallMetrics(), _spans(meters=True)),
}
