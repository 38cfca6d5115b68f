"""Spans of calls for OpenTelemetry, made of the rows of the log, exported by OTLP over HTTP.

The packages come with the extra `bardo[telemetry]`. A span is made when its call has ended, with the id that it had from its beginning: a
call costs one value more than its row. Spans are exported in a thread of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bardo.adapters.stores.log.row import LogRow
from bardo.catalog.telemetry_rows import telemetry_names
from bardo.services.telemetry import names
from bardo.services.telemetry.details import CallDetails
from bardo.services.telemetry.meters import CallMeters
from bardo.services.telemetry.packages import SCOPE, package, resource_of
from bardo.services.telemetry.trace import TraceContext
from bardo.values.attempts import AttemptRecord
from bardo.values.chance import CHANCE

_NANOS = 1_000_000_000


class SpanWriter:
    """Makes spans and gives them to a span processor of OpenTelemetry's SDK. Raises ConfigError where the SDK is not there."""

    def __init__(self, processor: Any, service: str, *, meters: CallMeters | None = None) -> None:
        self._processor = processor
        self._trace = package("opentelemetry.trace")
        self._sdk = package("opentelemetry.sdk.trace")
        scope = package("opentelemetry.sdk.util.instrumentation").InstrumentationScope
        self._scope = scope(SCOPE)
        self._resource = resource_of(service)
        self._meters = meters
        self._ok = self._trace.Status(self._trace.StatusCode.OK)

    def note(self, row: LogRow, context: TraceContext, details: CallDetails | None = None) -> None:
        """Export the span of one call, with one for each of its attempts where there were several.

        Usage is that of the call, on its span alone: whoever sums spans up counts each token once.
        """
        if self._meters is not None:
            self._meters.note(row)
        if not context.sampled:
            return
        details = details or CallDetails()
        attributes = {**_attributes(row), **details.attributes()}
        own = self._span_context(context.trace_id, context.span_id, context)
        parent = self._span_context(context.trace_id, context.parent, context, remote=True) if context.parent else None
        began, ended = _nanos(row.started_at), _nanos(row.started_at + row.seconds)
        for place, one in enumerate(row.attempt_records):
            child = self._span_context(context.trace_id, CHANCE.getrandbits(64) or 1, context)
            start = began + _nanos(one.started)
            end = min(ended, start + _nanos(one.seconds or 0.0))
            status = self._status(one.error or None)
            told = _of_attempt(row, one, place) | details.server(place)
            self._export(_name(row.operation, one.model), child, own, told, start, end, status)
        status = self._status(None if row.outcome == "ok" else row.error_class or row.outcome)
        kind = self._trace.SpanKind.CLIENT
        self._export(_name(row.operation, row.model), own, parent, attributes, began, ended, status, kind)

    def close(self) -> None:
        """Export what waits."""
        self._processor.shutdown()
        if self._meters is not None:
            self._meters.close()

    def _export(
        self,
        name: str,
        context: Any,
        parent: Any | None,
        attributes: Mapping[str, Any],
        began: int,
        ended: int,
        status: Any,
        kind: Any | None = None,
    ) -> None:
        self._processor.on_end(
            self._sdk.ReadableSpan(
                name=name,
                context=context,
                parent=parent,
                resource=self._resource,
                attributes=attributes,
                kind=self._trace.SpanKind.CLIENT if kind is None else kind,
                status=status,
                start_time=began,
                end_time=ended,
                instrumentation_scope=self._scope,
            )
        )

    def _span_context(self, trace: int, span: int, of: TraceContext, *, remote: bool = False) -> Any:
        flags = self._trace.TraceFlags(1 if of.sampled else 0)
        state = self._trace.TraceState.from_header([of.state]) if of.state else None
        return self._trace.SpanContext(trace, span, is_remote=remote, trace_flags=flags, trace_state=state)

    def _status(self, error: str | None) -> Any:
        return self._ok if error is None else self._trace.Status(self._trace.StatusCode.ERROR, error)


def _attributes(row: LogRow) -> dict[str, Any]:
    """Return the attributes of a call, without those that are not known."""
    found = {
        names.OPERATION: names.OPERATIONS.get(row.operation, row.operation),
        names.PROVIDER: telemetry_names().get(row.provider, row.provider),
        names.REQUEST_MODEL: row.model_asked,
        names.RESPONSE_MODEL: row.model,
        names.REQUEST_STREAM: row.streamed,
        names.REQUEST_ID: row.request_id,
        names.FINISH_REASONS: [row.finish_reason] if row.finish_reason else None,
        names.TIME_TO_FIRST_CHUNK: row.first_byte_seconds,
        names.INPUT_TOKENS: row.input_tokens,
        names.OUTPUT_TOKENS: row.output_tokens,
        names.REASONING_TOKENS: row.reasoning_tokens,
        names.CACHE_READ_TOKENS: row.cached_input_tokens,
        names.CACHE_WRITE_TOKENS: row.cache_write_tokens,
        names.ERROR_TYPE: None if row.outcome == "ok" else row.error_class or row.outcome,
        names.STATUS_CODE: row.status,
        names.COST_USD: row.cost_usd,
        names.ATTEMPTS: row.attempts,
        names.VERDICT: row.reasoning_verdict,
        names.DEGRADED: [str(one.get("what", "")) for one in row.degraded] or None,
        names.KEY_ID: row.key_id,
        names.SUBSYSTEM: row.subsystem,
        names.CACHE: row.cache,
    }
    return {name: value for name, value in found.items() if value is not None and value != ""}


def _of_attempt(row: LogRow, one: AttemptRecord, place: int) -> dict[str, Any]:
    found = {
        names.OPERATION: names.OPERATIONS.get(row.operation, row.operation),
        names.REQUEST_STREAM: row.streamed,
        names.PROVIDER: telemetry_names().get(one.provider, one.provider),
        names.REQUEST_MODEL: one.model,
        names.WHY: one.cause,
        names.ATTEMPTS: place + 1,
        names.STATUS_CODE: one.status,
        names.ERROR_TYPE: one.error or None,
    }
    return {name: value for name, value in found.items() if value is not None}


def _name(operation: str, model: str) -> str:
    return f"{names.OPERATIONS.get(operation, operation)} {model}".strip()


def _nanos(seconds: float) -> int:
    return int(seconds * _NANOS)
