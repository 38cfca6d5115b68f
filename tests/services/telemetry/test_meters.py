"""OpenTelemetry's metrics of calls: what bardo counts equals what OpenTelemetry's SDK counts of the same calls."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, MetricsData

from bardo.adapters.stores.log.row import LogRow
from bardo.services.telemetry import names
from bardo.services.telemetry.meters import MOST_SETS, OVERFLOW, CallMeters, resource_of
from support.patience import PATIENCE

RESOURCE = resource_of("house")
ROWS = st.lists(
    st.builds(
        LogRow,
        request_id=st.just("r"),
        started_at=st.just(0.0),
        seconds=st.floats(0.0, 200.0) | st.sampled_from(names.DURATION_BOUNDARIES),
        operation=st.sampled_from(("generate", "embed")),
        provider=st.sampled_from(("anthropic", "lab")),
        model_asked=st.sampled_from(("fast", "m")),
        model=st.sampled_from(("", "m")),
        outcome=st.sampled_from(("ok", "error")),
        error_class=st.sampled_from((None, "Unreachable")),
        input_tokens=st.none() | st.integers(0, 10**7) | st.sampled_from(names.TOKEN_BOUNDARIES),
        output_tokens=st.none() | st.integers(0, 10**7),
    ),
    max_size=30,
)


class Exports:
    """An exporter that keeps what it is given."""

    def __init__(self, *, fails: int = 0) -> None:
        self.data: list[MetricsData] = []
        self.closed = False
        self._fails = fails
        self._came = threading.Condition()

    def export(self, metrics_data: MetricsData, timeout_millis: float = 0, /) -> None:
        with self._came:
            if self._fails:
                self._fails -= 1
                raise OSError("nobody is there")
            self.data.append(metrics_data)
            self._came.notify_all()

    def shutdown(self, timeout_millis: float = 0, /) -> None:
        self.closed = True

    def wait(self) -> None:
        """Wait until something came."""
        with self._came:
            assert self._came.wait_for(lambda: self.data, PATIENCE)


@contextmanager
def meters_of(exports: Exports) -> Iterator[CallMeters]:
    meters = CallMeters(exports, RESOURCE)
    try:
        yield meters
    finally:
        meters.close()


def points(data: Any) -> dict[tuple[str, frozenset[tuple[str, Any]]], tuple[Any, ...]]:
    """Return all histograms by metric and labels, without times."""
    if data is None:
        return {}
    return {
        (metric.name, frozenset(point.attributes.items())): (
            metric.unit,
            point.count,
            pytest.approx(point.sum),
            tuple(point.bucket_counts),
            tuple(point.explicit_bounds),
            point.min,
            point.max,
        )
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        for point in metric.data.data_points
    }


def counted_by_the_sdk(rows: Sequence[LogRow]) -> Any:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    meter = provider.get_meter("bardo")
    seconds = meter.create_histogram(
        names.DURATION, unit="s", explicit_bucket_boundaries_advisory=names.DURATION_BOUNDARIES
    )
    tokens = meter.create_histogram(
        names.TOKEN_USAGE, unit="{token}", explicit_bucket_boundaries_advisory=names.TOKEN_BOUNDARIES
    )
    for row in rows:
        labels: Mapping[str, str] = labels_of(row)
        seconds.record(row.seconds, labels)
        for kind, count in (("input", row.input_tokens), ("output", row.output_tokens)):
            if count is not None:
                tokens.record(count, {**labels, names.TOKEN_TYPE: kind})
    found = reader.get_metrics_data()
    provider.shutdown()
    return found


def labels_of(row: LogRow) -> dict[str, str]:
    found = {
        names.OPERATION: {"generate": "chat", "embed": "embeddings"}[row.operation],
        names.PROVIDER: row.provider,
        names.REQUEST_MODEL: row.model_asked,
        names.RESPONSE_MODEL: row.model,
        names.ERROR_TYPE: "" if row.outcome == "ok" else row.error_class or row.outcome,
    }
    return {name: value for name, value in found.items() if value}


@given(ROWS)
def test_the_counts_are_those_of_opentelemetrys_sdk(rows: list[LogRow]) -> None:
    with meters_of(Exports()) as meters:
        for row in rows:
            meters.note(row)
        assert points(meters.collect()) == points(counted_by_the_sdk(rows))


def call(model: str = "m", tokens: int | None = 5) -> LogRow:
    return LogRow(
        request_id="r", started_at=0.0, seconds=1.0, provider="lab", model_asked=model, model=model, input_tokens=tokens
    )


def counts(data: Any) -> dict[Any, int]:
    return {labels: values[1] for (name, labels), values in points(data).items() if name == names.DURATION}


def test_counts_grow_and_deltas_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    for preference, expected in (("", [1, 2]), ("delta", [1, 1])):
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", preference)
        with meters_of(Exports()) as meters:
            found = []
            for _ in expected:
                meters.note(call())
                [count] = counts(meters.collect()).values()
                found.append(count)
        assert found == expected


def test_clients_cannot_make_labels_without_bound() -> None:
    with meters_of(Exports()) as meters:
        for number in range(MOST_SETS + 50):
            meters.note(call(f"m{number}"))
        found = counts(meters.collect())
    assert len(found) == MOST_SETS + 1
    assert found[frozenset(OVERFLOW.items())] == 50


def test_calls_with_labels_that_are_known_are_counted_there_also_where_no_new_ones_are_taken() -> None:
    with meters_of(Exports()) as meters:
        for number in (*range(MOST_SETS), 7, 7):
            meters.note(call(f"m{number}"))
        found = counts(meters.collect())
    assert len(found) == MOST_SETS
    assert sorted(found.values())[-2:] == [1, 3]


def test_what_waits_is_exported_at_the_end_and_nothing_of_no_calls() -> None:
    silent, exports = Exports(), Exports()
    with meters_of(silent):
        pass
    with meters_of(exports) as meters:
        meters.note(call())
    assert (silent.data, silent.closed, exports.closed) == ([], True, True)
    [data] = exports.data
    assert list(counts(data).values()) == [1]


def test_an_exporter_that_fails_is_asked_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "5")
    exports = Exports(fails=1)
    with meters_of(exports) as meters:
        meters.note(call())
        exports.wait()
    assert "metrics were not exported" in caplog.text
