"""What refusals taught is listed with its scope, its end and the provider's words, and an operator can have it forgotten."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bardo.services.facts.health_report import HealthReport
from bardo.surfaces.cli.doctor import lesson_text, run_checks
from bardo.surfaces.gateway.main import ReloadingGateway
from support.panel_pages import PanelReader
from support.two_keys import KEYS, Arrived, Body, Given, TwoKeys, refusal, two_keys, well

SAID = "Unknown parameter: 'top_k'."
ASK: Body = {"model": "lab/m", "messages": [{"role": "user", "content": "Hello."}], "top_k": 5}
CHAT = "/v1/chat/completions"


def without_top_k(arrived: Arrived) -> Given:
    return refusal(SAID) if "top_k" in arrived.body else well(arrived)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TwoKeys]:
    with two_keys(tmp_path_factory.mktemp("lessons"), {"lab": "openai-compatible"}, without_top_k) as found:
        yield found


@pytest.fixture(autouse=True)
def _taught(running: TwoKeys) -> None:
    """Begin with one lesson, of the caller A."""
    running.gateway.assembly.services.facts.lessons.forget()
    running.answer = without_top_k
    assert running.ask("a", CHAT, ASK).status == 200


def lessons(running: TwoKeys, who: str, path: str = "/v1/bardo/lessons") -> list[dict[str, Any]]:
    status, _, body = running.call(who, "GET", path)
    assert status == 200
    found = json.loads(body)
    return list(found["data"] if "data" in found else found["lessons"])


def sent(running: TwoKeys, who: str) -> list[bool]:
    """Return whether each request that is sent for a call has the field."""
    return ["top_k" in one for one in running.ask(who, CHAT, ASK).bodies]


@pytest.mark.parametrize("path", ["/v1/bardo/lessons", "/bardo/lessons", "/v1/bardo/health"])
def test_an_operator_sees_all_lessons_and_a_caller_its_own(running: TwoKeys, path: str) -> None:
    (lesson,) = lessons(running, "operator", path)
    said = {
        name: lesson[name]
        for name in ("kind", "what", "provider", "dialect", "model", "shape", "caller", "proofs", "words")
    }
    assert said == {
        "kind": "field",
        "what": "top_k",
        "provider": "lab",
        "dialect": "openai_chat",
        "model": "m",
        "shape": "whole",
        "caller": "a",
        "proofs": 1,
        "words": SAID,
    }
    assert lesson["until"] - lesson["since"] == 3600
    assert lessons(running, "a", path) == [lesson]
    assert lessons(running, "b", path) == []


def test_a_lesson_saves_its_caller_a_refusal_and_no_other_caller_anything(running: TwoKeys) -> None:
    assert sent(running, "a") == [False]
    assert sent(running, "b") == [True, False]
    assert sent(running, "b") == [False]
    assert sorted(one["caller"] for one in lessons(running, "operator")) == ["a", "b"]


def test_nobody_but_an_operator_has_a_lesson_forgotten(running: TwoKeys) -> None:
    (lesson,) = lessons(running, "operator")
    for path in ("/v1/bardo/lessons", f"/v1/bardo/lessons/{lesson['id']}"):
        assert running.call("a", "DELETE", path)[0] == 403
    assert lessons(running, "operator") == [lesson]


def test_one_lesson_is_forgotten_by_its_id_and_all_are_together(running: TwoKeys) -> None:
    running.ask("b", CHAT, ASK)
    first, second = lessons(running, "operator")
    assert running.call("operator", "DELETE", "/v1/bardo/lessons/none")[0] == 404
    status, _, body = running.call("operator", "DELETE", f"/v1/bardo/lessons/{first['id']}")
    assert (status, json.loads(body)) == (200, {"removed": 1})
    assert lessons(running, "operator") == [second]
    status, _, body = running.call("operator", "DELETE", "/v1/bardo/lessons")
    assert (status, json.loads(body)) == (200, {"removed": 1})
    assert sent(running, "a") == [True, False]


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_lessons_take_no_other_method(running: TwoKeys, method: str) -> None:
    assert running.call("operator", method, "/v1/bardo/lessons", {})[0] == 405
    assert running.call("operator", "GET", "/v1/bardo/lessons/x")[0] == 405


def test_a_lesson_whose_proof_failed_is_none(running: TwoKeys) -> None:
    running.call("operator", "DELETE", "/v1/bardo/lessons")
    running.answer = lambda arrived: refusal(SAID if "top_k" in arrived.body else "Something else is wrong.")
    assert running.ask("a", CHAT, ASK).status == 400
    assert lessons(running, "operator") == []


def test_an_answer_to_the_field_ends_the_lesson_whatever_the_shape(running: TwoKeys) -> None:
    running.answer = well
    assert running.ask("b", CHAT, {**ASK, "stream": True}).status == 200
    assert lessons(running, "operator") == []
    assert sent(running, "a") == [True]


def test_sighup_forgets_lessons_also_where_the_configuration_is_the_same(running: TwoKeys) -> None:
    gateway = running.gateway
    reloading = ReloadingGateway(gateway, lambda: gateway.settings)
    assert asyncio.run(reloading.reload())
    assert lessons(running, "operator") == []


def test_a_lesson_is_one_line_for_people(running: TwoKeys) -> None:
    body = running.call("operator", "GET", "/v1/bardo/health")[2]
    (lesson,) = msgspec.json.decode(body, type=HealthReport).lessons
    told = lesson_text(lesson, lesson.since + 600)
    expected = (
        f"lab/m refuses top_k (field), in whole requests of a: learned 10 min ago, ends in 50 min, lesson {lesson.id}"
    )
    assert told == f"{expected}, because it said: {SAID}"


def test_the_panel_lists_lessons_to_an_operator_and_forgets_them(running: TwoKeys) -> None:
    running.ask("b", CHAT, ASK)
    first, second = lessons(running, "operator")
    with closing(PanelReader(running.address, KEYS["operator"])) as operator:
        table = operator.page("/health").table("What refusals taught")
        assert table.column("caller") == ["b", "a"]
        assert table.row("lab")["not sent"].startswith("top_k")
        assert table.row("lab")["the provider’s words"] == SAID
        assert operator.send("/health", {"lesson": first["id"]}).status_code == 303
        assert lessons(running, "operator") == [second]
        operator.send("/health", {"lesson": ""})
        assert lessons(running, "operator") == [second]
        operator.send("/health", {"lesson": "all"})
        assert "No lesson holds" in operator.page("/health").text


def test_the_panel_shows_no_lesson_to_anybody_else(running: TwoKeys) -> None:
    with closing(PanelReader(running.address, KEYS["a"])) as caller:
        assert "top_k" not in caller.page("/health").html
        assert caller.send("/health", {"lesson": "all"}, at="/costs").status_code == 403
    assert lessons(running, "operator")


def test_doctor_lists_the_lessons_of_the_gateway_that_runs(
    running: TwoKeys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bardo.toml").write_text(f"gateway.port = {running.address.rpartition(':')[2]}\nlog.enabled = false\n")
    for key, found in (("operator", "lab/m refuses top_k"), ("b", "refusals taught the gateway that runs nothing")):
        monkeypatch.setenv("BARDO_API_KEY", KEYS[key])
        told = [one.found for one in run_checks(tmp_path / "bardo.toml", {}) if one.area == "lessons"]
        assert len(told) == 1
        assert found in told[0]
    monkeypatch.setenv("BARDO_API_KEY", "wrong")
    assert not [one for one in run_checks(tmp_path / "bardo.toml", {}) if one.area == "lessons"]


def test_no_words_of_the_request_stand_in_a_lesson(running: TwoKeys) -> None:
    running.call("operator", "DELETE", "/v1/bardo/lessons")
    secret = "the text that only the caller A may read"
    running.answer = lambda arrived: (
        refusal(f"{SAID} The request was: '{secret}'") if "top_k" in arrived.body else well(arrived)
    )
    asked = {**ASK, "messages": [{"role": "user", "content": secret}]}
    assert running.ask("a", CHAT, asked).status == 200
    assert secret not in json.dumps(lessons(running, "operator"))


CALL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
RELATIONS: dict[str, tuple[Body, str, str]] = {
    "effort beside tools": (
        {"reasoning_effort": "high", "tools": [CALL]},
        "reasoning_effort",
        "Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
    ),
    "temperature beside effort": (
        {"temperature": 0.5, "reasoning_effort": "high"},
        "temperature",
        "Unsupported parameter: 'temperature' is not supported with reasoning_effort other than none.",
    ),
    "a twin": (
        {"max_tokens": 50, "maxTokens": 50},
        "maxTokens",
        "Setting 'max_tokens' and 'maxTokens' at the same time is not supported: unknown parameter: 'maxTokens'.",
    ),
}


@pytest.mark.parametrize(("fields", "refused", "said"), RELATIONS.values(), ids=RELATIONS)
def test_a_relation_is_repaired_for_its_request_and_teaches_nothing(
    running: TwoKeys, fields: Body, refused: str, said: str
) -> None:
    running.call("operator", "DELETE", "/v1/bardo/lessons")
    running.answer = lambda arrived: refusal(said) if refused in arrived.body else well(arrived)
    asked = {"model": "lab/m", "messages": ASK["messages"], **fields}
    for _ in range(2):
        told = running.ask("a", CHAT, asked)
        assert told.status == 200
        first, second = told.bodies
        assert {name: value for name, value in first.items() if name != refused} == second
    assert lessons(running, "operator") == []


@pytest.mark.parametrize("limit", [4000, 32000])
def test_a_budget_of_the_whole_limit_is_lowered_for_its_request_and_thinking_goes_on(
    running: TwoKeys, limit: int
) -> None:
    running.call("operator", "DELETE", "/v1/bardo/lessons")

    def answer(arrived: Arrived) -> Given:
        budget = arrived.body["thinking"]["budget_tokens"]
        words = "`max_tokens` must be greater than `thinking.budget_tokens`."
        return well(arrived) if budget < arrived.body["max_tokens"] else refusal(words)

    running.answer = answer
    asked = {"model": "lab/m", "messages": ASK["messages"], "max_tokens": limit}
    thinking = {"type": "enabled", "budget_tokens": limit}
    told = running.ask("a", CHAT, {**asked, "thinking": thinking})
    assert told.status == 200
    assert [one["thinking"]["budget_tokens"] for one in told.bodies] == [limit, limit - 1024]
    assert dict(told.headers)["x-bardo-degraded"] == "reasoning_budget"
    later = running.ask("a", CHAT, {**asked, "thinking": {**thinking, "budget_tokens": limit - 1}})
    assert [one["thinking"]["budget_tokens"] for one in later.bodies] == [limit - 1]
    assert lessons(running, "operator") == []


def test_a_text_of_the_callers_that_repeats_a_refusal_changes_no_request(running: TwoKeys) -> None:
    running.call("operator", "DELETE", "/v1/bardo/lessons")
    text = "Unsupported parameter: 'temperature' is not supported with this model."
    running.answer = lambda arrived: refusal(f"Invalid 'user': {text}") if "user" in arrived.body else well(arrived)
    asked = {"model": "lab/m", "messages": ASK["messages"], "temperature": 0.5, "tool_choice": "auto", "tools": [CALL]}
    told = running.ask("a", CHAT, {**asked, "user": text})
    assert (told.status, len(told.sent)) == (400, 1)
    assert lessons(running, "operator") == []
    for who in ("a", "b"):
        assert [one["temperature"] for one in running.ask(who, CHAT, asked).bodies] == [0.5]
