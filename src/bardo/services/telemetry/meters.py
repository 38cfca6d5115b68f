"""The two metrics of OpenTelemetry's conventions for generative AI: how long calls take, and how many tokens they use.

Calls are counted here, in one histogram for each set of labels, and OpenTelemetry's exporter gets the histograms once a minute: three
records of its SDK for each call take twenty times as long. `OTEL_METRIC_EXPORT_INTERVAL` and
`OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE` are honoured.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from bardo.adapters.stores.log.row import LogRow
from bardo.catalog.telemetry_rows import telemetry_names
from bardo.services.telemetry import names
from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install

SCOPE = "bardo"
"""The name of what makes the spans and metrics."""


def package(name: str) -> Any:
    """Return a module of OpenTelemetry. Raises ConfigError where it is not there."""
    try:
        return importlib.import_module(name)
    except ImportError:
        hint = f"{how_to_install('telemetry')}, or leave out otlp under [telemetry]"
        raise ConfigError("spans need OpenTelemetry's SDK and its OTLP exporter", hint=hint) from None


def resource_of(service: str) -> Any:
    """Return what the exporting process is called."""
    from bardo._version import __version__

    return package("opentelemetry.sdk.resources").Resource.create(
        {"service.name": service, "service.version": __version__}
    )


MOST_SETS = 2000
"""Sets of labels that are counted apart; calls of those after them are counted together, because clients choose the names of models."""
OVERFLOW = {"otel.metric.overflow": True}
"""OpenTelemetry's specified names for the labels of those."""
_INTERVAL_VARIABLE = "OTEL_METRIC_EXPORT_INTERVAL"
_TEMPORALITY_VARIABLE = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE"
_DELTA = ("delta", "lowmemory")
_INTERVAL_MILLIS = 60_000.0
_PATIENCE_MILLIS = 30_000.0
_LOG = logging.getLogger("bardo.telemetry")


class MetricExporter(Protocol):
    """The exporter of metrics of OpenTelemetry's SDK."""

    def export(self, metrics_data: Any, timeout_millis: float = ..., /) -> object: ...

    def shutdown(self, timeout_millis: float = ..., /) -> object: ...


class Histogram:
    """Counts values by upper boundaries; a value that equals a boundary is below it."""

    __slots__ = ("_boundaries", "counts", "least", "most", "number", "total")

    def __init__(self, boundaries: Sequence[float]) -> None:
        self._boundaries = boundaries
        self.counts = [0] * (len(boundaries) + 1)
        self.number = 0
        self.total: float = 0
        self.least = float("inf")
        self.most = float("-inf")

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self._boundaries, value)] += 1
        self.number += 1
        self.total += value
        if value < self.least:
            self.least = value
        if value > self.most:
            self.most = value


class _LabelCounts(NamedTuple):
    """The counts of one set of labels."""

    labels: Mapping[str, Any]
    seconds: Histogram
    input: Histogram
    output: Histogram


