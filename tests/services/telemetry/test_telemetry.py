"""What monitoring systems are told of calls: spans as OpenTelemetry's SDK gets them, metrics as Prometheus reads them."""

from __future__ import annotations

import json
import logging
import re
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from prometheus_client.parser import text_string_to_metric_families

from bardo.adapters.log_filter import JsonFormatter
from bardo.adapters.stores.log.row import LogRow
from bardo.services.telemetry import names
from bardo.services.telemetry.telemetry import (
    EXPORTER_LOGGERS,
    MOST_PAIRS,
    CallMetrics,
    SeldomFilter,
    SpanWriter,
    Telemetry,
    TraceContext,
    address_of,
    begin_trace,
    hide_address,
)
from bardo.simulators import Script, Turn
from bardo.values.attempts import AttemptRecord
from bardo.values.request import Request
from support.any_model import Simulator
from support.gateway import house, model_of
from support.talk import ask, request

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
    monkeypatch.setattr("bardo.services.telemetry.telemetry._MOST_OPEN", 2)
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


def test_the_time_of_layers_is_counted_and_those_that_had_none() -> None:
    metrics = CallMetrics()
    receipts = [{"layer": "cache", "microseconds": 2_000}, {"layer": "dedup", "saw": {"left_out": True}}]
    metrics.note(LogRow(request_id="r", started_at=0.0, pipeline={"profile": "own", "layers": receipts}))
    page = metrics.page()[0].decode()
    assert 'bardo_layer_seconds_sum{layer="cache"} 0.002\n' in page
    assert 'bardo_layer_seconds_count{layer="dedup"} 1.0\n' in page
    assert 'bardo_layers_left_out_total{layer="dedup"} 1.0\n' in page
    assert 'bardo_layers_left_out_total{layer="cache"}' not in page


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


def of_session(session: str, key: str | None = "k1", **said: Any) -> LogRow:
    return LogRow(request_id="r", started_at=0.0, key_id=key, session=session, **said)


def sessions_begun(*rows: LogRow) -> float:
    metrics = CallMetrics()
    for row in rows:
        metrics.note(row)
    return samples(metrics)["bardo_sessions_total", ",,"]


def test_a_session_is_counted_when_its_first_call_ends() -> None:
    assert sessions_begun() == 0
    assert sessions_begun(of_session("")) == 0, "a call without a session begins none"
    assert sessions_begun(of_session("a"), of_session("a"), of_session("b"), of_session("a")) == 2


def test_sessions_of_two_keys_by_one_name_are_two() -> None:
    assert sessions_begun(of_session("a"), of_session("a", "k2"), of_session("a", None)) == 3


def test_of_too_many_sessions_the_one_that_was_longest_silent_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bardo.services.telemetry.telemetry.MOST_SESSIONS", 2)
    assert sessions_begun(*map(of_session, "abac")) == 3
    assert sessions_begun(*map(of_session, "abaca")) == 3, "the last call of a was behind that of b"
    assert sessions_begun(*map(of_session, "abacb")) == 4, "b was forgotten"


def test_calls_and_costs_of_agents_are_counted_and_names_that_nobody_knows_are_one() -> None:
    metrics = CallMetrics()
    for agent, cost in (
        ("codex", 2.0),
        ("codex", None),
        ("codex", 0),
        ("mine", 5.0),
        ("yours", None),
    ):
        metrics.note(of_session("a", agent=agent, cost_usd=cost))
    metrics.note(of_session("a"))
    page = metrics.page()[0].decode().splitlines()
    assert sorted(one for one in page if one.startswith("bardo_agent_") and "_total{" in one) == [
        'bardo_agent_calls_total{agent="codex"} 3.0',
        'bardo_agent_calls_total{agent="other"} 2.0',
        'bardo_agent_cost_usd_total{agent="codex"} 2.0',
        'bardo_agent_cost_usd_total{agent="other"} 5.0',
    ]


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
    for name in EXPORTER_LOGGERS:
        hide_address("http://user:canary-1a2b3c@127.0.0.1:9/x?k=canary-4d5e6f")
        logging.getLogger(name).warning("no way to %s", "/x/v1/traces?k=canary-4d5e6f, canary-1a2b3c")
    assert "canary" not in caplog.text
    assert caplog.text.count("no way to") == len(EXPORTER_LOGGERS)


