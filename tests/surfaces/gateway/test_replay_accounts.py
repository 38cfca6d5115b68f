"""A conversation that moves between two accounts of one provider: what one signed reaches no other, and a refusal of it is mended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Fault, Incoming, Script, ToolCall, Turn
from bardo.simulators.exchange import Refusal
from support.gateway import KEY_VARIABLE, SECRET, House, Remembering, entry, house
from support.patience import PATIENCE
from surfaces.gateway.looping_clients import Client, Drops, open_client
from surfaces.gateway.replay_loops import CITIES, received_in
from surfaces.gateway.test_sdk_tool_loops import sealed_in

OTHER_VARIABLE = "BARDO_TEST_OTHER_KEY"
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "bedrock": "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
    "gemini": "gemini-3-flash-preview",
    "openai_responses": "gpt-5",
    "openrouter": "anthropic/claude-sonnet-4.5",
    "vertex_anthropic": "claude-sonnet-4-5@20250929",
    "xai": "grok-4.3",
}
WORDS = {
    "anthropic": "messages.{place}.content.0: Invalid `signature` in `thinking` block",
    "bedrock": "The model returned the following errors: messages.{place}.content.0: Invalid `signature` in `thinking` block",
    "gemini": "Corrupted thought signature.",
    "openai_responses": "The encrypted content {begin}...{end} could not be verified. Reason: Encrypted content could not be decrypted.",
    "openrouter": "messages.{place}.content.0: Invalid signature in thinking block",
    "vertex_anthropic": "messages.{place}.content.0: Invalid `signature` in `thinking` block",
    "xai": "Could not decrypt the provided encrypted_content. Ensure the value is the unmodified encrypted_content.",
}
CARRYING = {("messages", "anthropic"), ("responses", "openai_responses"), ("gemini", "gemini"), ("chat", "openrouter")}
"""Clients that carry the state of a provider of their own dialect."""
each_provider = pytest.mark.parametrize("provider", list(MODELS))
each_client = pytest.mark.parametrize("dialect", ["chat", "messages", "responses", "gemini"])
each_way = pytest.mark.parametrize("drops", ["nothing", "thinking"])


def script(whose: str) -> Script:
    calls = (
        Turn(reasoning=f"The {whose} account looks up {city}.", tool_calls=(ToolCall("weather", {"city": city}),))
        for city in CITIES
    )
    return Script((*calls, Turn(reasoning=f"The {whose} account knows all.", text="Oslo is the coldest.")))


class Account(Remembering):
    """One account of a provider: it refuses state that it did not make, in the provider's words."""

    def __init__(self, preset: str, whose: str) -> None:
        super().__init__(preset, script=script(whose))
        self.refused = 0
        self.same: list[Account] = []
        """Servers of the same account."""

    def asked(self) -> list[bytes]:
        """Return the requests that asked its model; a list of models may be asked for at any time."""
        return [incoming.raw for incoming in self.requests if incoming.method == "POST"]

    def made(self) -> set[str]:
        """Return all state that this account has sent."""
        return {state for one in (self, *self.same) for body in one.sent for state in sealed_in(bytes(body))}

    def _answer(self, provider: Any, incoming: Incoming) -> Any:
        foreign = [state for state in received_in(incoming.raw) if state not in self.made()]
        if foreign:
            self.refused += 1
            name = self.provider.name
            words = WORDS[name].format(place=_place(incoming, foreign[0]), begin=foreign[0][:4], end=foreign[0][-4:])
            raise Refusal("bad_ciphertext" if name == "openai_responses" else "bad_value", words)
        return super()._answer(provider, incoming)


def _place(incoming: Incoming, state: str) -> int:
    messages = incoming.fields.get("messages")
    listed = messages if isinstance(messages, list) else []
    return next((place for place, one in enumerate(listed) if state in str(one)), 0)


@contextmanager
def two_accounts(
    preset: str, *, keeps: bool = True, named: str = "", other_key: bool = True, model: str = ""
) -> Iterator[tuple[House, Account, Account]]:
    """Run a gateway over two accounts of a provider, called `one` and `two`; `named`: the operator says that they are this one account.

    With one key for both they are two entries of the same account. Both are known to serve `model`.
    """
    one, two = Account(preset, "first"), Account(preset, "second")
    keeper = ReplayKeeper(MemoryStore() if keeps else None)
    variables = {KEY_VARIABLE: SECRET, OTHER_VARIABLE: f"{SECRET}-of-another"}
    with one.running() as first, two.running() as second:
        account = {**({"account": named} if named else {}), **({"models": (model,)} if model else {})}
        if not other_key:
            one.same, two.same = [two], [one]
        entries = (
            entry(one, first.base_url, **account | {"id": "one", "api_key_env": KEY_VARIABLE}),
            entry(
                two,
                second.base_url,
                **account | {"id": "two", "api_key_env": OTHER_VARIABLE if other_key else KEY_VARIABLE},
            ),
        )
        with house(before=entries, environment=variables, replay=keeper) as running:
            yield running, one, two
    keeper.close()


