"""A client may write a conversation anew: the thinking of each turn comes back to the provider that thought it, and to no other turn."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import httpx
import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Script, ToolCall, Turn
from support.gateway import House, Remembering, house
from support.patience import PATIENCE
from surfaces.gateway.rewriting_clients import (
    CLIENTS,
    MUTATORS,
    Conversation,
    as_stream,
    mutated,
    take,
    take_stream,
    with_system,
)
from surfaces.gateway.scripted import chat_reply, scripted
from surfaces.gateway.test_sdk_tool_loops import sealed_in

SIGNED = {
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-3-flash-preview",
    "openai_responses": "gpt-5",
    "openrouter": "anthropic/claude-sonnet-4.5",
}
PLAIN = {"ds4": "m", "cohere": "command-a-reasoning-08-2025", "ollama_native": "qwen3:8b"}
"""Providers that give readable thinking, and take it back as it was."""
MODELS = {**SIGNED, **PLAIN}
QUESTION = ("Compare the weather in four cities.\n",)
THOUGHTS = ("First comes Paris.", "Rome and Oslo can be asked together.", "Cologne is left.")
NATIVE = {("chat", "ds4"), ("ollama", "ollama_native"), ("cohere", "cohere")}
WRITTEN = {"thinking rewritten": "Other words than the model's.", "plan invented": "I will call the weather tool."}
WRITTEN["all at once"] = WRITTEN["thinking rewritten"]


AMONG_OTHERS = [
    *("as it was", "ids dropped", "ids renamed", "thinking rewritten", "white space trimmed"),
    *("text dropped, ids renamed", "calls reordered", "a turn split, thinking dropped", "a turn split, ids renamed"),
]


def script(more: str = "") -> Script:
    """Three turns of calls, the second with two at once, and an answer; `more` is said behind each thought."""
    cities = (("Paris",), ("Rome", "Oslo"), ("Köln",))
    turns = [
        Turn(
            text="Let me look.\n\nThis takes a moment.  " if place == 0 else "",
            reasoning=THOUGHTS[place] + more,
            tool_calls=tuple(ToolCall("weather", {"city": city, "days": 2}) for city in some),
        )
        for place, some in enumerate(cities)
    ]
    return Script((*turns, Turn(reasoning="I know all four.", text="Oslo is the coldest.")))


@contextmanager
def town(*providers: str) -> Iterator[House]:
    keeper = ReplayKeeper(MemoryStore())
    try:
        with house([Remembering(provider, script=script()) for provider in providers], replay=keeper) as running:
            yield running
    finally:
        keeper.close()


def ask(
    running: House, dialect: str, model: str, talk: Conversation, key: str = "k", *, stream: bool = False
) -> httpx.Response:
    """Return the answer to a conversation."""
    client = CLIENTS[dialect]
    headers = {"authorization": f"Bearer {key}"}
    path, body = client.path(model), client.write(talk, model)
    body = with_system(dialect, body, talk.system) if talk.system else body
    if stream:
        path, body = as_stream(dialect, path, body)
    answer = httpx.post(running.address + path, json=body, headers=headers, timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    return answer


def loop(running: House, dialect: str, provider: str, how: str, *, late: bool, stream: bool = False) -> None:
    """Go through the whole tool loop with a client that writes the conversation anew before each request."""
    client, talk = CLIENTS[dialect], Conversation(QUESTION)
    for _ in range(len(THOUGHTS) + 1):
        model, said = f"{provider}/{MODELS[provider]}", mutated(talk, how, client, late=late)
        answer = ask(running, dialect, model, said, stream=stream)
        turn = take_stream(dialect, answer.content) if stream else take(client, answer.json())
        talk = Conversation(talk.question, (*talk.turns, turn))
    assert talk.turns[-1].texts == ("Oslo is the coldest.",)


@pytest.mark.sampled(16)
@pytest.mark.parametrize("how", list(MUTATORS))
@pytest.mark.parametrize("provider", list(MODELS))
@pytest.mark.parametrize("dialect", list(CLIENTS))
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_all_thinking_comes_back_to_the_provider_that_thought_it(
    dialect: str, provider: str, how: str, stream: bool
) -> None:
    for late in (False, True):
        with town(provider) as running:
            loop(running, dialect, provider, how, late=late, stream=stream)
            # A server of Ollama is asked for facts about its model too.
            asked = [one.raw for one in running.arrived(provider) if not one.path.endswith("/api/show")]
            assert len(asked) == len(THOUGHTS) + 1, "no request was refused"
            last = asked[-1]
            for place, thought in enumerate(THOUGHTS):
                if provider in PLAIN:
                    # A client of the provider's own dialect may write the thinking as it likes.
                    native = (dialect, provider) in NATIVE and how in WRITTEN
                    expected = WRITTEN[how] if native else thought
                    assert expected.encode() in last or thought.encode() in last, f"thought {place}, late={late}"
                else:
                    sent = sealed_in(running.sent(provider, place))
                    assert sent
                    came = set(sent) & set(sealed_in(last))
                    # A stream of Responses tells a ciphertext up to three times, each time another; the one of the finished item counts.
                    several = stream and provider == "openai_responses"
                    assert came if several else came == set(sent), f"thought {place}, late={late}"


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "ds4"])
@pytest.mark.parametrize("dialect", ["chat", "messages", "gemini"])
def test_a_summary_in_place_of_the_first_turns_gets_none_of_their_thinking_and_breaks_nothing(
    dialect: str, provider: str
) -> None:
    client, model = CLIENTS[dialect], f"{provider}/{MODELS[provider]}"
    summary = ("What was said so far: it is sunny in Paris.",)
    with town(provider) as running:
        talk = Conversation(QUESTION)
        for _ in range(2):
            turn = take(client, ask(running, dialect, model, talk).json())
            talk = Conversation(QUESTION, (*talk.turns, replace(turn, thinking="")))
        thoughts = [set(sealed_in(running.sent(provider, place))) for place in (0, 1)]
        for turns in ((), talk.turns[1:]):
            ask(running, dialect, model, Conversation(summary, turns))
            body = running.arrived(provider)[-1].raw
            assert thoughts[0].isdisjoint(sealed_in(body))
            assert THOUGHTS[0].encode() not in body
            assert turns or thoughts[1].isdisjoint(sealed_in(body))


@pytest.mark.parametrize("dialect", list(CLIENTS))
def test_a_text_that_a_client_drops_beside_a_call_is_not_invented_and_the_client_is_told(dialect: str) -> None:
    client = CLIENTS[dialect]
    with town("anthropic") as running:
        model = f"anthropic/{MODELS['anthropic']}"
        talk = Conversation(QUESTION)
        talk = Conversation(QUESTION, (take(client, ask(running, dialect, model, talk).json()),))
        told = ask(running, dialect, model, mutated(talk, "text dropped, ids renamed", client, late=False))
        sent = json.loads(running.arrived("anthropic")[-1].raw)["messages"][1]["content"]
        assert [block["type"] for block in sent] == ["thinking", "tool_use"]
        assert "reasoning" in told.headers["x-bardo-degraded"].split(", ")


@pytest.mark.sampled(6)
@pytest.mark.parametrize("how", AMONG_OTHERS)
@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "ds4", "ollama_native"])
@pytest.mark.parametrize("dialect", list(CLIENTS))
@pytest.mark.parametrize("others", ["of another key", "of the same key"])
def test_conversations_with_the_same_beginning_never_get_each_others_thinking(
    dialect: str, provider: str, how: str, others: str
) -> None:
    client, model = CLIENTS[dialect], f"{provider}/{MODELS[provider]}"
    keys = ("k", "l" if others == "of another key" else "k")
    with town(provider) as running:
        talks, thoughts = [], []
        for key, name in zip(keys, (" One.", " Two."), strict=True):
            running.simulators[provider].play(script(name))
            reply = ask(running, dialect, model, Conversation(QUESTION), key).json()
            talks.append(Conversation(QUESTION, (take(client, reply),)))
            thoughts.append({THOUGHTS[0] + name} if provider in PLAIN else set(sealed_in(running.sent(provider))))
        assert thoughts[0].isdisjoint(thoughts[1])
        for place, (key, talk) in enumerate(zip(keys, talks, strict=True)):
            ask(running, dialect, model, mutated(talk, how, client, late=False), key)
            body = next(one for one in reversed(running.arrived(provider)) if not one.path.endswith("/api/show")).raw
            came = (thoughts[0] | thoughts[1]).intersection(sealed_in(body))
            if provider in PLAIN:
                came = {one for one in thoughts[0] | thoughts[1] if one.encode() in body}
            assert came <= thoughts[place], "the other's"
            # Of one key, the two are told apart by the ids of their calls, where these are unique.
            kept_ids = how != "ids dropped" and "ids renamed" not in how and client.needs_ids
            if others == "of another key" or (kept_ids and provider in ("anthropic", "openai_responses", "ds4")):
                own_words = (dialect, provider) in NATIVE and how in WRITTEN
                assert came == thoughts[place] or own_words, "its own"


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses", "ds4"])
@pytest.mark.parametrize("dialect", list(CLIENTS))
def test_a_turn_without_thinking_never_gets_that_of_a_turn_which_looks_the_same(
    dialect: str, provider: str, first: int
) -> None:
    client, model = CLIENTS[dialect], f"{provider}/{MODELS[provider]}"
    thoughtless = Script(tuple(replace(turn, reasoning="") for turn in script().turns))
    with town(provider) as running:
        talks = {}
        for thinks in (bool(first), not first):
            running.simulators[provider].play(script() if thinks else thoughtless)
            reply = ask(running, dialect, model, Conversation(QUESTION)).json()
            talks[thinks] = Conversation(QUESTION, (take(client, reply),))
            if thinks:
                made = {THOUGHTS[0]} if provider in PLAIN else set(sealed_in(running.sent(provider)))
        ask(running, dialect, model, mutated(talks[False], "ids renamed", client, late=False))
        body = running.arrived(provider)[-1].raw
        assert not [one for one in made if one.encode() in body or one in sealed_in(body)]


@pytest.mark.parametrize("name", ["reasoning_content", "reasoning"])
@pytest.mark.parametrize("dialect", list(CLIENTS))
def test_a_server_of_which_only_the_dialect_is_known_gets_its_own_field_back(dialect: str, name: str) -> None:
    client, model = CLIENTS[dialect], "openai-compatible/m"
    call = {"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
    with scripted(["openai-compatible"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [
            chat_reply({name: "First Paris.", "tool_calls": [call]}, stream=False),
            chat_reply({"content": "Done."}, stream=False),
        ]
        first = Conversation(QUESTION)
        _, body = played.post(client.path(model), client.write(first, model))
        turn = MUTATORS["thinking dropped"](take(client, json.loads(body)), 0, client)
        headers, _ = played.post(client.path(model), client.write(Conversation(QUESTION, (turn,)), model))
        sent = [one for one in played.bodies[-1]["messages"] if one["role"] == "assistant"]
        assert [one.get(name) for one in sent] == ["First Paris."]
        assert {"reasoning_content", "reasoning"} & sent[0].keys() == {name}
        assert "reasoning" not in headers.get("x-bardo-degraded", "").split(", ")


def test_no_other_server_gets_the_field_of_this_one() -> None:
    client = CLIENTS["messages"]
    call = {"id": "call_0", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}
    with scripted(["openai-compatible", "openai-chat"], ReplayKeeper(MemoryStore())) as played:
        played.replies = [
            chat_reply({"reasoning": "First Paris.", "tool_calls": [call]}, stream=False),
            chat_reply({"content": "Done."}, stream=False),
        ]
        _, body = played.post("/v1/messages", client.write(Conversation(QUESTION), "openai-compatible/m"))
        turn = take(client, json.loads(body))
        played.post("/v1/messages", client.write(Conversation(QUESTION, (turn,)), "openai-chat/gpt-5"))
        assert "First Paris." not in json.dumps(played.bodies[-1])
