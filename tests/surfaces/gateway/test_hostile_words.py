"""Hostile names and answers leave the gateway as text: in bodies, headers, streams and metrics."""

from __future__ import annotations

import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from prometheus_client.parser import text_string_to_metric_families

from bardo.services.telemetry.telemetry import CallMetrics, Telemetry
from bardo.simulators import Script, ToolCall, Turn
from support.any_model import Simulator
from support.gateway import House, house
from support.hostile_text import GROUPS, HOSTILE
from support.talk import CLIENTS, Answer, ask, request
from surfaces.gateway.cells import whole_and_streamed

BY_GROUP = pytest.mark.parametrize("group", GROUPS)
# What a header's value may hold, besides being one line.
_PRINTED = set(map(chr, range(32, 127)))


@pytest.fixture(scope="module")
def running() -> Iterator[House]:
    with house([Simulator("deepseek"), Simulator("anthropic")], telemetry=Telemetry(CallMetrics())) as found:
        yield found


def check_head(name: str, answer: Answer) -> None:
    """Headers are bardo's and the server's own, one line of printable ASCII each."""
    assert {name: value for name, value in answer.headers.items() if set(value) - _PRINTED} == {}
    assert "x-injected" not in answer.headers, name
    assert "set-cookie" not in answer.headers, name
    assert answer.headers["content-type"].partition(";")[0] in ("application/json", "text/event-stream"), name


def is_name(text: str) -> bool:
    """Whether a model may be called so."""
    return text.isprintable() and len(text) < 500


@BY_GROUP
@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_that_nobody_serves_is_named_in_an_error(running: House, client: str, group: str) -> None:
    for name, text in GROUPS[group].items():
        asked = f"nobody/{text}" if client != "gemini" else "nobody"
        answer = ask(running.address, client, asked, headers={"x-bardo-session": "s"})
        assert (name, answer.status in (400, 404)) == (name, True)
        check_head(name, answer)
        assert isinstance(answer.json, dict | list)


@BY_GROUP
@whole_and_streamed
def test_the_name_of_a_model_that_answers_is_text_in_the_head(running: House, group: str, stream: bool) -> None:
    for name, text in GROUPS[group].items():
        answer = ask(running.address, "openai_chat", f"deepseek/{text}", stream=stream)
        check_head(name, answer)
        assert (name, answer.status) == (name, 200 if is_name(text) else 400)


@BY_GROUP
def test_what_a_client_asks_for_is_text_in_the_refusal(running: House, group: str) -> None:
    for name, text in GROUPS[group].items():
        asked = {"bardo": {text: text}, "reasoning_effort": text}
        for further in (
            {"bardo": {text: text}},
            {"reasoning_effort": text},
            {text: text},
            {"tool_choice": text},
            asked,
        ):
            answer = ask(running.address, "openai_chat", "anthropic/m", **further)
            check_head(name, answer)
            assert isinstance(answer.json, dict)
        header = text.encode("ascii", "replace").decode().translate(dict.fromkeys(range(32), " "))[:2000]
        for field in ("x-bardo-include", "x-bardo-pipeline", "x-bardo-intent", "x-bardo-session", "traceparent"):
            check_head(name, ask(running.address, "openai_chat", "anthropic/m", headers={field: header}))


@BY_GROUP
def test_a_path_is_text_in_the_refusal(running: House, group: str) -> None:
    for name, text in GROUPS[group].items():
        for path in (
            f"/{quote(text[:2000])}",
            f"/v1/models/{quote(text[:2000])}",
            f"/v1/responses/{quote(text[:2000])}",
        ):
            answer = request(running.address, "GET", path)
            check_head(name, answer)
            assert isinstance(answer.json, dict)


def test_the_page_of_metrics_holds_names_as_labels(running: House) -> None:
    asked = HOSTILE["script"] + '"\\'
    assert ask(running.address, "openai_chat", f"deepseek/{asked}").status == 200
    page = request(running.address, "GET", "/metrics")
    samples = [one for family in text_string_to_metric_families(page.text) for one in family.samples]
    assert asked in {sample.labels.get("model") for sample in samples}
    assert {sample.name for sample in samples if not sample.name.startswith("bardo_")} == set()


@BY_GROUP
@whole_and_streamed
def test_what_a_model_says_arrives_as_it_was_said(group: str, stream: bool) -> None:
    text = "\n".join(GROUPS[group].values())
    call = ToolCall(name="look_up", arguments={"of": text})
    turn = Turn(text=text, reasoning=f"hm {text}", tool_calls=(call,))
    with house([Simulator("anthropic", script=Script((turn,)))]) as running:
        answer = ask(running.address, "openai_chat", "anthropic/m", stream=stream, thinks=True, tools=True)
    check_head(group, answer)
    if stream:
        deltas = [one["choices"][0]["delta"] for one in answer.payloads if isinstance(one, dict) and one["choices"]]
        assert "".join(one.get("content") or "" for one in deltas) == text
        return
    message = answer.json["choices"][0]["message"]
    assert message["content"] == text
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"of": text}