def test_the_query_of_an_address_stays_behind_its_path() -> None:
    assert address_of("http://collector.example/x?k=1", "traces") == "http://collector.example/x/v1/traces?k=1"
    assert address_of("http://collector.example:4318/", "metrics") == "http://collector.example:4318/v1/metrics"


def test_every_name_is_one_of_the_published_conventions() -> None:
    """Checked against opentelemetry-semantic-conventions 0.66b2, which has the conventions for generative AI of 2026-11."""
    release = version("opentelemetry-semantic-conventions")
    if tuple(map(int, release.split("b")[0].split(".")[:2])) < (0, 66):
        pytest.skip(f"the conventions {release} are older than what bardo writes")
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes
    from opentelemetry.semconv.attributes import error_attributes, http_attributes, server_attributes

    published = {
        value
        for module in (gen_ai_attributes, error_attributes, http_attributes, server_attributes)
        for value in vars(module).values()
        if isinstance(value, str)
    }
    operations = {one.value for one in gen_ai_attributes.GenAiOperationNameValues}
    ours = {
        value
        for name, value in vars(names).items()
        if name.isupper() and isinstance(value, str) and not value.startswith(("bardo.", "gen_ai.client."))
    }
    assert sorted(ours - published) == []
    # The conventions have no word for a count of tokens and for a compaction, and allow one of one's own there.
    assert set(names.OPERATIONS.values()) - operations == {"count_tokens", "compact"}


def test_tokens_are_on_one_span_of_a_call() -> None:
    heard = Heard()
    tries = tuple(
        AttemptRecord(cause="first", provider="a", model="m", seconds=0.5, input_tokens=50, output_tokens=20)
        for _ in range(2)
    )
    heard.telemetry.note(msgspec.structs.replace(ROW, attempt_records=tries))
    found = [attributes_of(span) for span in heard.spans]
    assert len(found) == 3
    assert sum(one.get(names.INPUT_TOKENS, 0) for one in found) == 100
    assert sum(one.get(names.OUTPUT_TOKENS, 0) for one in found) == 40
    assert [one[names.OPERATION] for one in found] == ["chat"] * 3


def test_a_span_tells_the_parameters_the_server_and_the_reply_as_its_client_has_them() -> None:
    heard = Heard()
    script = Script((Turn(text="Done."),) * 2)
    body = {
        "model": "deepseek/m",
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": 99,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "stop": ["END"],
        "frequency_penalty": 0.1,
        "presence_penalty": 0.2,
        "bardo": {"session": "conversation-1"},
    }
    with house([Simulator("deepseek", script=script)], telemetry=heard.telemetry) as running:
        answer = request(running.address, "POST", "/v1/chat/completions", body)
        assert answer.status == 200, answer.text
        server = urlsplit(running.servers["deepseek"].base_url)
        row = running.log.of_model("deepseek/m")
    [span] = heard.spans
    found = attributes_of(span)
    asked: dict[str, Any] = {name: value for name, value in found.items() if name.startswith("gen_ai.request.")}
    assert {name: list(value) if name == names.STOP else value for name, value in asked.items()} == {
        names.REQUEST_MODEL: "deepseek/m",
        names.REQUEST_STREAM: False,
        names.MAX_TOKENS: 99,
        names.TEMPERATURE: 0.5,
        names.TOP_P: 0.9,
        names.SEED: 7,
        names.STOP: ["END"],
        names.FREQUENCY_PENALTY: 0.1,
        names.PRESENCE_PENALTY: 0.2,
    }
    assert (found[names.SERVER_ADDRESS], found[names.SERVER_PORT]) == (server.hostname, server.port)
    assert found[names.CONVERSATION_ID] == "conversation-1"
    assert found[names.RESPONSE_ID] == answer.json["id"]
    assert found[names.RESPONSE_MODEL] == "m"
    assert found[names.REQUEST_ID] == row.request_id


