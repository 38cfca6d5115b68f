"""Telemetry of calls: metrics for Prometheus and spans for OpenTelemetry, both made of the rows of the log.

Their packages come with the extra `bardo[telemetry]`, and are loaded where they are configured.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlsplit, urlunsplit

import msgspec

from bardo import reuse
from bardo.adapters.chance import CHANCE
from bardo.adapters.config.settings import TelemetrySettings
from bardo.adapters.log_filter import SecretFilter
from bardo.adapters.net.keys import secret_values
from bardo.adapters.stores.log.row import LogRow
from bardo.adapters.work_budget import LEFT_OUT
from bardo.catalog.layer_rows import caller_rows
from bardo.catalog.telemetry_rows import telemetry_names
from bardo.context.sessions import session_name
from bardo.planning.route import Target
from bardo.services.telemetry import names
from bardo.services.telemetry.meters import SCOPE, CallMeters, package, resource_of
from bardo.values.errors import ConfigError
from bardo.values.operations import CompactedConversation, Embeddings, EmbedRequest, TokenCount
from bardo.values.request import TRACE_HEADERS, Request, how_to_install
from bardo.values.response import Response
from bardo.values.secrets import secrets_of

_LONGEST = 256
_MOST_STOPS = 16
_PORTS = {"http": 80, "https": 443}


class CallDetails:
    """The details of one call, put together while it goes on.

    They are what a span tells beside the row of the log: the request's parameters, the servers that were asked, and the reply's own id.
    """

    def __init__(self, request: Request | EmbedRequest | None = None) -> None:
        self._asked: dict[str, Any] = {}
        self._kept_id = ""
        if isinstance(request, EmbedRequest):
            self._asked = {names.ENCODING_FORMATS: [request.encoding]}
            self._asked |= {} if request.dimensions is None else {names.DIMENSIONS: request.dimensions}
        elif request is not None:
            sampling = request.sampling
            stored = request.kept_as
            fields = {
                names.MAX_TOKENS: request.max_output_tokens,
                names.CHOICES: request.choices if request.choices != 1 else None,
                names.TEMPERATURE: sampling.temperature,
                names.TOP_P: sampling.top_p,
                names.TOP_K: sampling.top_k,
                names.FREQUENCY_PENALTY: sampling.frequency_penalty,
                names.PRESENCE_PENALTY: sampling.presence_penalty,
                names.SEED: sampling.seed,
                names.STOP: [stop[:_LONGEST] for stop in sampling.stop[:_MOST_STOPS]] or None,
                names.CONVERSATION_ID: ("" if stored is None else stored.conversation)
                or session_name(request)[:_LONGEST]
                or None,
            }
            self._asked = {name: value for name, value in fields.items() if value is not None}
            self._kept_id = "" if request.kept_as is None else request.kept_as.id
        self._servers: list[dict[str, Any]] = []
        self._answer: dict[str, Any] = {}

    def sent(self, target: Target) -> None:
        """Note the server of one more attempt."""
        parts = urlsplit(target.provider.base_url)
        try:
            port = parts.port or _PORTS.get(parts.scheme)
        except ValueError:
            port = None
        server = {names.SERVER_ADDRESS: parts.hostname, names.SERVER_PORT: port}
        self._servers.append({name: value for name, value in server.items() if value is not None})

    def answered(self, response: Response) -> None:
        """Note the id of the reply as its client has it, and the model as the reply names it."""
        fields = {names.RESPONSE_ID: self._kept_id or response.id, names.RESPONSE_MODEL: response.model}
        self._answer = {name: value[:_LONGEST] for name, value in fields.items() if value}

    def counted(self, result: Embeddings | TokenCount | CompactedConversation) -> None:
        """Note what was made in one piece: the model as its reply names it, and how many numbers a vector has."""
        size = result.dimensions if isinstance(result, Embeddings) else 0
        fields = {names.RESPONSE_MODEL: result.model[:_LONGEST], names.DIMENSIONS: size}
        self._answer = {name: value for name, value in fields.items() if value}

    def attributes(self) -> dict[str, Any]:
        """Return the attributes of the call: its server is the last one that was asked."""
        return {**self._asked, **(self._servers[-1] if self._servers else {}), **self._answer}

    def server(self, place: int) -> dict[str, Any]:
        """Return the attributes of the server of one attempt."""
        return self._servers[place] if place < len(self._servers) else {}


MOST_SESSIONS = 10_000
"""Sessions that are remembered, so that each is counted once."""
MOST_PAIRS = 200
"""Pairs of provider and model that have labels of their own; those after them share `other`."""
OTHER = "other"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_LAYER_SECONDS = (0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)
_WHO = ("provider", "model")
_TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")


class CallMetrics:
    """Counts calls. Raises ConfigError where prometheus-client is not there.

    Labels are bounded, since clients choose the names of models. With several workers `PROMETHEUS_MULTIPROC_DIR` names the folder in which
    they share their counts; `bardo serve` sets it.
    """

    def __init__(self) -> None:
        self._client = client = _package()
        self._registry = registry = client.CollectorRegistry()
        self._shared = bool(os.environ.get(FOLDER_VARIABLE))
        self._pairs: dict[tuple[str, str], _PairMetrics] = {}
        self._calls = client.Counter(
            "bardo_calls", "Calls that ended.", (*_WHO, "operation", "outcome", "error"), registry=registry
        )
        self._tokens = client.Counter(
            "bardo_tokens", "Tokens that providers counted.", (*_WHO, "type"), registry=registry
        )
        self._cost = client.Counter(
            "bardo_cost_usd", "US dollars, of calls whose cost is known.", _WHO, registry=registry
        )
        self._unpriced = client.Counter("bardo_calls_unpriced", "Calls whose cost is unknown.", _WHO, registry=registry)
        self._attempts = client.Counter("bardo_attempts", "Attempts at providers.", _WHO, registry=registry)
        self._degraded = client.Counter("bardo_calls_degraded", "Calls with a degradation.", _WHO, registry=registry)
        self._seconds = client.Histogram(
            "bardo_call_seconds", "Seconds of a call.", _WHO, buckets=_SECONDS, registry=registry
        )
        self._first = client.Histogram(
            "bardo_first_byte_seconds",
            "Seconds to the first piece of a reply.",
            _WHO,
            buckets=_SECONDS,
            registry=registry,
        )
        self._cache = client.Counter(
            "bardo_reply_cache", "What the cache of replies did.", ("result",), registry=registry
        )
        self._layer_seconds = client.Histogram(
            "bardo_layer_seconds",
            "Seconds that a layer took of a call, with what it waited for.",
            ("layer",),
            buckets=_LAYER_SECONDS,
            registry=registry,
        )
        self._left_out = client.Counter(
            "bardo_layers_left_out", "Calls for which a layer had no time.", ("layer",), registry=registry
        )
        self._agent_calls = client.Counter("bardo_agent_calls", "Calls of agents.", ("agent",), registry=registry)
        self._agent_cost = client.Counter(
            "bardo_agent_cost_usd", "US dollars of agents, of calls whose cost is known.", ("agent",), registry=registry
        )
        self._sessions_begun = client.Counter(
            "bardo_sessions", "Sessions that began, by the names that clients give them.", registry=registry
        )
        self._reused, self._reusable = (
            client.Gauge(name, what, registry=registry, multiprocess_mode="max")
            for name, what in (
                ("bardo_reuse_bytes", "Bytes kept of earlier requests to save work, of the worker that keeps most."),
                ("bardo_reuse_max_bytes", "Bytes that one worker may keep of earlier requests."),
            )
        )
        self._agents = {row.agent for row in caller_rows()}
        self._sessions: dict[tuple[str | None, str], None] = {}

    def note(self, row: LogRow) -> None:
        """Count one call that ended."""
        pair = self._pair(row.provider, row.model)
        pair.ended(row.operation, row.outcome, row.error_class or "").inc()
        pair.seconds.observe(row.seconds)
        if row.first_byte_seconds is not None:
            pair.first.observe(row.first_byte_seconds)
        counts = (
            row.input_tokens,
            row.output_tokens,
            row.reasoning_tokens,
            row.cached_input_tokens,
            row.cache_write_tokens,
        )
        for counter, count in zip(pair.tokens, counts, strict=True):
            if count:
                counter.inc(count)
        if row.cost_usd is None:
            pair.unpriced.inc()
        elif row.cost_usd > 0:
            pair.cost.inc(row.cost_usd)
        if row.attempts:
            pair.attempts.inc(row.attempts)
        if row.degraded:
            pair.degraded.inc()
        if row.cache:
            self._cache.labels(row.cache.partition(":")[0]).inc()
        for receipt in (row.pipeline or {}).get("layers", ()):
            self._layer_seconds.labels(receipt["layer"]).observe(receipt.get("microseconds", 0) / 1e6)
            if receipt.get("saw", {}).get(LEFT_OUT):
                self._left_out.labels(receipt["layer"]).inc()

        if row.agent:
            # Clients choose names, so those that bardo does not know are one.
            agent = row.agent if row.agent in self._agents else OTHER
            self._agent_calls.labels(agent).inc()
            if row.cost_usd is not None and row.cost_usd > 0:
                self._agent_cost.labels(agent).inc(row.cost_usd)
        if row.session:
            self._note_session((row.key_id, row.session))
        self._note_reuse()

    def _note_reuse(self) -> None:
        """Set what this process keeps: another worker may be asked for the metrics."""
        self._reused.set(reuse.held_bytes())
        self._reusable.set(reuse.most_bytes())

    def _note_session(self, session: tuple[str | None, str]) -> None:
        """Count a session of which no call was seen lately by this process."""
        if session in self._sessions:
            del self._sessions[session]
        else:
            self._sessions_begun.inc()
            if len(self._sessions) >= MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        self._sessions[session] = None

    def page(self) -> tuple[bytes, str]:
        """Return the metrics of all workers as Prometheus reads them, and their content type."""
        self._note_reuse()
        registry = self._registry
        if self._shared:
            registry = self._client.CollectorRegistry()
            importlib.import_module("prometheus_client.multiprocess").MultiProcessCollector(registry)
        return self._client.generate_latest(registry), self._client.CONTENT_TYPE_LATEST

    def _pair(self, provider: str, model: str) -> _PairMetrics:
        metrics = self._pairs.get((provider, model))
        if metrics is None:
            if len(self._pairs) >= MOST_PAIRS:
                return self._pairs.setdefault((OTHER, OTHER), self._make_metrics(OTHER, OTHER))
            metrics = self._pairs[provider, model] = self._make_metrics(provider, model)
        return metrics

    def _make_metrics(self, provider: str, model: str) -> _PairMetrics:
        return _PairMetrics(self, provider, model)


class _PairMetrics:
    """The metrics of one provider and model, whose labels are looked up once."""

    def __init__(self, metrics: CallMetrics, provider: str, model: str) -> None:
        self._who = provider, model
        self._calls = metrics._calls
        self._ended: dict[tuple[str, str, str], Any] = {}
        self.seconds = metrics._seconds.labels(*self._who)
        self.first = metrics._first.labels(*self._who)
        self.tokens = [metrics._tokens.labels(*self._who, kind) for kind in _TOKENS]
        self.cost = metrics._cost.labels(*self._who)
        self.unpriced = metrics._unpriced.labels(*self._who)
        self.attempts = metrics._attempts.labels(*self._who)
        self.degraded = metrics._degraded.labels(*self._who)

    def ended(self, operation: str, outcome: str, error: str) -> Any:
        """Return the counter of calls that ended in one way: operations, outcomes and classes of errors are bardo's own, and few."""
        counter = self._ended.get((operation, outcome, error))
        if counter is None:
            counter = self._ended[operation, outcome, error] = self._calls.labels(*self._who, operation, outcome, error)
        return counter


