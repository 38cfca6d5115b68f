"""The layer `affinity` over several servers with prefix caches: sessions stay where their prompt is cached, and what was read is shown."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Semaphore
from typing import Any
from urllib.request import Request, urlopen

import pytest

from bardo.simulators import Fault, Incoming, PrefixCache
from bardo.simulators.delivery import Action
from support.any_model import Simulator
from support.gateway import House, house
from support.patience import PATIENCE
from support.sdk import openai_client
from support.servers import MODEL, Servers, servers

ON = '[inference.pipeline]\nprofile = "own"\n[inference.pipeline.profiles.own]\nlayers = ["affinity"]\n'
RECEIPT: dict[str, Any] = {"bardo": {"include": ["receipt"]}}


def pods(count: int, blocks: int = 100_000) -> list[Simulator]:
    return [Simulator("vllm", prefix_cache=PrefixCache(blocks)) for _ in range(count)]


def words(seed: str, count: int) -> str:
    chance = random.Random(seed)
    return " ".join(f"{chance.getrandbits(24):06x}" for _ in range(count))


def hit_rate(running: Servers) -> float:
    """Return the share of all prompts' tokens that the servers say they read from their caches."""
    rows = running.house.log.rows
    return sum(row.cached_input_tokens or 0 for row in rows) / sum(row.input_tokens or 0 for row in rows)


def talk(running: Servers, sessions: Sequence[str], turns: int, *, system: str = "") -> None:
    """Hold conversations, each turn of all of them before the next turn."""
    said: dict[str, list[str]] = {name: [words(name, 60)] for name in sessions}
    for turn in range(turns):
        for name in sessions:
            _, body = running.ask(*said[name], system=system)
            said[name] += [body["choices"][0]["message"]["content"], words(f"{name} {turn}", 40)]


def test_sessions_stay_where_their_prompt_is_cached() -> None:
    with servers(pods(4), toml=ON) as running:
        talk(running, [f"session {place}" for place in range(12)], 4)
        with_layer = hit_rate(running)
        assert all(running.asked())
        caches = [one for server in running.health()["servers"] for one in server["caches"]]
        assert sum(one["calls"] for one in caches) == 48
        assert sum(one["cached_tokens"] for one in caches) == sum(
            row.cached_input_tokens or 0 for row in running.house.log.rows
        )
        for one in caches:
            assert abs(one["expected_tokens"] - one["cached_tokens"]) < 0.2 * one["cached_tokens"]
    assert with_layer > 0.5


def test_the_receipt_says_what_was_expected_and_why() -> None:
    with servers(pods(3), toml=ON) as running:
        opening = words("opening", 300)
        _, first = running.ask(opening, **RECEIPT)
        answer = first["choices"][0]["message"]["content"]
        _, second = running.ask(opening, answer, "Go on.", **RECEIPT)
        (before,) = first["bardo"]["receipt"]["pipeline"]["layers"]
        (after,) = second["bardo"]["receipt"]["pipeline"]["layers"]
        assert before["saw"]["warm_tokens"] == 0
        assert before["saw"]["why"] == "spread"
        assert after["saw"]["chosen"] == before["saw"]["chosen"]
        assert after["saw"]["why"] == "warm"
        assert after["saw"]["warm_tokens"] >= 0.9 * first["usage"]["prompt_tokens"]
        assert "cached" in after["did"]
        assert opening[:20] not in str(after)


def test_a_new_session_goes_where_its_system_prompt_is_cached() -> None:
    with servers(pods(4), toml=ON) as running:
        system = words("system", 2000)
        for place in range(3):
            _, body = running.ask(f"question {place}", system=system, **RECEIPT)
        (layer,) = body["bardo"]["receipt"]["pipeline"]["layers"]
        assert layer["saw"]["why"] == "warm"
        assert sorted(running.asked()) == [0, 0, 0, 3]
        assert body["usage"]["prompt_tokens_details"]["cached_tokens"] > 2000


PRICES = """
[routing]
strategy = "score"
[[prices]]
match = "*"
provider = "{}"
input = {}
cached_input = {}
output = 4.0
"""