class CallMeters:
    """Counts calls, and exports the counts in a thread of its own. `clock` gives nanoseconds."""

    def __init__(self, exporter: MetricExporter, resource: Any, *, clock: Callable[[], int] = time.time_ns) -> None:
        self._exporter = exporter
        self._resource = resource
        self._clock = clock
        self._sdk = package("opentelemetry.sdk.metrics.export")
        self._scope = package("opentelemetry.sdk.util.instrumentation").InstrumentationScope(SCOPE)
        self._delta = os.environ.get(_TEMPORALITY_VARIABLE, "").lower() in _DELTA
        self._sets: dict[tuple[str, ...], _LabelCounts] = {}
        self._since = clock()
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._export_often, name="bardo-metrics", daemon=True)
        self._thread.start()

    def note(self, row: LogRow) -> None:
        """Count one call."""
        error = "" if row.outcome == "ok" else row.error_class or row.outcome
        key = (row.operation, row.provider, row.model_asked, row.model, error)
        with self._lock:
            counted = self._sets.get(key) or self._new_set(key)
            counted.seconds.add(row.seconds)
            if row.input_tokens is not None:
                counted.input.add(row.input_tokens)
            if row.output_tokens is not None:
                counted.output.add(row.output_tokens)

    def close(self) -> None:
        """Export what waits, and end the thread."""
        self._closed.set()
        self._thread.join(_PATIENCE_MILLIS / 1000)
        self._exporter.shutdown()

    def collect(self) -> Any | None:
        """Return what was counted as the exporter takes it, or None if there is nothing. Deltas begin anew."""
        with self._lock:
            now = self._clock()
            since, counted = self._since, list(self._sets.values())
            seconds = list(
                self._points(((row.labels, row.seconds) for row in counted), names.DURATION_BOUNDARIES, since, now)
            )
            tokens = list(self._points(_by_type(counted), names.TOKEN_BOUNDARIES, since, now))
            if self._delta:
                self._sets, self._since = {}, now
        points = [
            self._metric(names.DURATION, "s", seconds),
            *([self._metric(names.TOKEN_USAGE, "{token}", tokens)] if tokens else ()),
        ]
        return self._data(points) if counted else None

    def _new_set(self, key: tuple[str, ...]) -> _LabelCounts:
        labels: Mapping[str, Any] = OVERFLOW
        if len(self._sets) >= MOST_SETS:
            key = ()
        else:
            labels = _labels(*key)
        row = self._sets.get(key)
        if row is None:
            tokens = names.TOKEN_BOUNDARIES
            row = _LabelCounts(labels, Histogram(names.DURATION_BOUNDARIES), Histogram(tokens), Histogram(tokens))
            self._sets[key] = row
        return row

    def _export_often(self) -> None:
        while not self._closed.wait(_interval_seconds()):
            self._export()
        self._export()

    def _export(self) -> None:
        try:
            data = self.collect()
            if data is not None:
                self._exporter.export(data, _PATIENCE_MILLIS)
        except Exception:  # noqa: BLE001 - the thread goes on with the next minute, whatever the exporter raised.
            _LOG.exception("metrics were not exported")

    def _points(
        self,
        histograms: Iterator[tuple[Mapping[str, Any], Histogram]],
        boundaries: Sequence[float],
        since: int,
        now: int,
    ) -> Iterator[Any]:
        for labels, histogram in histograms:
            if histogram.number:
                yield self._sdk.HistogramDataPoint(
                    attributes=labels,
                    start_time_unix_nano=since,
                    time_unix_nano=now,
                    count=histogram.number,
                    sum=histogram.total,
                    bucket_counts=tuple(histogram.counts),
                    explicit_bounds=boundaries,
                    min=histogram.least,
                    max=histogram.most,
                )

    def _metric(self, name: str, unit: str, points: Sequence[Any]) -> Any:
        temporality = self._sdk.AggregationTemporality
        data = self._sdk.Histogram(points, temporality.DELTA if self._delta else temporality.CUMULATIVE)
        return self._sdk.Metric(name=name, description="", unit=unit, data=data)

    def _data(self, metrics: Sequence[Any]) -> Any:
        scope = self._sdk.ScopeMetrics(scope=self._scope, metrics=metrics, schema_url="")
        return self._sdk.MetricsData([self._sdk.ResourceMetrics(self._resource, [scope], "")])


def _by_type(counted: Sequence[_LabelCounts]) -> Iterator[tuple[Mapping[str, Any], Histogram]]:
    for counts in counted:
        yield {**counts.labels, names.TOKEN_TYPE: "input"}, counts.input
        yield {**counts.labels, names.TOKEN_TYPE: "output"}, counts.output


def _labels(operation: str, provider: str, asked: str, model: str, error: str) -> dict[str, str]:
    labels = {
        names.OPERATION: names.OPERATIONS.get(operation, operation),
        names.PROVIDER: telemetry_names().get(provider, provider),
        names.REQUEST_MODEL: asked,
        names.RESPONSE_MODEL: model,
        names.ERROR_TYPE: error,
    }
    return {name: value for name, value in labels.items() if value}


def _interval_seconds() -> float:
    try:
        millis = float(os.environ.get(_INTERVAL_VARIABLE, _INTERVAL_MILLIS))
    except ValueError:
        millis = _INTERVAL_MILLIS
    return (millis if millis > 0 else _INTERVAL_MILLIS) / 1000
