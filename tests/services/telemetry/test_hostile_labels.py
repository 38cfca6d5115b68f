"""Hostile names in what monitoring systems are told: labels, attributes and lines of logs hold them, and nothing more comes of them."""

from __future__ import annotations

import json
import logging

from msgspec.structs import replace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client.parser import text_string_to_metric_families

from bardo.adapters.log_filter import JsonFormatter
from bardo.adapters.stores.log.row import LogRow
from bardo.services.telemetry import names
from bardo.services.telemetry.telemetry import CallMetrics, SpanWriter, TraceContext
from support.hostile_text import HOSTILE

ROW = LogRow(request_id="req_1", started_at=1.0, seconds=1.5, provider="p", model="m", input_tokens=1, cost_usd=0.5)


def test_a_hostile_name_is_a_label_and_makes_no_other_series() -> None:
    metrics = CallMetrics()
    for text in HOSTILE.values():
        metrics.note(replace(ROW, provider=text, model=text, operation=text, error_class=text, cache=text))
    page, _ = metrics.page()
    calls = [
        sample.labels
        for family in text_string_to_metric_families(page.decode())
        for sample in family.samples
        if sample.name == "bardo_calls_total"
    ]
    # The parser of the client leaves out the spaces at the ends of a value.
    wanted = {text.strip() for text in HOSTILE.values()}
    for label in ("provider", "model", "operation", "error"):
        assert {labels[label].strip() for labels in calls} == wanted
    assert len(calls) == len(HOSTILE)


def test_a_hostile_name_is_an_attribute_of_a_span() -> None:
    exporter = InMemorySpanExporter()
    writer = SpanWriter(SimpleSpanProcessor(exporter), "house")
    for number, text in enumerate(HOSTILE.values(), start=1):
        row = replace(ROW, provider=text, model=text, model_asked=text, key_id=text, degraded=({"what": text},))
        writer.note(row, TraceContext(trace_id=number, span_id=number, parent=0, sampled=True))
    sent = ExportTraceServiceRequest.FromString(encode_spans(exporter.get_finished_spans()).SerializeToString())
    spans = [span for one in sent.resource_spans for scope in one.scope_spans for span in scope.spans]
    for text, span in zip(HOSTILE.values(), spans, strict=True):
        told = {pair.key: pair.value for pair in span.attributes}
        assert told[names.REQUEST_MODEL].string_value == told[names.KEY_ID].string_value == text
        assert [one.string_value for one in told[names.DEGRADED].array_value.values] == [text]


def test_a_hostile_message_is_one_line_of_json() -> None:
    for text in HOSTILE.values():
        line = JsonFormatter().format(logging.LogRecord("bardo", logging.INFO, "", 1, text, None, None))
        assert "\n" not in line
        assert "\x1b" not in line
        assert json.loads(line)["message"] == text
