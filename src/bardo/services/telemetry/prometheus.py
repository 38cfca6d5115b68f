"""Metrics of calls for Prometheus, made of the rows of the log. Labels are bounded: clients choose the names of models.

The package prometheus-client comes with the extra `bardo[telemetry]`. With several workers `PROMETHEUS_MULTIPROC_DIR` names the folder in
which they share what they counted; `bardo serve` sets it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from bardo.adapters.stores.log.row import LogRow
from bardo.adapters.work_budget import LEFT_OUT
from bardo.values.errors import ConfigError
from bardo.values.extras import how_to_install

MOST_PAIRS = 200
"""Pairs of provider and model that have labels of their own; those after them share `other`."""
OTHER = "other"
FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
_LAYER_SECONDS = (0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0, 30.0)
_WHO = ("provider", "model")
_TOKENS = ("input", "output", "reasoning", "cache_read", "cache_write")


class CallMetrics:
    """Counts calls. Raises ConfigError where prometheus-client is not there."""

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

    def page(self) -> tuple[bytes, str]:
        """Return the metrics of all workers as Prometheus reads them, and their content type."""
        registry = self._registry
        if self._shared:
            registry = self._client.CollectorRegistry()
            importlib.import_module("prometheus_client.multiprocess").MultiProcessCollector(registry)
        return self._client.generate_latest(registry), self._client.CONTENT_TYPE_LATEST

    def _pair(self, provider: str, model: str) -> _PairMetrics:
        found = self._pairs.get((provider, model))
        if found is None:
            if len(self._pairs) >= MOST_PAIRS:
                return self._pairs.setdefault((OTHER, OTHER), self._make_metrics(OTHER, OTHER))
            found = self._pairs[provider, model] = self._make_metrics(provider, model)
        return found

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
        found = self._ended.get((operation, outcome, error))
        if found is None:
            found = self._ended[operation, outcome, error] = self._calls.labels(*self._who, operation, outcome, error)
        return found


def _package() -> Any:
    try:
        return importlib.import_module("prometheus_client")
    except ImportError:
        hint = f"{how_to_install('telemetry')}, or set metrics = false under [telemetry]"
        raise ConfigError("metrics need the package prometheus-client", hint=hint) from None
