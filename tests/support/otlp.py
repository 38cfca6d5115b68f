"""A receiver of OTLP over HTTP that reads what a collector reads, and refuses what the protocol forbids.

Source: opentelemetry.io/docs/specs/otlp (1.9) and opentelemetry/proto, read 2026-11.
It decodes protobuf by the package opentelemetry-proto.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from google.protobuf.message import DecodeError  # type: ignore[import-untyped]
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from support.patience import PATIENCE

_PROTOBUF = "application/x-protobuf"


class Collector:
    """Spans and metrics that came, and why others were refused."""

    def __init__(self) -> None:
        self.address = ""
        self.spans: list[Any] = []
        self.metrics: list[Any] = []
        self.services: set[str] = set()
        self.refused: list[str] = []
        self._came = threading.Condition()

    def wait(self, wanted: Callable[[Collector], bool]) -> None:
        """Wait until something is there; fails where something was refused."""
        with self._came:
            assert self._came.wait_for(lambda: self.refused or wanted(self), PATIENCE)
        assert self.refused == []

    def take(self, path: str, content_type: str, body: bytes) -> bytes:
        """Read one export, and return the answer. Raises ValueError for what the protocol forbids."""
        if content_type != _PROTOBUF:
            raise ValueError(f"the body is {content_type!r}")
        match path:
            case "/v1/traces":
                return self._spans(ExportTraceServiceRequest.FromString(body))
            case "/v1/metrics":
                return self._metrics(ExportMetricsServiceRequest.FromString(body))
        raise ValueError(f"nothing is taken at {path}")

    def told(self) -> None:
        """Wake who waits."""
        with self._came:
            self._came.notify_all()

    def _spans(self, request: Any) -> bytes:
        for group in request.resource_spans:
            self._resource(group.resource)
            for scope in group.scope_spans:
                _require(bool(scope.scope.name), "a scope has a name")
                for span in scope.spans:
                    check_span(span)
                    self.spans.append(span)
        return bytes(ExportTraceServiceResponse().SerializeToString())

    def _metrics(self, request: Any) -> bytes:
        for group in request.resource_metrics:
            self._resource(group.resource)
            for scope in group.scope_metrics:
                for metric in scope.metrics:
                    check_histogram(metric)
                    self.metrics.append(metric)
        return bytes(ExportMetricsServiceResponse().SerializeToString())

    def _resource(self, resource: Any) -> None:
        known = attributes(resource)
        _require(bool(known.get("service.name")), "a resource has service.name")
        self.services.add(known["service.name"])


def attributes(thing: Any) -> dict[str, Any]:
    """Return attributes as values. Raises ValueError for one without a value, and for one that is there twice."""
    found: dict[str, Any] = {}
    for one in thing.attributes:
        kind = one.value.WhichOneof("value")
        _require(bool(one.key) and kind is not None and one.key not in found, f"attribute {one.key!r}")
        value = getattr(one.value, kind)
        found[one.key] = (
            [getattr(item, item.WhichOneof("value")) for item in value.values] if "array" in kind else value
        )
    return found


def check_span(span: Any) -> None:
    """Raise ValueError for a span that is not sound."""
    _require(len(span.trace_id) == 16 and any(span.trace_id), "a trace id has 16 bytes, not all of them zero")
    _require(len(span.span_id) == 8 and any(span.span_id), "a span id has 8 bytes, not all of them zero")
    _require(len(span.parent_span_id) in (0, 8), "a parent's id has 8 bytes, or is not there")
    _require(bool(span.name), "a span has a name")
    _require(0 < span.start_time_unix_nano <= span.end_time_unix_nano, "a span ends after its beginning")
    _require(span.kind != 0, "a span has a kind")
    attributes(span)


def check_histogram(metric: Any) -> None:
    """Raise ValueError for a metric that is no sound histogram."""
    _require(bool(metric.name and metric.unit), "a metric has a name and a unit")
    _require(metric.WhichOneof("data") == "histogram", "these metrics are histograms")
    _require(metric.histogram.aggregation_temporality in (1, 2), "a histogram says whether it is cumulative")
    seen = set()
    for point in metric.histogram.data_points:
        bounds = list(point.explicit_bounds)
        _require(bounds == sorted(set(bounds)), "boundaries grow")
        _require(len(point.bucket_counts) == len(bounds) + 1, "there is one more bucket than boundaries")
        _require(sum(point.bucket_counts) == point.count > 0, "each value is in one bucket")
        _require(point.min <= point.max and point.sum >= point.max, "the sum of values that are not negative")
        _require(0 < point.start_time_unix_nano <= point.time_unix_nano, "a point has the times of its interval")
        labels = frozenset(attributes(point).items())
        _require(labels not in seen, "a set of labels has one point")
        seen.add(labels)


def _require(holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(rule)


@contextmanager
def collector() -> Iterator[Collector]:
    """Run a receiver on a free port."""
    found = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                if self.headers.get("content-encoding", "identity") == "gzip":
                    body = gzip.decompress(body)
                answer, status = found.take(self.path, self.headers.get("content-type", ""), body), 200
            except (ValueError, DecodeError) as problem:
                found.refused.append(str(problem))
                answer, status = b"", 400
            self.send_response(status)
            self.send_header("content-type", _PROTOBUF)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)
            found.told()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()
