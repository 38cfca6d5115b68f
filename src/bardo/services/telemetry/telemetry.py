"""What is told of each call, to whom it is configured; nothing of this is loaded where nothing is."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bardo.adapters.config.settings import TelemetrySettings
from bardo.adapters.log_filter import SecretFilter
from bardo.adapters.net.keys import secret_values
from bardo.adapters.stores.log.row import LogRow
from bardo.services.telemetry.details import CallDetails
from bardo.services.telemetry.meters import CallMeters
from bardo.services.telemetry.packages import package, resource_of
from bardo.services.telemetry.prometheus import CallMetrics
from bardo.services.telemetry.spans import SpanWriter
from bardo.services.telemetry.trace import TRACEPARENT, TRACESTATE, TraceContext, begin_trace
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request
from bardo.values.secrets import secrets_of

EXPORTER_LOGGERS = (
    "opentelemetry.exporter.otlp.common.http",
    "opentelemetry.exporter.otlp.proto.http.trace_exporter",
    "opentelemetry.exporter.otlp.proto.http.metric_exporter",
    "urllib3.connectionpool",
    "opentelemetry.sdk._shared_internal",
    "opentelemetry.sdk.trace.export",
)
"""The loggers that quote the address of a collector."""
_SECONDS_BETWEEN_LINES = 60.0
_MOST_OPEN = 100_000
"""Calls that may be under way; of more of them the first have spans without a parent."""


Asked = TypeVar("Asked", bound=Request | EmbedRequest)


class SpanSink(Protocol):
    """Where spans of calls go."""

    def note(self, row: LogRow, context: TraceContext, details: CallDetails | None = None) -> None: ...

    def close(self) -> None: ...


class Telemetry:
    """Tells of calls. `metrics` are for Prometheus, `spans` for OpenTelemetry; either may be None."""

    def __init__(self, metrics: CallMetrics | None = None, spans: SpanSink | None = None) -> None:
        self.metrics = metrics
        self._spans = spans
        self._open: OrderedDict[str, tuple[TraceContext, CallDetails]] = OrderedDict()

    @property
    def traces(self) -> bool:
        """Whether calls have spans."""
        return self._spans is not None

    def begin(self, request_id: str, request: Asked) -> Asked:
        """Begin the span of a call, and return the request with the headers that make a provider's spans its children.

        A request for vectors has no headers of its client's: its span begins a trace.
        """
        if self._spans is None:
            return request
        headers = request.client_headers if isinstance(request, Request) else {}
        context = begin_trace(headers.get(TRACEPARENT, ""), headers.get(TRACESTATE, ""))
        self._open[request_id] = context, CallDetails(request)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        if not isinstance(request, Request):
            return request
        others = {name: value for name, value in headers.items() if name not in (TRACEPARENT, TRACESTATE)}
        return msgspec.structs.replace(request, client_headers={**others, **context.headers()})

    def note(self, row: LogRow) -> None:
        """Tell of a call that ended."""
        if self.metrics is not None:
            self.metrics.note(row)
        if self._spans is not None:
            context, details = self._open.pop(row.request_id, None) or (begin_trace(), None)
            self._spans.note(row, context, details)

    def details(self, request_id: str) -> CallDetails | None:
        """Return what takes the details of a call that is under way; None where its span is not wanted."""
        found = self._open.get(request_id)
        return None if found is None else found[1]

    def close(self) -> None:
        """Export what waits. Blocks, at most for the time that the exporter gives itself."""
        if self._spans is not None:
            self._spans.close()


def open_telemetry(settings: TelemetrySettings) -> Telemetry:
    """Return what the settings ask for. Raises ConfigError where a package is not there."""
    metrics = CallMetrics() if settings.metrics else None
    return Telemetry(metrics, _spans(settings) if settings.otlp else None)


def _spans(settings: TelemetrySettings) -> SpanWriter:
    hide_address(settings.otlp)
    exporters = package("opentelemetry.exporter.otlp.proto.http.trace_exporter")
    meters = package("opentelemetry.exporter.otlp.proto.http.metric_exporter")
    exporter = exporters.OTLPSpanExporter(endpoint=address_of(settings.otlp, "traces"))
    processor = package("opentelemetry.sdk.trace.export").BatchSpanProcessor(exporter)
    counted = CallMeters(
        meters.OTLPMetricExporter(endpoint=address_of(settings.otlp, "metrics")), resource_of(settings.service)
    )
    return SpanWriter(processor, settings.service, meters=counted)


def address_of(otlp: str, signal: str) -> str:
    """Return where a collector takes a signal. A query of its address stays behind the path."""
    parts = urlsplit(otlp)
    return urlunsplit(parts._replace(path=f"{parts.path.rstrip('/')}/v1/{signal}"))


def hide_address(otlp: str) -> None:
    """Keep the user, the password and the query of a collector's address out of the exporter's own log lines."""
    hidden = SecretFilter(secrets_of(tuple(sorted(secret_values({}, otlp)))))
    seldom = SeldomFilter()
    for name in EXPORTER_LOGGERS:
        logger = logging.getLogger(name)
        # Of an earlier configuration: a collector is said once a minute however often it was configured.
        for before in [one for one in logger.filters if isinstance(one, SeldomFilter)]:
            logger.removeFilter(before)
        logger.addFilter(hidden)
        logger.addFilter(seldom)


class SeldomFilter(logging.Filter):
    """Lets one line in a minute pass, of all exporters together, and says in it how many were left out. `watch` measures time."""

    def __init__(self, watch: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._watch = watch
        self._lock = threading.Lock()
        self._next = -math.inf
        self._left_out = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a line is written."""
        with self._lock:
            now = self._watch()
            if now < self._next:
                self._left_out += 1
                return False
            self._next, left_out, self._left_out = now + _SECONDS_BETWEEN_LINES, self._left_out, 0
        more = f" ({left_out} more lines like it were left out)" if left_out else ""
        record.msg = (
            f"the collector does not take what is exported, which is said once a minute: {record.getMessage()}{more}"
        )
        # The stack of an exporter tells nothing that its message does not.
        record.args, record.exc_info, record.exc_text = (), None, None
        return True
