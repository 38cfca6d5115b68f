"""Who takes part in the basket, which of its ways each can go, and how it is asked for them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

import msgspec

from benchmarks import peers
from benchmarks.contestants import FLOOR, KEY, OWN_APP, Contestant, Lane, Place, bare_proxy
from benchmarks.load import Asked, Named
from benchmarks.processes import ROOT

MODELS = {
    "plain": "deepseek-reasoner",
    "signed": "anthropic/claude-haiku-4.5",
    "claude": "claude-haiku-4-5-20251001",
    "gpt": "gpt-5-mini",
    "google": "gemini-2.5-flash",
}
"""The models behind the gateways, by the name of their provider. `plain` and `signed` speak Chat Completions."""
KEYED = "bardo with keys"
_PATHS = {
    "openai_chat": "/v1/chat/completions",
    "anthropic_messages": "/v1/messages",
    "openai_responses": "/v1/responses",
}


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """From which dialect of a client to which of a provider."""

    says: str
    client: str
    provider: str

    @property
    def is_forwarded(self) -> bool:
        """Whether both are the same."""
        return self.client == self.provider


CHAT_CHAT = Way(says="Chat→Chat", client="openai_chat", provider="openai_chat")
MESSAGES_MESSAGES = Way(says="Messages→Messages", client="anthropic_messages", provider="anthropic_messages")
RESPONSES_RESPONSES = Way(says="Responses→Responses", client="openai_responses", provider="openai_responses")
CHAT_MESSAGES = Way(says="Chat→Messages", client="openai_chat", provider="anthropic_messages")
MESSAGES_CHAT = Way(says="Messages→Chat", client="anthropic_messages", provider="openai_chat")
RESPONSES_CHAT = Way(says="Responses→Chat", client="openai_responses", provider="openai_chat")
MESSAGES_GEMINI = Way(says="Messages→Gemini", client="anthropic_messages", provider="gemini")
WAYS = (
    CHAT_CHAT,
    MESSAGES_MESSAGES,
    RESPONSES_RESPONSES,
    CHAT_MESSAGES,
    MESSAGES_CHAT,
    RESPONSES_CHAT,
    MESSAGES_GEMINI,
)


def target_of(way: Way, kind: str) -> str:
    """Return the name in MODELS of who answers."""
    chat = "signed" if kind in ("long", "agent", "typed") else "plain"
    return {"anthropic_messages": "claude", "openai_responses": "gpt", "gemini": "google"}.get(way.provider, chat)


class Participant(msgspec.Struct, frozen=True, kw_only=True):
    """A gateway of the basket: `model` is how it calls a target, `paths` where it takes which dialect, `ways` what it can do at all."""

    contestant: Contestant
    model: Callable[[str], str]
    ways: tuple[Way, ...] = WAYS
    paths: Mapping[str, str] = MappingProxyType(_PATHS)

    @property
    def name(self) -> str:
        """The name of its column."""
        return self.contestant.name

    def asked(self, way: Way, kind: str, number: str, fields: Mapping[str, Any]) -> Asked:
        """Return a request of a client of this way."""
        body = json.dumps({**fields, "model": self.model(target_of(way, kind))})
        own = {"x-api-key": KEY, "anthropic-version": "2023-06-01"}
        headers = own if way.client == "anthropic_messages" else {"authorization": f"Bearer {KEY}"}
        return Asked(path=self.paths[way.client], headers=headers, body=body, named=Named(way.client, kind, number))


_FIRST = Lane(name="forwarded", model="plain/{}")

_PROVIDER = """
[[providers]]
id = "{id}"
preset = "{preset}"
dialect = "{dialect}"
base_url = "{address}"
models = {models}
"""
# Some of these have an endpoint for each dialect, and bardo would ask the client's own.
_PRESETS = {
    "plain": ("deepseek", "openai_chat"),
    "signed": ("openrouter", "openai_chat"),
    "claude": ("anthropic", "anthropic_messages"),
    "gpt": ("openai", "openai_responses"),
    "google": ("gemini", "gemini"),
}
_KEY = """
[[keys]]
id = "team"
key_env = "TEAM_KEY"
models = ["*"]
requests_per_minute = 10000000
tokens_per_minute = 100000000000
concurrency = 1000
usd_per_day = 100000
tags = ["basket"]

