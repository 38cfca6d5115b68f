"""`bardo explain` of workloads and intents, and `bardo route` over past requests."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.any_model import Simulator
from surfaces.cli.support import bardo

CONFIGURATION = """
[golem]
enabled = true

[[providers]]
id = "market"
preset = "blockrun"
dialect = "openai_chat"
models = ["claude-opus-4-6", "claude-sonnet-4-6", "gemini-3-flash"]

[[providers]]
id = "quiet"
preset = "venice"
models = ["deepseek-r1-671b", "llama-3.3-70b"]

[workloads.review]
model = ["nobody/x", "market/claude-sonnet-4-6"]
prefer = ["citations", "visible_thinking"]
profile = { max_tokens = 700 }

[aliases]
small = ["market/gemini-3-flash", "quiet/llama-3.3-70b"]
"""


@pytest.fixture(autouse=True)
def configuration(folder: Path) -> None:
    (folder / "bardo.toml").write_text(CONFIGURATION)


def words(text: str) -> str:
    return " ".join(text.split())


def test_a_subsystem_is_explained_with_its_candidates_and_its_profile() -> None:
    ran = bardo("explain", "--subsystem", "death")
    assert ran.code == 0, ran.err
    said = words(ran.out)
    assert "workload death" in said
    assert "require visible_thinking" in said
    assert "1. quiet/deepseek-r1-671b <- every requirement is met" in said
    # Its route leads to no other model than this.
    assert "market/" not in said
    assert "profile" in said
    assert said.endswith("Nothing was sent.")
    refused = words(bardo("explain", "--intent", "require=visible_thinking").out)
    assert "cannot be asked: it does not have visible_thinking" in refused


def test_the_plan_for_programs_has_scores_costs_and_reasons() -> None:
    found = bardo("explain", "--intent", "require=vision", "--json").json
    first, *others = found["route"]["candidates"]
    assert (first["provider"], first["model"]) == ("market", "gemini-3-flash")
    assert first["score"] > 0
    assert first["estimated_cost_usd"] > 0
    assert ["lacks:vision"] in [one["reasons"] for one in others]
    assert found["route"]["strategy"] == "order"
    assert found["body"]["model"] == "gemini-3-flash"


def test_a_workload_is_explained_with_what_it_loses() -> None:
    found = bardo("explain", "--workload", "review", "--json").json
    assert found["intent"]["subsystem"] == "review"
    assert found["profile"]["max_tokens"] == 700
    assert 700 in found["body"].values()
    assert {"model", "visible_thinking"} <= {one["what"] for one in found["degraded"]}


def test_the_models_of_an_alias_are_candidates() -> None:
    candidates = bardo("explain", "--model", "small", "--json").json["route"]["candidates"]
    assert [one["model"] for one in candidates] == ["gemini-3-flash", "llama-3.3-70b"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--subsystem", "drem"), "did you mean bardo/dream"),
        (("--model", "bardo/chep"), "did you mean bardo/cheap"),
        (("--intent", "require=visoin"), "did you mean vision"),
        (("--intent", "quality=best"), "maximum"),
        (("--intent", "{"), "--intent is not valid JSON"),
    ],
)
def test_a_mistake_is_named(arguments: tuple[str, ...], said: str) -> None:
    ran = bardo("explain", *arguments)
    assert ran.code == 2
    assert said in words(ran.err)


BODY = {"model": "market/claude-opus-4-6", "messages": [{"role": "user", "content": "Why?"}]}
ROW = {
    "request_id": "req_1",
    "model_asked": "bardo/review",
    "client_dialect": "gemini",
    "provider": "market",
    "model": "claude-opus-4-6",
    "input_tokens": 1000,
    "output_tokens": 200,
    "cost_usd": 0.01,
}


def test_models_that_no_file_lists_are_said_to_be_unknown(folder: Path) -> None:
    (folder / "bardo.toml").write_text('[[providers]]\nid = "anthropic"\n')
    ran = bardo("explain", "--workload", "cheap")
    assert ran.code == 2
    assert "the models of anthropic are not known here ask for their lists with --lists" in words(ran.err)


def test_providers_are_asked_for_their_lists(folder: Path) -> None:
    with Simulator("anthropic", models=["claude-haiku-4-5"]).running() as running:
        address = f'base_url = "{running.base_url}"'
        gone = '[[providers]]\nid = "gone"\npreset = "groq"\nbase_url = "http://127.0.0.1:9"\napi_key_env = "HOME"\n'
        near = f'[[providers]]\nid = "near"\npreset = "anthropic"\napi_key_env = "HOME"\n{address}\n'
        (folder / "bardo.toml").write_text(near + gone)
        explained = bardo("explain", "--workload", "cheap", "--lists")
        (folder / "past.jsonl").write_text('{"model": "gpt-5", "messages": [{"role": "user", "content": "Hello."}]}')
        chosen = bardo("route", "past.jsonl", "--workload", "cheap", "--lists", "--json")
    assert "1. near/claude-haiku-4-5" in words(explained.out)
    assert "no list of models of gone" in words(explained.err)
    assert (chosen.json["provider"], chosen.json["model"]) == ("near", "claude-haiku-4-5")


def lines(*parts: object) -> str:
    return "\n".join(part if isinstance(part, str) else json.dumps(part) for part in parts)


def routed(given: str, *arguments: str) -> list[dict[str, object]]:
    ran = bardo("route", "-", "--json", *arguments, given=given)
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def test_past_requests_are_put_to_the_configuration_at_hand() -> None:
    body, row, broken, unknown = routed(lines(BODY, ROW, "no JSON", "", {**BODY, "model": "nobody-has-this"}))
    assert (body["provider"], body["model"]) == ("market", "claude-opus-4-6")
    assert (row["request_id"], row["workload"], row["model"]) == ("req_1", "review", "claude-sonnet-4-6")
    assert (row["answered_by"], row["cost_usd"]) == ("market/claude-opus-4-6", 0.01)
    # 1,000 tokens of the prompt at $3 a million, and 200 of the answer at $15.
    assert row["estimated_cost_usd"] == pytest.approx(0.006)
    assert row["degraded"] == ["visible_thinking"]
    assert "not valid JSON" in str(broken["error"])
    assert (unknown["line"], "nobody-has-this" in str(unknown["error"])) == (5, True)


def test_every_request_may_be_put_to_one_workload() -> None:
    cheap = routed(lines(BODY, ROW), "--workload", "cheap")
    assert [one["workload"] for one in cheap] == ["cheap", "cheap"]
    private = routed(lines(BODY, ROW), "--workload", "private")
    assert {one["provider"] for one in private} == {"quiet"}


def test_rows_of_the_log_are_read_with_their_intents_and_their_content() -> None:
    by_intent = {**ROW, "model_asked": "bardo/auto", "route": {"intent": {"require": ["vision"]}}}
    content = {"contents": [{"role": "user", "parts": [{"text": "Why?"}]}]}
    kept = {**ROW, "request_content": json.dumps(content), "model_asked": "small"}
    found = routed(json.dumps([by_intent, kept]))
    assert [one["model"] for one in found] == ["gemini-3-flash", "gemini-3-flash"]


def test_a_table_shows_what_would_be_asked_and_the_sums() -> None:
    ran = bardo("route", "-", given=lines(BODY, ROW))
    assert ran.code == 0
    assert "market/claude-sonnet-4-6" in ran.out
    assert "1 of 2 to market/claude-sonnet-4-6" in ran.err
    assert "$0.010000 was paid for the 1" in ran.err
    assert bardo("route", "-", given="").err.strip() == "no requests"
    assert bardo("route", "absent.jsonl").code == 2
