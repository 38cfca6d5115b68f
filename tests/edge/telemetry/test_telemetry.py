"""What monitoring systems are told of calls: spans as OpenTelemetry's SDK gets them, metrics as Prometheus reads them."""

from __future__ import annotations

import json
import logging
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client.parser import text_string_to_metric_families

from bardo.edge.log.row import LogRow
from bardo.edge.telemetry import names
from bardo.edge.telemetry.json_logs import JsonFormatter
from bardo.edge.telemetry.prometheus import MOST_PAIRS, CallMetrics
from bardo.edge.telemetry.spans import SpanWriter
from bardo.edge.telemetry.telemetry import EXPORTER_LOGGERS, Telemetry, address_of, hide_address
from bardo.edge.telemetry.trace import TraceContext, begin_trace
from bardo.values.attempts import AttemptRecord
from bardo.values.request import Request

pytestmark = pytest.mark.each_python

ROOT = Path(__file__).parents[3]
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
ROW = LogRow(
    request_id="req_1",
    started_at=1_700_000_000.0,
    seconds=1.5,
    first_byte_seconds=0.25,
    provider="anthropic",
    model_asked="fast",
    model="claude-x",
    streamed=True,
    finish_reason="stop",
    input_tokens=100,
    output_tokens=40,
    reasoning_tokens=30,
    cached_input_tokens=64,
    cost_usd=0.0125,
    degraded=({"what": "seed"},),
    reasoning_verdict="honoured",
    status=200,
)