[[prices]]
match = "whole"
provider = "plain"
input = 0.5
output = 2.0
"""


def _bardo(place: Place, *, keyed: bool = False, factory: str = "") -> list[str]:
    own = {"google": place.upstream.removesuffix("/v1") + "/v1beta"}
    tables = [
        _PROVIDER.format(
            id=name,
            preset=_PRESETS[name][0],
            dialect=_PRESETS[name][1],
            address=own.get(name, place.upstream),
            # The start asks for a canned reply.
            models=json.dumps([model, "whole"] if name == "plain" else [model]),
        )
        for name, model in MODELS.items()
    ]
    config = place.folder / "bardo.toml"
    log = f'[log]\npath = "{place.folder / "log.db"}"\n'
    config.write_text(log + "".join(tables) + (_KEY if keyed else ""))
    if factory:
        return [place.python, "-c", OWN_APP, factory, str(place.port), str(config)]
    return [place.python, "-m", "bardo", "serve", "--config", str(config), "--port", str(place.port)]


def _litellm(place: Place) -> list[str]:
    root = place.upstream.removesuffix("/v1")
    reached = {
        "plain": ("deepseek/", place.upstream),
        "signed": ("openrouter/", place.upstream),
        "claude": ("anthropic/", root),
        "gpt": ("openai/", place.upstream),
        "google": ("gemini/", f"{root}/v1beta/models/{MODELS['google']}"),
    }
    models: list[dict[str, object]] = [
        {
            "model_name": name,
            "litellm_params": {"model": f"{prefix}{MODELS[name]}", "api_base": address, "api_key": "k"},
        }
        for name, (prefix, address) in reached.items()
    ]
    return peers.litellm(place, models=models)


_TENSORZERO = """
[models.{name}]
routing = ["up"]

[models.{name}.providers.up]
type = "{kind}"
model_name = "{model}"
api_base = "{address}"
api_key_location = "{key}"
"""


def _tensorzero(place: Place) -> list[str]:
    reached = {
        # Of its types with an address, this one reads `reasoning_content`.
        "plain": ("vllm", f"{place.upstream}/", "none"),
        "signed": ("vllm", f"{place.upstream}/", "none"),
        "claude": ("anthropic", f"{place.upstream}/", "env::UPSTREAM_KEY"),
    }
    rows = [
        _TENSORZERO.format(name=name, kind=kind, model=MODELS[name], address=address, key=key)
        for name, (kind, address, key) in reached.items()
    ]
    return peers.tensorzero(place, "".join(rows))


def _peer(name: str, **changed: Any) -> Contestant:
    found = next(peer for peer in peers.PEERS if peer.name == name)
    return msgspec.structs.replace(found, **changed)


def bardo_of(factory: str) -> Participant:
    """Return bardo as in the basket, with another application in the place of its own: `module:function`."""
    contestant = Contestant(
        name="bardo", lanes=(_FIRST,), command=partial(_bardo, factory=factory), environment={"PYTHONPATH": str(ROOT)}
    )
    return Participant(contestant=contestant, model=_with_provider)


def participants() -> tuple[Participant, ...]:
    """Return bardo, bardo with keys, the bare proxy and the peers."""
    bardo = Contestant(name="bardo", lanes=(_FIRST,), command=_bardo)
    keyed = Contestant(name=KEYED, lanes=(_FIRST,), command=partial(_bardo, keyed=True), environment={"TEAM_KEY": KEY})
    return (
        Participant(contestant=bardo, model=_with_provider),
        Participant(contestant=keyed, model=_with_provider),
        Participant(contestant=msgspec.structs.replace(bare_proxy(), name=FLOOR), model=MODELS.__getitem__),
        Participant(
            contestant=_peer("sglang-router"),
            model=MODELS.__getitem__,
            ways=(CHAT_CHAT, RESPONSES_RESPONSES),
        ),
        Participant(contestant=_peer("LiteLLM", command=_litellm), model=str),
        Participant(
            contestant=_peer("TensorZero", command=_tensorzero, environment={"UPSTREAM_KEY": "k"}),
            model="tensorzero::model_name::{}".format,
            ways=(CHAT_CHAT, CHAT_MESSAGES),
            paths={"openai_chat": "/openai/v1/chat/completions"},
        ),
    )


def _with_provider(target: str) -> str:
    return f"{target}/{MODELS[target]}"