def step(running: House, client: Client, drops: Drops) -> str:
    """Ask once, keep of the reply what the client keeps, and return what it was told of losses."""
    answer = httpx.post(running.address + client.path, json=client.ask(client.history), timeout=PATIENCE)
    assert answer.status_code == 200, answer.text
    client.take(answer.json(), client.history, drops)
    return str(answer.headers.get("x-bardo-degraded", ""))


def moved(client: Client, dialect: str, model: str) -> Client:
    """Return the client with its history, which asks another model from now on."""
    other = open_client(dialect, model)
    other.history[:] = client.history
    return other


@pytest.mark.sampled(6)
@each_provider
@each_client
@each_way
def test_another_account_gets_nothing_that_this_one_signed(provider: str, dialect: str, drops: Drops) -> None:
    model = MODELS[provider]
    with two_accounts(provider) as (running, one, two):
        client = open_client(dialect, f"one/{model}")
        step(running, client, drops)
        client = moved(client, dialect, f"two/{model}")
        told = step(running, client, drops)
        signed = bool(sealed_in(bytes(one.sent[0])))
        assert two.refused == 0
        assert "reasoning" in told or "signature" in told.lower() or not signed, told
        # Back where it began, the first has its own again.
        client = moved(client, dialect, f"one/{model}")
        step(running, client, drops)
        assert one.refused == 0
        assert set(received_in(one.asked()[-1])) <= one.made()
        # A Chat client is answered at xAI's Chat endpoint, whose thinking has no state.
        assert bool(received_in(one.asked()[-1])) == signed


@pytest.mark.sampled(6)
@each_provider
@each_client
@each_way
@pytest.mark.parametrize("keeps", [True, False], ids=["recalled", "carried"])
def test_a_refusal_of_earlier_state_is_mended_in_the_same_call(
    provider: str, dialect: str, drops: Drops, keeps: bool
) -> None:
    """The operator says that two accounts are one, or nobody can know: the provider refuses, and is asked again without."""
    model = MODELS[provider]
    with two_accounts(provider, keeps=keeps, named="ours") as (running, one, two):
        client = open_client(dialect, f"one/{model}")
        step(running, client, drops)
        told = step(running, moved(client, dialect, f"two/{model}"), drops)
        signed = bool(sealed_in(bytes(one.sent[0])))
        carried = drops == "nothing" and (dialect, provider) in CARRYING
        if signed and (keeps or carried):
            assert two.refused == 1
        assert not received_in(two.asked()[-1])
        requests = len(two.asked())
        # What was refused once is not sent again, and its loss is told again.
        again = step(running, moved(client, dialect, f"two/{model}"), drops)
        assert two.refused <= 1
        if signed and (keeps or carried):
            assert len(two.asked()) == requests + 1
        assert "reasoning" in again or "signature" in again.lower() or not signed, again
        assert "reasoning" in told or "signature" in told.lower() or not signed, told


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses"])
def test_failover_to_another_entry_of_the_same_account_takes_the_thinking_along(provider: str) -> None:
    model = MODELS[provider]
    with two_accounts(provider, other_key=False, model=model) as (running, one, two):
        client = open_client("chat", model)
        step(running, client, "thinking")
        one.fail(Fault("status", status=503))
        told = step(running, client, "thinking")
        assert set(sealed_in(bytes(one.sent[0]))) <= set(received_in(two.asked()[-1]))
        assert "reasoning" not in told


@pytest.mark.parametrize("provider", ["anthropic", "gemini", "openai_responses"])
def test_failover_to_another_account_goes_on_without_it(provider: str) -> None:
    model = MODELS[provider]
    with two_accounts(provider, model=model) as (running, one, two):
        client = open_client("chat", model)
        step(running, client, "thinking")
        one.fail(Fault("status", status=503))
        told = step(running, client, "thinking")
        assert two.refused == 0
        assert "reasoning" in told


def test_readable_thinking_has_no_account() -> None:
    with two_accounts("deepseek", model="deepseek-v4-pro") as (running, one, two):
        client = open_client("chat", "deepseek-v4-pro")
        step(running, client, "thinking")
        one.fail(Fault("status", status=503))
        told = step(running, client, "thinking")
        assert b"The first account looks up Paris." in two.asked()[-1]
        assert "reasoning" not in told