def _package() -> Any:
    try:
        return importlib.import_module("prometheus_client")
    except ImportError:
        hint = f"{how_to_install('telemetry')}, or set metrics = false under [telemetry]"
        raise ConfigError("metrics need the package prometheus-client", hint=hint) from None


TRACEPARENT, TRACESTATE = TRACE_HEADERS
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01
_LONGEST_STATE = 512


class TraceContext(NamedTuple):
    """The span of one call. `parent` is the client's span, 0 where it sent none; `state` is passed on as it came.

    It is read from a client's header, and written to the provider's (w3.org/TR/trace-context, level 1).
    """

    trace_id: int
    span_id: int
    parent: int = 0
    sampled: bool = True
    state: str = ""

    def headers(self) -> dict[str, str]:
        """Return the headers by which a provider's spans become children of this one."""
        flags = _SAMPLED if self.sampled else 0
        headers = {TRACEPARENT: f"00-{self.trace_id:032x}-{self.span_id:016x}-{flags:02x}"}
        return headers | {TRACESTATE: self.state} if self.state else headers


def begin_trace(traceparent: str = "", tracestate: str = "") -> TraceContext:
    """Return the context of a new span: a child of the client's where its header is sound, else the root of a trace of its own."""
    match = _FORM.fullmatch(traceparent.strip())
    span = CHANCE.getrandbits(64) or 1
    if (
        match is None
        or match[1] == "ff"
        or (match[1] == "00" and match[5])
        or not int(match[2], 16)
        or not int(match[3], 16)
    ):
        return TraceContext(CHANCE.getrandbits(128) or 1, span)
    state = tracestate if len(tracestate) <= _LONGEST_STATE else ""
    return TraceContext(int(match[2], 16), span, int(match[3], 16), bool(int(match[4], 16) & _SAMPLED), state)


