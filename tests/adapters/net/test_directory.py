"""Which providers there are and what each serves: configured, found through keys, asked, or listening on this machine."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec
import pytest

from bardo.adapters.config.settings import ProviderEntry, Settings
from bardo.adapters.net.client import Call, HttpTransport
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import Catalog, builtin
from bardo.services.facts import directory as directories
from bardo.services.facts.directory import ProviderDirectory, with_keys
from bardo.values.errors import ConfigError, UnknownModel, Unreachable
from support.any_model import Simulator


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Lists:
    """Providers that answer with their lists of models; one that has none is out of reach."""

    models: dict[str, list[str]]
    asked: list[str] = field(default_factory=list)
    clock: Clock = field(default_factory=Clock)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    gate: asyncio.Event | None = None

    async def answer(self, call: Call) -> FakeReply:
        self.asked.append(call.provider)
        self.begun.set()
        if self.gate is not None:
            await self.gate.wait()
        if call.provider not in self.models:
            raise Unreachable("nobody there", provider=call.provider)
        body = json.dumps({"object": "list", "data": [{"id": name} for name in self.models[call.provider]]})
        return FakeReply(headers={"content-type": "application/json"}, chunks=[body.encode()])

    def directory(self, *entries: ProviderEntry, environment: Mapping[str, str] | None = None) -> ProviderDirectory:
        transport = FakeTransport(self.answer)
        return ProviderDirectory.of(
            Settings(providers=entries), transport, Keyring(environment or {}), clock=self.clock
        )


def server(id: str, *models: str) -> ProviderEntry:  # noqa: A002
    return ProviderEntry(id=id, preset="vllm", base_url=f"http://{id}/v1", models=models or None)


async def ways(directory: ProviderDirectory, model: str) -> list[str]:
    return [f"{target.provider.id}: {target.model}" for target in await directory.targets(model)]


def run(test: Callable[[], object]) -> None:
    asyncio.run(test())  # type: ignore[arg-type]


def test_a_model_nobody_is_known_to_serve_is_asked_for_once() -> None:
    lists = Lists({"one": ["a"], "two": ["b"]})

    async def ask() -> None:
        directory = lists.directory(server("one"), server("two"))
        assert await ways(directory, "b") == ["two: b"]
        assert await ways(directory, "a") == ["one: a"]
        assert sorted(lists.asked) == ["one", "two"]

    run(ask)


def test_a_name_that_can_be_placed_is_not_asked_for() -> None:
    lists = Lists({})

    async def ask() -> None:
        directory = lists.directory(server("one", "a"), ProviderEntry(id="openai"), environment={"OPENAI_API_KEY": "k"})
        assert await ways(directory, "a") == ["one: a"]
        assert await ways(directory, "one/z") == ["one: z"]
        assert await ways(directory, "gpt-5") == ["openai: gpt-5"]
        assert lists.asked == []

    run(ask)


def test_configured_models_are_believed() -> None:
    lists = Lists({"one": ["a", "b"]})

    async def ask() -> None:
        with pytest.raises(UnknownModel):
            await lists.directory(server("one", "a")).targets("b")
        assert lists.asked == []

    run(ask)


def test_unknown_names_do_not_have_providers_asked_again_and_again() -> None:
    lists = Lists({"one": ["a"]})

    async def ask() -> None:
        directory = lists.directory(server("one"))
        for _ in range(3):
            with pytest.raises(UnknownModel, match="did you mean a"):
                await directory.targets("aa")
        assert lists.asked == ["one"]
        lists.clock.now = 301
        lists.models["one"] = ["a", "aa"]
        assert await ways(directory, "aa") == ["one: aa"]
        assert lists.asked == ["one", "one"]

    run(ask)


def test_a_provider_out_of_reach_leaves_the_others_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    lists = Lists({"two": ["b"]})

    async def ask() -> None:
        directory = lists.directory(server("one"), server("two"))
        assert await ways(directory, "b") == ["two: b"]

    run(ask)
    assert "no model list from one: nobody there" in caplog.text


def test_calls_that_wait_for_the_same_answer_all_get_it() -> None:
    async def ask() -> None:
        gate = asyncio.Event()
        lists = Lists({"one": ["a", "b"]}, gate=gate)
        directory = lists.directory(server("one"))
        waiting = asyncio.gather(ways(directory, "a"), ways(directory, "b"))
        await lists.begun.wait()
        gate.set()
        assert list(await waiting) == [["one: a"], ["one: b"]]
        assert lists.asked == ["one"]

    run(ask)


def listed(body: bytes, status: int = 200) -> list[str]:
    async def ask() -> list[str]:
        reply = FakeReply(status=status, headers={"content-type": "application/json"}, chunks=[body])
        transport = FakeTransport(lambda call: reply)
        directory = ProviderDirectory.of(Settings(providers=(server("one"),)), transport, Keyring({}), clock=Clock())
        (provider,) = await directory.models()
        assert not transport.open_calls
        return list(provider.models)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b'{"data": [{"id": "a"}, {"id": "b", "object": "model"}]}', ["a", "b"]),
        (b'{"models": [{"name": "models/gemini-x"}, {"name": "tuned"}]}', ["gemini-x", "tuned"]),
        (b'{"data": [{"id": "models/gemini-x", "owned_by": "google"}]}', ["gemini-x"]),
        (
            b'{"data": [{"id": "models/qwen.gguf", "owned_by": "vllm"}, {"id": "m", "owned_by": 3}]}',
            ["models/qwen.gguf", "m"],
        ),
        (b'{"data": []}', []),
        (b'{"data": [{"id": ""}, {}]}', []),
        (b'{"data": 5}', []),
        (b'{"object": "list"}', []),
        (b"[]", []),
        (b"<html>", []),
        (b"[" * 100_000, []),
        (b"", []),
    ],
)
def test_a_list_is_read_in_either_form_and_nonsense_is_no_list(body: bytes, expected: list[str]) -> None:
    assert listed(body) == expected


@pytest.mark.parametrize("status", [302, 401, 404, 500])
def test_a_refused_list_is_no_list(status: int) -> None:
    assert listed(b'{"data": [{"id": "a"}]}', status) == []


def test_without_configuration_keys_decide() -> None:
    keyring = Keyring({"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "VLLM_API_KEY": "k", "XAI_API_KEY": " "})
    providers = with_keys(keyring)
    # One for each address: OpenAI speaks two dialects at one.
    assert [provider.id for provider in providers] == ["openai", "anthropic"]
    assert providers[0].row.dialect == "openai_responses"


def test_without_keys_there_is_nobody() -> None:
    async def ask() -> None:
        with pytest.raises(UnknownModel, match="set a provider's key in the environment"):
            await Lists({}).directory().targets("gpt-5")

    run(ask)


def test_a_key_for_a_gateway_makes_no_gateway_a_provider() -> None:
    """Else each gateway that is started with it would ask itself."""
    assert with_keys(Keyring({"BARDO_API_KEY": "k", "BARDO_KEY": "k"})) == []


def test_every_key_variable_of_the_catalog_finds_its_provider() -> None:
    for row in builtin().providers:
        if row.base_url and row.key_variables and not row.local and row.auth != "none":
            found = with_keys(Keyring(dict.fromkeys(row.key_variables, "k")))
            assert any(provider.base_url == row.base_url for provider in found)


def test_a_configuration_that_makes_no_sense_is_an_error() -> None:
    with pytest.raises(ConfigError, match="no preset is called 'vlm'"):
        Lists({}).directory(ProviderEntry(id="x", preset="vlm"))


def test_servers_on_this_machine_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two servers run: one answers where its row says, the other's port is closed."""

    async def ask(addresses: Mapping[str, str]) -> None:
        rows = [
            msgspec.structs.replace(row, base_url=addresses[row.id], port=1)
            for row in builtin().local()
            if row.id in addresses
        ]
        monkeypatch.setattr(directories, "builtin", lambda: Catalog(rows))
        transport = HttpTransport()
        try:
            directory = ProviderDirectory((), transport, Keyring({}), clock=Clock())
            added = await directory.add_local()
            assert [provider.id for provider in added] == ["vllm"]
            assert directory.providers == added
            model = added[0].models[0]
            assert await ways(directory, model) == [f"vllm: {model}"]
            assert await directory.add_local() == []
        finally:
            await transport.close()

    with Simulator("ollama").running() as closed:
        pass
    with Simulator("vllm").running() as running:
        asyncio.run(ask({"vllm": running.base_url, "ollama": closed.base_url}))


