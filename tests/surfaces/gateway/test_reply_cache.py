"""Equal requests are answered with kept replies: for every client, whole and streamed, and only where that is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import bardo
from bardo.adapters.config.pipeline import OwnProfile, PipelineSettings
from bardo.adapters.config.settings import InferenceSettings, LogSettings, ProviderEntry, Settings
from bardo.simulators import Fault, simulate
from support.any_model import Simulator
from support.gateway import House, house
from support.keyed_gateway import keyed_gateway
from support.patience import PATIENCE
from support.sdk import SDKS
from support.talk import CLIENTS, THOUGHT, Answer, ask, request
from support.typed import GOOD, PLACE, SCRIPT, shape_for, text_of
from surfaces.gateway.cells import whole_and_streamed

MODEL = "deepseek/m"
PROFILE = """
[[prices]]
match = "*"
input = 1.0
output = 10.0
[inference.pipeline]
profile = "own"
[inference.pipeline.profiles.own]
layers = ["cache"]
[inference.pipeline.cache]
"""
each_client = pytest.mark.parametrize("client", CLIENTS)


@contextmanager
def caching(*simulators: Simulator, **settings: Any) -> Iterator[House]:
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())
    with house(simulators or [Simulator("deepseek")], toml=PROFILE + lines) as running:
        yield running


def outcome(answer: Answer) -> str:
    assert answer.status == 200, answer.text
    return answer.headers["x-bardo-cache"].partition("; age")[0]


@each_client
@whole_and_streamed
@pytest.mark.parametrize("earlier", [False, True], ids=["after whole", "after streamed"])
def test_an_equal_request_gets_the_kept_reply(client: str, stream: bool, earlier: bool) -> None:
    with caching() as running:
        first = ask(running.address, client, MODEL, stream=earlier)
        assert outcome(first) == "miss"
        second = ask(running.address, client, MODEL, stream=stream, bardo={"include": ["receipt", "reasoning_chain"]})
        assert outcome(second) == "hit"
        assert "1161" in second.text
        assert second.headers["x-bardo-cost-usd"] == "0"
        assert len(running.arrived("deepseek")) == 1
        cost = running.log.row(first.headers["x-bardo-request-id"]).cost_nanos
        row = running.log.row(second.headers["x-bardo-request-id"])
        assert (row.outcome, row.cache, row.attempts, row.cost_nanos) == ("ok", "hit", 0, 0)
        assert cost
        assert row.reply_saved_nanos == cost
        assert second.headers["x-bardo-cache"].endswith(f"saved_usd={cost / 1e9:.9f}".rstrip("0"))
        assert (row.input_tokens, row.output_tokens) == (None, None)


@each_client
def test_a_kept_reply_keeps_its_thinking_and_what_its_model_used(client: str) -> None:
    with caching() as running:
        first, second = (ask(running.address, client, MODEL, thinks=True) for _ in range(2))
        assert [outcome(one) for one in (first, second)] == ["miss", "hit"]
        assert THOUGHT in second.text
        assert usage_of(second) == usage_of(first)
        assert usage_of(second)


def usage_of(answer: Answer) -> Any:
    return answer.json.get("usage") or answer.json.get("usageMetadata")


def test_a_client_of_another_dialect_gets_the_same_reply() -> None:
    with caching() as running:
        assert outcome(ask(running.address, "openai_chat", MODEL)) == "miss"
        for client in ("openai_responses", "gemini", "openai_chat"):
            again = ask(running.address, client, MODEL)
            assert "1161" in again.text
        # Other clients say what a reply may hold, or have fields of their own: then it is another request.
        assert len(running.arrived("deepseek")) <= 3


@pytest.mark.parametrize("sdk", SDKS)
def test_official_libraries_take_kept_replies(sdk: str) -> None:
    with caching() as running:
        library = SDKS[sdk](running.address)
        try:
            said = library.said("What is 27 * 43?")
            answers = [library.ask(MODEL, said, stream=stream, reasoning=False) for stream in (False, True, False)]
        finally:
            library.close()
        assert all("1161" in answer.text for answer in answers)
        assert len(running.arrived("deepseek")) == 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"question": "What is the weather today?"}, "time_words"),
        ({"question": "Write to ada@example.org"}, "pii"),
        ({"tools": True}, "tools"),
        ({"temperature": 1.5}, "sampling"),
        ({"bardo": {"cache": {"mode": "off"}}}, "no_store"),
        ({"headers": {"cache-control": "no-store"}}, "no_store"),
    ],
)
def test_a_refusal_says_why_and_nothing_is_kept(fields: dict[str, Any], reason: str) -> None:
    with caching() as running:
        for _ in range(2):
            answer = ask(running.address, "openai_chat", MODEL, **fields)
            assert answer.headers["x-bardo-cache"] == f"refused; reason={reason}"
            assert running.log.row(answer.headers["x-bardo-request-id"]).cache == f"refused:{reason}"
        assert len(running.arrived("deepseek")) == 2


def test_what_the_caller_allows_is_no_reason() -> None:
    with caching() as running:
        asked: dict[str, Any] = {"question": "What is the news today?", "bardo": {"cache": {"allow": ["time_words"]}}}
        found = [outcome(ask(running.address, "openai_chat", MODEL, **asked)) for _ in range(2)]
        assert found == ["miss", "hit"]
        assert outcome(ask(running.address, "openai_chat", MODEL, question="What is the news today?")).startswith(
            "refused"
        )


def test_conversations_are_answered_where_the_operator_allows_it() -> None:
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "?"},
    ]
    with caching() as running:
        assert outcome(ask(running.address, "openai_chat", MODEL, messages=turns)) == "refused; reason=multi_turn"
    with caching(allow=["multi_turn"]) as running:
        found = [outcome(ask(running.address, "openai_chat", MODEL, messages=turns)) for _ in range(2)]
        assert found == ["miss", "hit"]


def test_a_caller_may_want_a_new_reply_or_a_young_one() -> None:
    with caching() as running:
        assert outcome(ask(running.address, "openai_chat", MODEL)) == "miss"
        anew = ask(running.address, "openai_chat", MODEL, headers={"cache-control": "no-cache"})
        assert outcome(anew) == "miss; reason=refresh"
        assert outcome(ask(running.address, "openai_chat", MODEL, headers={"cache-control": "max-age=0"})) == "miss"
        assert outcome(ask(running.address, "openai_chat", MODEL, headers={"cache-control": "max-age=600"})) == "hit"
        assert outcome(ask(running.address, "openai_chat", MODEL, bardo={"cache": {"max_age_seconds": 600}})) == "hit"


@pytest.mark.parametrize(
    "cache", [{"mod": "off"}, {"mode": "never"}, {"tags": [""]}, {"allow": ["private"]}, {"ttl_seconds": 0}, "off"]
)
def test_a_wrong_option_is_told(cache: Any) -> None:
    with caching() as running:
        answer = ask(running.address, "openai_chat", MODEL, bardo={"cache": cache})
        assert answer.status == 400
        assert "bardo.cache" in answer.text


def test_tenants_share_nothing() -> None:
    with caching() as running:
        keys = [{"authorization": f"Bearer {key}"} for key in ("one", "two", "one")]
        found = [outcome(ask(running.address, "openai_chat", MODEL, headers=key)) for key in keys]
        assert found == ["miss", "miss", "hit"]


def test_failed_and_truncated_replies_are_not_kept() -> None:
    with caching() as running:
        simulator = running.simulators["deepseek"]
        simulator.fail(Fault("status", status=400))
        assert ask(running.address, "openai_chat", MODEL).status == 400
        simulator.fail(None)
        assert outcome(ask(running.address, "openai_chat", MODEL, max_tokens=3)) == "miss"
        assert outcome(ask(running.address, "openai_chat", MODEL)) == "miss"


def test_large_replies_are_not_kept() -> None:
    with caching(max_reply_bytes=200) as running:
        assert [outcome(ask(running.address, "openai_chat", MODEL)) for _ in range(2)] == ["miss", "miss"]


def test_a_model_may_have_a_time_of_its_own() -> None:
    with caching(ttl_seconds_at={}) as running:
        assert [outcome(ask(running.address, "openai_chat", MODEL)) for _ in range(2)] == ["miss", "hit"]
    toml = f'{PROFILE}ttl_seconds_at = {{ "deepseek/*" = 0 }}\n'
    with house([Simulator("deepseek")], toml=toml) as running:
        assert outcome(ask(running.address, "openai_chat", MODEL)) == "refused; reason=no_store"


@each_client
@whole_and_streamed
def test_an_answer_in_a_schema_is_kept_and_judged_again(client: str, stream: bool) -> None:
    with caching(Simulator("vllm", script=SCRIPT)) as running:
        asked = {"question": "good", **shape_for(client, PLACE), "bardo": {"include": ["structured"]}}
        first, second = (ask(running.address, client, "vllm/qwen3-8b", stream=stream, **asked) for _ in range(2))
        assert [outcome(one) for one in (first, second)] == ["miss", "hit"]
        assert json.loads(text_of(client, second, stream=stream)) == GOOD


@whole_and_streamed
def test_of_equal_calls_at_once_one_is_sent(stream: bool) -> None:
    simulator = Simulator("deepseek")
    gate = simulator.hold()
    with caching(simulator) as running, ThreadPoolExecutor(8) as pool:
        leader = pool.submit(ask, running.address, "openai_chat", MODEL, stream=stream)
        gate.wait(PATIENCE)
        others = [pool.submit(ask, running.address, "openai_chat", MODEL, stream=stream) for _ in range(6)]
        gate.release()
        assert outcome(leader.result(PATIENCE)) == "miss"
        assert [outcome(one.result(PATIENCE)) for one in others] == ["hit"] * 6
        assert len(running.arrived("deepseek")) == 1


def test_a_store_in_a_file_outlives_the_gateway_and_is_shared(tmp_path: Path) -> None:
    store = str(tmp_path / "replies.db")
    with caching(store=store, timeout_seconds=PATIENCE) as running:
        assert outcome(ask(running.address, "openai_chat", MODEL)) == "miss"
    with caching(store=store, timeout_seconds=PATIENCE) as running:
        assert outcome(ask(running.address, "openai_chat", MODEL)) == "hit"


def test_a_name_that_stands_for_another_model_now_gets_no_reply_of_the_earlier_one(tmp_path: Path) -> None:
    for model, expected in (("deepseek/one", "miss"), ("deepseek/two", "miss"), ("deepseek/one", "hit")):
        toml = f'{PROFILE}store = {json.dumps(str(tmp_path / "replies.db"))}\ntimeout_seconds = {PATIENCE}\n[aliases]\nfast = "{model}"\n'
        with house([Simulator("deepseek")], toml=toml) as running:
            assert outcome(ask(running.address, "openai_chat", "fast")) == expected


def test_a_store_that_cannot_be_used_costs_no_call(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "one").touch()
    with caching(store=str(tmp_path / "notes"), timeout_seconds=PATIENCE) as running:
        assert [outcome(ask(running.address, "openai_chat", MODEL)) for _ in range(3)] == ["miss"] * 3
    said = [record.message for record in caplog.records if record.name == "bardo.cache"]
    assert len(said) == 2
    assert "notes, for kept replies, is a folder with something in it, and is left alone" in said[0]
    assert "is not used for a while" in said[1]


def test_a_tenant_sees_and_removes_its_own_entries() -> None:
    one, two = ({"authorization": f"Bearer {key}"} for key in ("one", "two"))
    with caching() as running:
        assert request(running.address, "GET", "/v1/bardo/cache", headers=one).status == 404
        tagged = {"cache": {"tags": ["news"]}}
        for headers in (one, two):
            assert outcome(ask(running.address, "openai_chat", MODEL, headers=headers, bardo=tagged)) == "miss"
        assert outcome(ask(running.address, "openai_chat", MODEL, headers=one, question="2 + 2?")) == "miss"
        held = request(running.address, "GET", "/v1/bardo/cache", headers=one).json
        assert held["entries"] == 2
        assert held["bytes"] > 0
        purge = "/v1/bardo/cache/purge"
        assert request(running.address, "POST", purge, {"tag": "news"}, one).json == {"removed": 1}
        assert request(running.address, "POST", purge, {"tags": "news"}, one).status == 400
        assert request(running.address, "POST", purge, {}, one).json == {"removed": 1}
        assert outcome(ask(running.address, "openai_chat", MODEL, headers=one)) == "miss"
        assert outcome(ask(running.address, "openai_chat", MODEL, headers=two)) == "hit"


def test_a_key_gets_no_reply_of_a_model_that_it_may_not_ask(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=PROFILE) as running:
        able, unable = running.key(tenant="house"), running.key(tenant="house", models=("other/*",))
        found = [
            ask(running.address, "openai_chat", MODEL, headers={"authorization": f"Bearer {key}"})
            for key in (able, able, unable)
        ]
        assert [one.status for one in found] == [200, 200, 403]
        assert outcome(found[1]) == "hit"


def test_the_library_keeps_replies_too() -> None:
    layers = {"own": OwnProfile(layers=("cache",))}
    pipeline = PipelineSettings(profile="own", profiles=layers)
    with simulate("vllm", models=[]) as provider:
        entry = ProviderEntry(id="lab", preset="vllm", base_url=provider.base_url, models=("qwen",))
        settings = Settings(
            providers=(entry,), log=LogSettings(enabled=False), inference=InferenceSettings(pipeline=pipeline)
        )
        with bardo.Client(settings) as client:
            first, second = (client.respond("Hello.", model="qwen", cache={"tags": ["x"]}) for _ in range(2))
            anew = client.respond("Hello.", model="qwen", cache={"mode": "off"})
        assert first.text == second.text == anew.text
        assert second.bardo["cost_usd"] == 0
        assert len([one for one in provider.requests if one.path.endswith("/chat/completions")]) == 2