_NANOS = 1_000_000_000


class SpanWriter:
    """Makes spans and gives them to a span processor of OpenTelemetry's SDK. Raises ConfigError where the SDK is not there.

    A span is made when its call has ended, with the id that it had from its beginning: a call costs one value more than its row. Spans are
    exported by OTLP over HTTP, in a thread of their own.
    """

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
        for place, attempt in enumerate(row.attempt_records):
            child = self._span_context(context.trace_id, CHANCE.getrandbits(64) or 1, context)
            start = began + _nanos(attempt.started)
            end = min(ended, start + _nanos(attempt.seconds or 0.0))
            status = self._status(attempt.error or None)
            fields = {
                names.OPERATION: names.OPERATIONS.get(row.operation, row.operation),
                names.REQUEST_STREAM: row.streamed,
                names.PROVIDER: telemetry_names().get(attempt.provider, attempt.provider),
                names.REQUEST_MODEL: attempt.model,
                names.WHY: attempt.cause,
                names.ATTEMPTS: place + 1,
                names.STATUS_CODE: attempt.status,
                names.ERROR_TYPE: attempt.error or None,
            }
            told = {name: value for name, value in fields.items() if value is not None} | details.server(place)
            self._export(_name(row.operation, attempt.model), child, own, told, start, end, status)
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
    attributes = {
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
        names.DEGRADED: [str(loss.get("what", "")) for loss in row.degraded] or None,
        names.KEY_ID: row.key_id,
        names.SUBSYSTEM: row.subsystem,
        names.AGENT: row.agent,
        names.REPOSITORY: row.repository,
        names.CACHE: row.cache,
    }
    return {name: value for name, value in attributes.items() if value is not None and value != ""}


def _name(operation: str, model: str) -> str:
    return f"{names.OPERATIONS.get(operation, operation)} {model}".strip()


def _nanos(seconds: float) -> int:
    return int(seconds * _NANOS)


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
        """Return what takes the details of a call that is under way, or None if its span is not wanted."""
        trace = self._open.get(request_id)
        return None if trace is None else trace[1]

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
        for before in [other for other in logger.filters if isinstance(other, SeldomFilter)]:
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