def test_a_stranger_on_a_usual_port_is_left_alone(caplog: pytest.LogCaptureFixture) -> None:
    async def ask() -> list[str]:
        page = FakeReply(headers={"content-type": "text/html"}, chunks=[b"<html>"])
        directory = ProviderDirectory((), FakeTransport(lambda call: page), Keyring({}), clock=Clock())
        return [provider.id for provider in await directory.add_local()]

    assert asyncio.run(ask()) == []
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        (
            FakeReply(status=401, headers={"content-type": "application/json"}),
            "one: it refuses the key, with status 401",
        ),
        (
            FakeReply(status=403, headers={"content-type": "application/json"}),
            "one: it refuses the key, with status 403",
        ),
        (FakeReply(status=500), "one: its model list answered with status 500"),
        (FakeReply(chunks=[b"<html>"]), "one: its model list is not one"),
        (Unreachable("one refuses connections", provider="one"), "one: one refuses connections"),
    ],
    ids=["a wrong key", "a key without the right", "a broken server", "a page", "a dead server"],
)
def test_a_name_that_nobody_lists_comes_with_why_a_list_is_missing(reply: FakeReply | Unreachable, why: str) -> None:
    def answer(call: Call) -> FakeReply:
        if isinstance(reply, Unreachable):
            raise reply
        return reply

    async def ask() -> None:
        directory = ProviderDirectory.of(
            Settings(providers=(server("one"),)), FakeTransport(answer), Keyring({}), clock=Clock()
        )
        for _ in range(2):
            with pytest.raises(
                UnknownModel, match=r"no provider here serves 'x'.*there is no list of models of"
            ) as caught:
                await directory.targets("x")
            assert why in caught.value.message

    run(ask)


