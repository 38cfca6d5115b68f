"""Telemetry of a live gateway: metrics at /metrics, a trace that reaches the provider, and nothing of it where it is off."""

from __future__ import annotations

from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bardo.services.telemetry.telemetry import CallMetrics, SpanWriter, Telemetry
from support.any_model import Simulator
from support.gateway import house
from support.talk import ask, request
from surfaces.gateway.cells import whole_and_streamed

PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@whole_and_streamed
def test_a_call_is_counted_and_traced_through_another_dialect(stream: bool) -> None:
    exporter = InMemorySpanExporter()
    telemetry = Telemetry(CallMetrics(), SpanWriter(SimpleSpanProcessor(exporter), "house"))
    with house([Simulator("anthropic"), Simulator("deepseek")], telemetry=telemetry) as running:
        for model in ("anthropic/m", "deepseek/m"):
            answer = ask(running.address, "openai_chat", model, stream=stream, headers={"traceparent": PARENT})
            assert answer.status == 200
        page = request(running.address, "GET", "/metrics")
        assert page.status == 200
        assert (
            'bardo_calls_total{error="",model="m",operation="generate",outcome="ok",provider="anthropic"} 1.0'
            in page.text
        )
        spans = {span.context.span_id for span in exporter.get_finished_spans()}
        for name in ("anthropic", "deepseek"):
            sent = running.arrived(name)[-1].headers["traceparent"]
            assert sent.startswith("00-4bf92f3577b34da6a3ce929d0e0e4736-")
            assert int(sent.split("-")[2], 16) in spans


def test_without_telemetry_there_are_no_metrics_and_no_trace() -> None:
    with house([Simulator("deepseek")]) as running:
        assert ask(running.address, "openai_chat", "deepseek/m", headers={"traceparent": PARENT}).status == 200
        assert "traceparent" not in running.arrived("deepseek")[-1].headers
        page = request(running.address, "GET", "/metrics")
        assert page.status == 404
        assert "[telemetry]" in page.text