class Heard:
    """Spans in memory."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.telemetry = Telemetry(spans=SpanWriter(SimpleSpanProcessor(self.exporter), "house"))

    @property
    def spans(self) -> list[ReadableSpan]:
        return list(self.exporter.get_finished_spans())


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_call_is_a_span_in_the_words_of_the_conventions() -> None:
    heard = Heard()
    heard.telemetry.note(ROW)
    [span] = heard.spans
    found = attributes_of(span)
    assert (span.name, span.resource.attributes["service.name"]) == ("chat claude-x", "house")
    assert (span.end_time or 0) - (span.start_time or 0) == 1_500_000_000
    assert found[names.OPERATION] == "chat"
    assert found[names.PROVIDER] == "anthropic"
    assert found[names.REQUEST_MODEL] == "fast"
    assert found[names.INPUT_TOKENS] == 100
    assert found[names.REASONING_TOKENS] == 30
    assert found[names.FINISH_REASONS] == ("stop",) or found[names.FINISH_REASONS] == ["stop"]
    assert found[names.DEGRADED] in (("seed",), ["seed"])
    assert names.ERROR_TYPE not in found
    assert span.status.status_code is StatusCode.OK


def test_attempts_are_children_and_errors_are_told() -> None:
    heard = Heard()
    tries = (
        AttemptRecord(
            cause="first", provider="a", model="m", why="", key="", started=0.0, seconds=0.5, error="Unreachable"
        ),
        AttemptRecord(cause="failover", provider="b", model="n", why="", key="", started=0.5, seconds=1.0, status=500),
    )
    row = LogRow(
        request_id="r",
        started_at=1.0,
        seconds=1.5,
        outcome="error",
        error_class="UpstreamRefused",
        attempt_records=tries,
    )
    heard.telemetry.note(row)
    first, second, whole = heard.spans
    assert [one.parent and one.parent.span_id for one in (first, second)] == [whole.context.span_id] * 2
    assert attributes_of(first)[names.ERROR_TYPE] == "Unreachable"
    assert first.status.status_code is StatusCode.ERROR
    assert attributes_of(second)[names.WHY] == "failover"
    assert attributes_of(whole)[names.ERROR_TYPE] == "UpstreamRefused"


def test_the_trace_goes_from_the_client_through_bardo_to_the_provider() -> None:
    heard = Heard()
    asked = Request(
        model="m", messages=(), client_headers={"traceparent": PARENT, "tracestate": "a=1", "user-agent": "x"}
    )
    sent = heard.telemetry.begin("req_1", asked).client_headers
    heard.telemetry.note(ROW)
    [span] = heard.spans
    assert f"{span.context.trace_id:032x}" == "4bf92f3577b34da6a3ce929d0e0e4736"
    assert span.parent is not None
    assert f"{span.parent.span_id:016x}" == "00f067aa0ba902b7"
    assert sent["traceparent"] == f"00-{span.context.trace_id:032x}-{span.context.span_id:016x}-01"
    assert (sent["tracestate"], sent["user-agent"]) == ("a=1", "x")


def test_what_a_client_does_not_sample_is_passed_on_and_not_exported() -> None:
    heard = Heard()
    asked = Request(model="m", messages=(), client_headers={"traceparent": PARENT[:-2] + "00"})
    assert heard.telemetry.begin("req_1", asked).client_headers["traceparent"].endswith("-00")
    heard.telemetry.note(ROW)
    assert heard.spans == []


def test_of_too_many_calls_under_way_the_first_have_no_parent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bardo.edge.telemetry.telemetry._MOST_OPEN", 2)
    heard, calls = Heard(), ("first", "second", "third")
    for name in calls:
        heard.telemetry.begin(name, Request(model="m", messages=(), client_headers={"traceparent": PARENT}))
    for name in calls:
        heard.telemetry.note(msgspec.structs.replace(ROW, request_id=name))
    assert [span.parent is None for span in heard.spans] == [True, False, False]


@given(st.text(max_size=80), st.text(max_size=20))
def test_any_header_gives_a_sound_context(parent: str, state: str) -> None:
    found = begin_trace(parent, state)
    assert found.trace_id > 0
    assert found.span_id > 0
    assert begin_trace(found.headers()["traceparent"]).trace_id == found.trace_id


@pytest.mark.parametrize(
    "header",
    ["", "00-0-0-01", f"ff{PARENT[2:]}", f"{PARENT}-x", PARENT.replace("4bf92f3577b34da6a3ce929d0e0e4736", "0" * 32)],
)
def test_a_header_that_is_not_sound_begins_a_trace(header: str) -> None:
    assert begin_trace(header) == TraceContext(*begin_trace(header)[:2]) or begin_trace(header).parent == 0


def samples(metrics: CallMetrics) -> dict[tuple[str, str], float]:
    page, kind = metrics.page()
    assert "text/plain" in kind or "openmetrics" in kind
    found: dict[tuple[str, str], float] = {}
    for family in text_string_to_metric_families(page.decode()):
        for one in family.samples:
            found[one.name, ",".join(one.labels.get(name, "") for name in ("provider", "model", "type"))] = one.value
    return found


def test_prometheus_reads_what_was_counted() -> None:
    metrics = CallMetrics()
    metrics.note(ROW)
    metrics.note(ROW)
    found = samples(metrics)
    assert found["bardo_calls_total", "anthropic,claude-x,"] == 2
    assert found["bardo_tokens_total", "anthropic,claude-x,reasoning"] == 60
    assert found["bardo_cost_usd_total", "anthropic,claude-x,"] == pytest.approx(0.025)
    assert found["bardo_call_seconds_sum", "anthropic,claude-x,"] == pytest.approx(3.0)


def test_an_unknown_cost_is_no_cost_of_nothing() -> None:
    metrics = CallMetrics()
    metrics.note(LogRow(request_id="r", started_at=0.0, provider="p", model="m"))
    found = samples(metrics)
    assert found["bardo_calls_unpriced_total", "p,m,"] == 1
    assert found.get(("bardo_cost_usd_total", "p,m,"), 0) == 0


def test_clients_cannot_make_labels_without_bound() -> None:
    metrics = CallMetrics()
    for number in range(MOST_PAIRS + 50):
        metrics.note(LogRow(request_id="r", started_at=0.0, provider="p", model=f"m{number}"))
    found = samples(metrics)
    assert found["bardo_calls_total", "other,other,"] == 50
    assert len({key[1] for key in found if key[0] == "bardo_calls_total"}) == MOST_PAIRS + 1


def test_lines_of_json_say_what_they_are_about() -> None:
    record = logging.LogRecord("bardo.control", logging.WARNING, "f", 1, '%s was "lost"', ("a field",), None)
    record.provider = "anthropic"
    line = json.loads(JsonFormatter().format(record))
    assert (line["level"], line["logger"], line["message"]) == ("warning", "bardo.control", 'a field was "lost"')
    assert line["provider"] == "anthropic"
    try:
        raise ValueError("broken")
    except ValueError:
        failed = logging.LogRecord("bardo", logging.ERROR, "f", 1, "x", (), sys.exc_info())
    assert "ValueError: broken" in json.loads(JsonFormatter().format(failed))["exception"]


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    dashboard = json.loads((ROOT / "docs" / "examples" / "grafana.json").read_text(encoding="utf-8"))
    asked = {name for panel in dashboard["panels"] for name in re.findall(r"bardo_\w+", panel["targets"][0]["expr"])}
    metrics = CallMetrics()
    metrics.note(
        LogRow(request_id="r", started_at=0.0, first_byte_seconds=0.1, cost_usd=0.1, input_tokens=1, cache="hit")
    )
    page = metrics.page()[0].decode()
    assert asked
    assert {name for name in asked if f"\n{name}{{" not in page} == set()


def test_an_exporter_shows_nothing_secret_of_its_address(caplog: pytest.LogCaptureFixture) -> None:
    hide_address("http://user:canary-1a2b3c@127.0.0.1:9/x?k=canary-4d5e6f")
    for name in EXPORTER_LOGGERS:
        logging.getLogger(name).warning("no way to %s", "/x/v1/traces?k=canary-4d5e6f, canary-1a2b3c")
    assert "canary" not in caplog.text
    assert caplog.text.count("no way to") == len(EXPORTER_LOGGERS)


def test_the_query_of_an_address_stays_behind_its_path() -> None:
    assert address_of("http://collector.example/x?k=1", "traces") == "http://collector.example/x/v1/traces?k=1"
    assert address_of("http://collector.example:4318/", "metrics") == "http://collector.example:4318/v1/metrics"