def test_a_missing_key_is_why_a_list_is_missing() -> None:
    async def ask() -> None:
        with pytest.raises(UnknownModel, match="groq: no key for groq"):
            await Lists({}).directory(ProviderEntry(id="groq")).targets("x")

    run(ask)


def test_only_some_of_many_missing_lists_are_told() -> None:
    async def ask() -> None:
        entries = [server(f"s{number}") for number in range(30)]
        with pytest.raises(UnknownModel, match="and 25 more") as caught:
            await Lists({}).directory(*entries).targets("x")
        assert len(str(caught.value)) < 2000

    run(ask)


def test_a_list_that_came_in_the_end_is_no_longer_missing() -> None:
    lists = Lists({})

    async def ask() -> None:
        directory = lists.directory(server("one"))
        with pytest.raises(UnknownModel, match="nobody there"):
            await directory.targets("x")
        lists.models["one"] = ["a"]
        lists.clock.now = 301
        with pytest.raises(UnknownModel) as caught:
            await directory.targets("x")
        assert "list" not in caught.value.message

    run(ask)


def test_where_a_name_leads_is_found_anew_once_more_is_known() -> None:
    lists = Lists({"one": ["a", "c:high"], "two": []})

    async def ask() -> None:
        directory = lists.directory(server("one"), server("two", "a", "c"))
        assert (await ways(directory, "a"), directory.meaning_of("c:high").model) == (["two: a"], "c")
        (await directory.targets("a")).clear()
        assert await ways(directory, "a") == ["two: a"]
        await directory.discover()
        assert (await ways(directory, "a"), directory.meaning_of("c:high").model) == (["one: a", "two: a"], "c:high")

    run(ask)


def test_the_names_that_are_kept_are_bounded() -> None:
    lists = Lists({})

    async def ask() -> None:
        directory = lists.directory(server("one", "a"))
        for number in range(directories._MOST_NAMES + 5):
            await directory.targets(f"one/{number}")
        assert len(directory._names) <= directories._MOST_NAMES
        assert len(directory._resolved) <= directories._MOST_NAMES
        with pytest.raises(UnknownModel):
            await directory.targets("unknown")
        assert "unknown" not in directory._resolved

    run(ask)


def test_what_a_name_with_thinking_behind_it_means_is_asked_of_who_may_list_it() -> None:
    for listed, meant in (("m", "m"), ("m-thinking", "m-thinking")):
        lists = Lists({"lab": [listed]})

        async def play(lists: Lists = lists) -> tuple[str, bool, list[str]]:
            directory = lists.directory(server("lab"))
            found = await directory.listed_meaning_of("m-thinking")
            await directory.listed_meaning_of("m-thinking")
            return found.model, found.thinks, [target.model for target in await directory.targets("m-thinking")]

        assert asyncio.run(play()) == (meant, meant == "m", [meant])
        assert lists.asked == ["lab"]


def test_no_list_is_asked_for_where_a_name_says_what_it_means() -> None:
    lists = Lists({"lab": ["m"]})
    assert asyncio.run(lists.directory(server("lab")).listed_meaning_of("m:high")).suffix == "high"
    assert lists.asked == []
