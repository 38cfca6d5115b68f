"""Layers that shorten or order a prompt, through the gateway: what the provider gets, and what the caller is told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.simulators import Script, Turn
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import Answer, path_for, request

PARAGRAPH = "Rates of the second quarter rose by three percent, and those of the third fell. "
LONG = "\n".join(f"{number}: {PARAGRAPH}" for number in range(200))
SETTINGS = """
[inference.pipeline.profiles.short]
layers = ["compress"]
[inference.pipeline.compress]
above_tokens = 1000
longest = 200
keep_turns = 1
"""


def chat(results: list[str]) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Read the files."}]
    for number, text in enumerate(results):
        call = {"id": f"call_{number}", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        turns += [{"role": "assistant", "content": "", "tool_calls": [call]}]
        turns += [{"role": "tool", "tool_call_id": f"call_{number}", "content": text}]
    return {
        "messages": turns,
        "tools": [{"type": "function", "function": {"name": "read", "parameters": {"type": "object"}}}],
    }


def messages(results: list[str]) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Read the files."}]
    for number, text in enumerate(results):
        turns += [
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": f"toolu_{number}", "name": "read", "input": {}}],
            }
        ]
        turns += [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": text}]}
        ]
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    return {"messages": turns, "max_tokens": 500, "tools": tools}


def responses(results: list[str]) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"role": "user", "content": "Read the files."}]
    for number, text in enumerate(results):
        turns += [{"type": "function_call", "call_id": f"call_{number}", "name": "read", "arguments": "{}"}]
        turns += [{"type": "function_call_output", "call_id": f"call_{number}", "output": text}]
    return {"input": turns, "tools": [{"type": "function", "name": "read", "parameters": {"type": "object"}}]}


def gemini(results: list[str]) -> dict[str, Any]:
    turns: list[dict[str, Any]] = [{"role": "user", "parts": [{"text": "Read the files."}]}]
    for text in results:
        turns += [{"role": "model", "parts": [{"functionCall": {"name": "read", "args": {}}}]}]
        turns += [{"role": "user", "parts": [{"functionResponse": {"name": "read", "response": {"output": text}}}]}]
    return {"contents": turns, "tools": [{"functionDeclarations": [{"name": "read"}]}]}


CLIENTS = {"openai_chat": chat, "anthropic_messages": messages, "openai_responses": responses, "gemini": gemini}
each_client = pytest.mark.parametrize("client", CLIENTS)
PROVIDERS = {"deepseek": "deepseek-chat", "anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}
each_provider = pytest.mark.parametrize("provider", PROVIDERS)


def post(running: House, client: str, model: str, body: dict[str, Any], **bardo: Any) -> Answer:
    whole = {**body, "bardo": {"include": ["receipt"], **bardo}}
    if client != "gemini":
        whole["model"] = model
    return request(running.address, "POST", path_for(client, model), whole)


def bodies(running: House) -> list[Any]:
    """Return what reached the provider, in order."""
    return [one.body for one in running.arrived("deepseek")]


@each_client
@each_provider
def test_old_results_are_shortened_and_the_newest_is_sent_whole(client: str, provider: str) -> None:
    model = f"{provider}/{PROVIDERS[provider]}"
    with house([Simulator(provider)], toml=SETTINGS) as running:
        body = CLIENTS[client]([LONG, LONG, "short", LONG])
        plain = post(running, client, model, body)
        sent = json.dumps(running.last(provider))
        shortened = post(running, client, model, body, pipeline="short")
        again = json.dumps(running.last(provider))
    assert (plain.status, shortened.status) == (200, 200), shortened.text
    assert sent.count("199: Rates") == 3
    assert again.count("199: Rates") == 3
    assert (sent.count("100: Rates"), again.count("100: Rates")) == (3, 1)
    assert again.count("characters left out") == 2
    assert "2 old texts were shortened" in shortened.text
    assert "messages" in shortened.headers["x-bardo-degraded"]


def test_a_turn_later_the_same_is_sent_again() -> None:
    with house([Simulator("deepseek")], toml=SETTINGS) as running:
        post(running, "openai_chat", "deepseek/m", chat([LONG, LONG, "a", "b"]), pipeline="short")
        post(running, "openai_chat", "deepseek/m", chat([LONG, LONG, "a", "b", "c"]), pipeline="short")
        first, second = bodies(running)
    assert second["messages"][: len(first["messages"])] == first["messages"]


COMPACT = """
[inference.pipeline.profiles.short]
layers = ["compress"]
[inference.pipeline.compress]
keep_turns = 1
compact_above_tokens = 1000
"""


@each_provider
@pytest.mark.parametrize("client", ["openai_chat", "anthropic_messages"])
def test_a_long_conversation_is_compacted_by_rules(client: str, provider: str) -> None:
    model = f"{provider}/{PROVIDERS[provider]}"
    with house([Simulator(provider)], toml=f'{COMPACT}compact = ["rules"]') as running:
        answer = post(running, client, model, CLIENTS[client]([LONG, LONG, "the end"]), pipeline="short")
        sent = json.dumps(running.last(provider))
    assert answer.status == 200, answer.text
    assert "a summary stands for 5 earlier messages" in answer.text
    assert "Read the files." in sent
    assert "the end" in sent
    assert sent.count("100: Rates") == 0
    assert "read (2 times)" in sent


def test_a_summary_of_a_model_is_made_once_and_logged_as_a_call_of_its_own() -> None:
    script = Script((Turn(text="The files hold rates."),))
    both = [Simulator("deepseek"), Simulator("groq", script=script)]
    with house(both, toml=f'{COMPACT}compact = ["model", "rules"]\nmodel = "groq/small"') as running:
        first = post(running, "openai_chat", "deepseek/m", chat([LONG, LONG, "a"]), pipeline="short")
        second = post(running, "openai_chat", "deepseek/m", chat([LONG, LONG, "a", "b"]), pipeline="short")
        asked = running.arrived("groq")
        one, other = (one["messages"] for one in bodies(running))
        row = running.log.of_model("groq/small")
    assert (first.status, second.status) == (200, 200)
    assert len(asked) == 1
    assert "call of read" in json.dumps(asked[0].body)
    assert "The files hold rates." in json.dumps(one)
    assert other[: len(one)] == one
    assert row.outcome == "ok"
    assert row.request_id in first.text


def test_a_summary_is_made_by_rules_where_the_model_does_not_answer() -> None:
    settings = f'{COMPACT}compact = ["model"]\nmodel = "nobody/small"'
    with house([Simulator("deepseek")], toml=settings) as running:
        answer = post(running, "openai_chat", "deepseek/m", chat([LONG, LONG, "a"]), pipeline="short")
        sent = json.dumps(running.last("deepseek"))
    assert answer.status == 200
    assert "by rules, since nobody/small did not answer" in answer.text
    assert "read (2 times)" in sent


def test_the_provider_is_asked_to_shorten_where_it_has_an_api_for_it() -> None:
    with house([Simulator("anthropic")], toml=f'{COMPACT}compact = ["provider", "rules"]') as running:
        model = f"anthropic/{PROVIDERS['anthropic']}"
        answer = post(running, "anthropic_messages", model, messages([LONG, LONG, "a"]), pipeline="short")
        headers, body = running.arrived("anthropic")[-1].headers, running.last("anthropic")
    assert answer.status == 200, answer.text
    edit = body["context_management"]["edits"][0]
    assert edit["trigger"] == {"type": "input_tokens", "value": 1000}
    assert "context-management-2025-06-27" in headers["anthropic-beta"]
    assert json.dumps(body).count("199: Rates") == 2


def test_a_client_that_reads_blocks_of_compaction_has_its_provider_summarize() -> None:
    model, beta = "claude-sonnet-4-6", "compact-2026-01-12"
    with house([Simulator("anthropic")], toml=f'{COMPACT}compact = ["provider", "rules"]') as running:
        body = {**messages([LONG, "a"]), "model": f"anthropic/{model}", "bardo": {"pipeline": "short"}}
        for headers, kind, trigger in (
            ({"anthropic-beta": f"other, {beta}"}, "compact_20260112", 50_000),
            ({}, "clear_tool_uses_20250919", 1_000),
        ):
            answer = request(running.address, "POST", "/v1/messages", body, headers)
            assert answer.status == 200, answer.text
            [edit] = running.last("anthropic")["context_management"]["edits"]
            assert (edit["type"], edit["trigger"]) == (kind, {"type": "input_tokens", "value": trigger})


@pytest.mark.parametrize(
    ("beta", "edit", "word"),
    [
        ("", {"type": "compact_20260112"}, "Extra inputs"),
        ("compact-2026-01-12", {"type": "compact_20260112", "keep": 1}, "keep: Extra inputs"),
        (
            "compact-2026-01-12",
            {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 49_999}},
            "greater than or equal to 50000",
        ),
        ("compact-2026-01-12", {"type": "clear_tool_uses_20250919"}, "Extra inputs"),
        ("compact-2026-01-12", {"type": "compact_20990101"}, "does not match"),
    ],
)
def test_the_provider_refuses_what_it_does_not_take(beta: str, edit: dict[str, Any], word: str) -> None:
    with Simulator("anthropic").running() as running:
        body = {**messages(["a"]), "model": "claude-sonnet-4-6", "context_management": {"edits": [edit]}}
        headers = {"anthropic-version": "2023-06-01", "x-api-key": "key", **({"anthropic-beta": beta} if beta else {})}
        answer = request(running.root, "POST", "/v1/messages", body, headers)
        assert answer.status == 400
        assert word in answer.text


def test_the_layers_of_the_profile_run_together() -> None:
    names = ["reorder", "compress", "dedup", "relevance", "constraints", "format"]
    settings = f"""