def turns_of(running: House, model: str, turns: int, **bardo: object) -> list[str]:
    """Return who answered the turns of one conversation."""
    said = [{"role": "user", "content": words("opening", 400)}]
    answered = []
    for _ in range(turns):
        options: dict[str, Any] = {"intent": {"cost_sensitivity": 1.0}, **bardo}
        body = {"model": model, "messages": said, "bardo": options}
        sent = Request(
            f"{running.address}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urlopen(sent) as reply:
            answered.append(reply.headers["x-bardo-provider"])
            text = json.load(reply)["choices"][0]["message"]["content"]
        said += [{"role": "assistant", "content": text}, {"role": "user", "content": "Go on."}]
    return answered


@pytest.mark.parametrize(("toml", "expected"), [("", "deepseek"), (ON, "openai_chat")])
def test_a_call_by_need_stays_where_its_prompt_is_cached_while_that_costs_less(toml: str, expected: str) -> None:
    prices = PRICES.format("deepseek", 1.0, 1.0) + PRICES.format("openai_chat", 1.2, 0.1).replace(
        '[routing]\nstrategy = "score"\n', ""
    )
    other = Simulator("openai_chat", prefix_cache=PrefixCache())
    failing = Simulator("deepseek", fault=Fault("status", status=503, times=2))
    with house([failing, other], each={"models": ("m",)}, toml=prices + toml) as running:
        answered = turns_of(running, "bardo/auto", 3)
    assert answered[0] == "openai_chat"
    assert answered[1:] == [expected] * 2


def test_a_model_of_two_providers_stays_where_its_prompt_is_cached() -> None:
    prices = "".join(
        PRICES.format(name, 1.0, 0.1).replace('[routing]\nstrategy = "score"\n', "")
        for name in ("deepseek", "openai_chat")
    )
    failing = Simulator("deepseek", fault=Fault("status", status=503, times=2), prefix_cache=PrefixCache())
    other = Simulator("openai_chat", prefix_cache=PrefixCache())
    with house([failing, other], each={"models": ("m",)}, toml=prices + ON) as running:
        assert turns_of(running, "m", 3, intent=None) == ["openai_chat"] * 3


def read_by_turns(prompts: Sequence[str], servers: int) -> float:
    """Return the hit rate of so many servers with caches that forget nothing, where calls take turns; one server: the best there can be."""
    caches = [PrefixCache(1_000_000) for _ in range(servers)]
    read = sum(caches[place % servers].take(prompt) for place, prompt in enumerate(prompts))
    return read / sum(len(prompt) / 4 for prompt in prompts)


def test_skewed_sessions_read_nearly_all_that_can_be_read_also_while_a_server_is_gone() -> None:
    simulators, chance, prompts = pods(3), random.Random(5), []
    systems = [words(f"program {number}", 300 + 200 * number) for number in range(3)]
    with servers(
        simulators, toml=ON + "[health]\nleast_calls = 2\nrest_seconds = 0.001\nmost_rest_seconds = 0.001\n"
    ) as running:
        said: dict[int, list[str]] = {}
        for call in range(150):
            # The first sessions have most turns.
            session = min(int(chance.expovariate(0.15)), 24)
            system, turns = systems[session % 3], said.setdefault(session, [])
            turns.append(words(f"{session} {len(turns)}", 50))
            if call == 60:
                simulators[0].fail(Fault("disconnect"))
            if call == 90:
                simulators[0].fail(None)
                assert simulators[0].prefix_cache is not None
                simulators[0].prefix_cache.clear()
            _, body = running.ask(*turns, system=system)
            turns.append(body["choices"][0]["message"]["content"])
            prompts.append(json.dumps([system, *turns[:-1]]))
        got = hit_rate(running)
        shares = [count / sum(running.asked()) for count in running.asked()]
    best, in_turn = read_by_turns(prompts, 1), read_by_turns(prompts, 3)
    assert got > 0.85 * best
    assert got > 1.1 * in_turn
    assert max(shares) < 0.6


class Counted(Simulator):
    """A server that tells of each call that has come."""

    def __init__(self, arrived: Semaphore) -> None:
        super().__init__("vllm", prefix_cache=PrefixCache(100_000))
        self._arrived = arrived

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        if incoming.method == "POST":
            self._arrived.release()
        yield from super().actions(incoming)


def test_a_hot_system_prompt_does_not_overload_one_server() -> None:
    arrived, system = Semaphore(0), words("system", 2000)
    simulators = [Counted(arrived) for _ in range(3)]
    bound = "[inference.pipeline.affinity]\nload_bound = 1.0\nfree_calls = 2\nbalance = 0.0\n"
    with servers(simulators, toml=ON + bound) as running:
        running.ask("first", system=system)
        assert arrived.acquire(timeout=PATIENCE)
        gates = [one.hold() for one in simulators]
        with ThreadPoolExecutor(9) as threads:
            asked = [threads.submit(running.ask, f"question {number}", system=system) for number in range(9)]
            try:
                assert all(arrived.acquire(timeout=PATIENCE) for _ in range(9))
                report = running.health()
            finally:
                for gate in gates:
                    gate.release()
            for one in asked:
                one.result()
        assert [server["in_flight"] for server in report["servers"]] == [3, 3, 3]
        assert all(server["in_flight"] == 0 for server in running.health()["servers"])


def test_a_session_whose_server_is_gone_goes_elsewhere_and_stays_there() -> None:
    simulators = pods(2)
    with servers(simulators, toml=ON + "[health]\nleast_calls = 2\n") as running:
        said = [words("opening", 300)]
        for turn in range(6):
            if turn == 2:
                home = running.asked().index(2)
                simulators[home].fail(Fault("disconnect"))
            if turn == 4:
                simulators[home].fail(None)
            _, body = running.ask(*said, **RECEIPT)
            said += [body["choices"][0]["message"]["content"], f"turn {turn}"]
            (layer,) = body["bardo"]["receipt"]["pipeline"]["layers"]
        other = running.names[1 - home]
        assert layer["saw"]["chosen"] == f"pods at {other}"
        assert layer["saw"]["why"] == "warm"
        assert body["usage"]["prompt_tokens_details"]["cached_tokens"] > 500


def test_streams_of_openais_library_are_learned_from_too() -> None:
    with servers(pods(3), toml=ON) as running, closing(openai_client(running.house.address)) as client:
        said: list[Any] = [{"role": "user", "content": words("opening", 300)}]
        for _ in range(3):
            text = ""
            for chunk in client.chat.completions.create(model=MODEL, messages=said, stream=True):
                text += chunk.choices[0].delta.content or "" if chunk.choices else ""
            said += [{"role": "assistant", "content": text}, {"role": "user", "content": "Go on."}]
        assert sorted(running.asked()) == [0, 0, 3]
        (cache,) = [one for server in running.health()["servers"] for one in server["caches"]]
        assert cache["calls"] == 3
        assert cache["cached_tokens"] > 0.5 * cache["input_tokens"]
        assert cache["mean_error_tokens"] < 100


def test_a_session_that_a_client_names_stays_at_its_server_whatever_it_says_first() -> None:
    with servers(pods(4), toml=ON) as running:
        for number in range(5):
            running.ask(f"another beginning {number}", bardo={"session": "one"})
        assert sorted(running.asked()) == [0, 0, 0, 5]
