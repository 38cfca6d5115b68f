"""A live gateway exports by OTLP over HTTP to a receiver that checks what it gets; a client's own spans and bardo's are one trace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import httpx2
import pytest
from openai import OpenAI
from opentelemetry.instrumentation.httpx import HTTPX2ClientInstrumentor
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from bardo.adapters.config.settings import TelemetrySettings
from bardo.services.telemetry import names
from bardo.services.telemetry.telemetry import Telemetry, open_telemetry
from support.any_model import Simulator
from support.gateway import house
from support.otlp import Collector, attributes, check_span, collector


@contextmanager
def telemetry_to(address: str) -> Iterator[Telemetry]:
    telemetry = open_telemetry(TelemetrySettings(otlp=address, service="house"))
    try:
        yield telemetry
    finally:
        telemetry.close()


def exported(heard: Collector, client: httpx2.Client) -> str:
    """Make a call by OpenAI's SDK over `client`, and return the provider's `traceparent` when all of it has been exported."""
    with telemetry_to(heard.address) as telemetry, house([Simulator("deepseek")], telemetry=telemetry) as running:
        sdk = OpenAI(base_url=f"{running.address}/v1", api_key="any", http_client=client)
        sdk.chat.completions.create(model="deepseek/m", messages=[{"role": "user", "content": "What is 27 * 43?"}])
        sent: str = running.arrived("deepseek")[-1].headers["traceparent"]
    return sent


def test_spans_and_metrics_reach_a_collector() -> None:
    with collector() as heard, httpx2.Client() as client:
        sent = exported(heard, client)
        heard.wait(lambda one: bool(one.spans and len(one.metrics) == 2))
    [span] = heard.spans
    assert heard.services == {"house"}
    assert span.name == "chat m"
    assert sent.split("-")[1:3] == [span.trace_id.hex(), span.span_id.hex()]
    told = attributes(span)
    assert told[names.PROVIDER] == "deepseek"
    metrics = {metric.name: list(metric.histogram.data_points) for metric in heard.metrics}
    [seconds] = metrics[names.DURATION]
    assert (seconds.count, attributes(seconds)[names.RESPONSE_MODEL]) == (1, "m")
    tokens = {attributes(point)[names.TOKEN_TYPE]: point.sum for point in metrics[names.TOKEN_USAGE]}
    assert tokens == {"input": told[names.INPUT_TOKENS], "output": told[names.OUTPUT_TOKENS]}


@pytest.mark.parametrize(("kind", "body"), [("application/json", b"{}"), ("application/x-protobuf", b"\xff\xff")])
def test_the_receiver_refuses_what_is_no_otlp(kind: str, body: bytes) -> None:
    with collector() as heard:
        reply = httpx.post(f"{heard.address}/v1/traces", content=body, headers={"content-type": kind})
    assert reply.status_code == 400
    assert heard.refused


def test_the_receiver_refuses_a_span_without_ids() -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        check_span(Span(name="chat m"))


@pytest.fixture
def instrumented() -> Iterator[tuple[httpx2.Client, InMemorySpanExporter]]:
    """A client whose calls have spans of their own, by OpenTelemetry's instrumentation."""
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    with httpx2.Client() as client:
        # Its types know httpx only.
        HTTPX2ClientInstrumentor.instrument_client(client, tracer_provider=provider)  # type: ignore[arg-type]
        yield client, spans
    provider.shutdown()


def test_a_clients_span_is_the_parent_of_bardos(instrumented: tuple[httpx2.Client, InMemorySpanExporter]) -> None:
    client, own = instrumented
    with collector() as heard:
        sent = exported(heard, client)
        heard.wait(lambda one: bool(one.spans))
    [span], [asked] = heard.spans, own.get_finished_spans()
    assert asked.context is not None
    assert span.trace_id.hex() == f"{asked.context.trace_id:032x}" == sent.split("-")[1]
    assert span.parent_span_id.hex() == f"{asked.context.span_id:016x}"
    assert sent.split("-")[2] == span.span_id.hex()