[inference.pipeline.profiles.all]
layers = {json.dumps(names)}
[inference.pipeline.constraints]
above_tokens = 100
every_tokens = 0
must = ["Name the source of every number."]
"""
    body = chat([LONG, LONG, '{"rows":  [1,  2]}', "a"])
    body["messages"].insert(0, {"role": "system", "content": "It is 12:30."})
    body["messages"].insert(1, {"role": "system", "content": "You are an analyst."})
    body["messages"].append({"role": "assistant", "content": "Read."})
    body["messages"].append({"role": "user", "content": "Which rates fell?"})
    with house([Simulator("deepseek")], toml=settings) as running:
        answer = post(running, "openai_chat", "deepseek/m", body, pipeline="all")
        sent = running.last("deepseek")["messages"]
    assert answer.status == 200, answer.text
    receipts = json.dumps(answer.json)
    for name in names:
        assert f'"layer": "{name}"' in receipts
    assert "You are an analyst." in json.dumps(sent[0])
    assert "Name the source of every number." in json.dumps(sent[-1])
    assert "The same text as in" in json.dumps(sent)


def test_passages_are_compared_by_the_vectors_that_ship_with_bardo() -> None:
    settings = """
[inference.pipeline.profiles.own]
layers = ["relevance"]
[inference.pipeline.relevance]
above_tokens = 100
longest = 1000
keep = 500
keep_turns = 1
embed = true
"""
    needle = "The physician treated the patient in the hospital. "
    text = f"{PARAGRAPH * 30}\n{needle * 8}\n{PARAGRAPH * 30}"
    body = chat([text, "a"])
    body["messages"] += [
        {"role": "assistant", "content": "Read."},
        {"role": "user", "content": "Which doctors worked?"},
    ]
    with house([Simulator("deepseek")], toml=settings) as running:
        answer = post(running, "openai_chat", "deepseek/m", body, pipeline="own")
        sent = json.dumps(running.last("deepseek"))
    assert answer.status == 200
    assert needle in sent
    assert sent.count(PARAGRAPH.strip()) < 40
    assert "passages left out" in sent