def test_spans_of_vectors_and_of_counts_tell_what_was_asked_and_of_whom() -> None:
    heard = Heard()
    with house([Simulator("openai_chat"), Simulator("anthropic")], telemetry=heard.telemetry) as running:
        provider = model_of("openai_chat").partition("/")[0]
        body: dict[str, Any] = {
            "model": f"{provider}/text-embedding-3-small",
            "input": ["One", "Two"],
            "dimensions": 8,
            "encoding_format": "base64",
        }
        assert request(running.address, "POST", "/v1/embeddings", body).status == 200
        running.log.of_model(body["model"])
        counting: dict[str, Any] = {
            "model": model_of("anthropic"),
            "messages": [{"role": "user", "content": "Hello"}],
            "max_tokens": 99,
            "temperature": 0.5,
        }
        assert request(running.address, "POST", "/v1/messages/count_tokens", counting).status == 200
        running.log.of_model(counting["model"])
        servers = [urlsplit(running.servers[name].base_url) for name in ("openai_chat", "anthropic")]
    vectors, counted = (attributes_of(span) for span in heard.spans)
    assert [(one[names.SERVER_ADDRESS], one[names.SERVER_PORT]) for one in (vectors, counted)] == [
        (one.hostname, one.port) for one in servers
    ]
    assert (vectors[names.OPERATION], counted[names.OPERATION]) == ("embeddings", "count_tokens")
    assert (list(vectors[names.ENCODING_FORMATS]), vectors[names.DIMENSIONS]) == (["base64"], 8)
    assert vectors[names.RESPONSE_MODEL] == "text-embedding-3-small"
    assert (counted[names.MAX_TOKENS], counted[names.TEMPERATURE]) == (99, 0.5)
    assert names.INPUT_TOKENS not in counted


@pytest.mark.parametrize("client", ["openai_chat", "openai_responses", "anthropic_messages", "gemini", "ollama"])
@pytest.mark.parametrize("provider", ["anthropic", "openai_chat", "gemini", "ollama_native"])
def test_the_id_of_a_span_is_the_one_that_its_client_has(client: str, provider: str) -> None:
    heard = Heard()
    with house([Simulator(provider)], telemetry=heard.telemetry) as running:
        answer = ask(running.address, client, model_of(provider))
        assert answer.status == 200, answer.text
        running.log.of_model(model_of(provider))
    [span] = heard.spans
    told = attributes_of(span).get(names.RESPONSE_ID)
    body = answer.json
    # Ollama's replies have no id, and where a provider gives none the span has none either.
    assert told is None or told == body.get("id", body.get("responseId", told))
    assert attributes_of(span)[names.RESPONSE_MODEL] == model_of(provider).partition("/")[2]


def test_a_collector_that_is_down_is_said_once_a_minute() -> None:
    now = [0.0]
    seldom = SeldomFilter(lambda: now[0])

    def lines(count: int) -> list[str]:
        records = [logging.LogRecord("x", logging.ERROR, "", 0, "no route to %s", ("it",), None) for _ in range(count)]
        return [record.getMessage() for record in records if seldom.filter(record)]

    [first] = lines(50)
    assert first.endswith("said once a minute: no route to it")
    now[0] = 59.0
    assert lines(10) == []
    now[0] = 60.0
    [second] = lines(3)
    assert second.endswith("no route to it (59 more lines like it were left out)")


def test_every_logger_of_the_exporters_says_it_seldom() -> None:
    hide_address("http://collector:4318")
    hide_address("http://collector:4318")
    for name in EXPORTER_LOGGERS:
        assert sum(isinstance(one, SeldomFilter) for one in logging.getLogger(name).filters) == 1, name
