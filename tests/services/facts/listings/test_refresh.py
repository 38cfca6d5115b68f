"""Refreshing: each provider by itself, nothing hostile taken over, and the last good list wherever one cannot be had."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.planning.knowledge import candidate_of
from bardo.planning.route import Provider, Target
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.listings import CatalogRefresh, HourlyRefresh, Listing, Listings, ListingStore, Outcome
from bardo.services.facts.model_facts import ModelFacts
from bardo.values.errors import Unreachable

KEYS = {"VENICE_API_KEY": "vk-secret", "ANTHROPIC_API_KEY": "ak-secret"}


def provider(preset: str, **changes: Any) -> Provider:
    row = builtin().provider(preset)
    assert row is not None
    return Provider(**{"id": preset, "row": row, "base_url": row.base_url, **changes})


def openrouter(price: str = "0.000001", size: int = 12) -> bytes:
    rows = [{"id": f"maker/m{place}", "pricing": {"prompt": price, "completion": price}} for place in range(size)]
    return json.dumps({"data": rows}).encode()


def venice(**specification: Any) -> bytes:
    return json.dumps({"data": [{"id": "qwen", "type": "text", "model_spec": specification}]}).encode()


class Desk:
    """Providers that answer what they are told to, and the refreshing that asks them."""

    def __init__(self, folder: Path, **answers: bytes | int | Exception) -> None:
        self.answers = answers
        self.now = 1_790_000_000.0
        self.transport = FakeTransport(self._answer)
        self.listings = Listings(ListingStore(folder))
        self.refresh = CatalogRefresh(self.listings, self.transport, Keyring(KEYS), clock=lambda: self.now)

    def _answer(self, call: Call) -> FakeReply:
        given = self.answers[call.provider]
        if isinstance(given, Exception):
            raise given
        if isinstance(given, int):
            return FakeReply(status=given, headers={"location": "http://169.254.169.254/"}, chunks=[b"no"])
        return FakeReply(chunks=[given])

    def run(self, *presets: str, **how: bool) -> list[Outcome]:
        return asyncio.run(self.refresh.refresh([provider(name) for name in presets], **how))

    def hourly(self, *presets: str) -> HourlyRefresh:
        found: Sequence[Provider] = [provider(name) for name in presets]
        return HourlyRefresh(self.refresh, self.listings, lambda: found, seconds=3600, clock=lambda: self.now)


def test_a_list_is_taken_over_and_kept(tmp_path: Path) -> None:
    desk = Desk(tmp_path, openrouter=openrouter(), venice=venice(pricing={"input": {"usd": 1}}))
    first, second = desk.run("openrouter", "venice")
    assert (first.problem, second.problem) == ("", "")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["openrouter.json", "venice.json"]
    again = Listings(ListingStore(tmp_path))
    kept = again.of(provider("venice"))
    assert kept is not None
    assert (kept.source, kept.at) == ("venice", desk.now)
    assert again.model(provider("openrouter"), "maker/m3") is not None


def test_keys_go_to_their_own_provider_and_a_public_list_needs_none(tmp_path: Path) -> None:
    desk = Desk(tmp_path, openrouter=openrouter(), venice=venice(), anthropic=b'{"data": [{"id": "claude-x"}]}')
    desk.run("openrouter", "venice", "anthropic")
    headers = {call.provider: call.headers for call in desk.transport.calls}
    assert "authorization" not in headers["openrouter"]
    assert headers["venice"]["authorization"] == "Bearer vk-secret"
    assert headers["anthropic"]["x-api-key"] == "ak-secret"
    assert not any("secret" in file.read_text() for file in tmp_path.iterdir())


def test_a_list_that_needs_a_key_that_is_not_set_says_so(tmp_path: Path) -> None:
    (found,) = Desk(tmp_path).run("openai")
    assert "no key for openai" in found.problem
    assert not found.refused


def test_one_provider_that_fails_leaves_the_others(tmp_path: Path) -> None:
    desk = Desk(tmp_path, openrouter=Unreachable("no route", provider="openrouter"), venice=venice())
    failed, good = desk.run("openrouter", "venice")
    assert failed.problem == "no route"
    assert failed.listing is None
    assert good.listing is not None


@pytest.mark.parametrize("status", [301, 302, 307, 401, 404, 429, 500])
def test_a_status_changes_nothing_and_a_redirect_is_not_followed(status: int, tmp_path: Path) -> None:
    desk = Desk(tmp_path, openrouter=openrouter())
    desk.run("openrouter")
    desk.answers["openrouter"] = status
    (found,) = desk.run("openrouter")
    assert f"status {status}" in found.problem
    assert len(desk.transport.calls) == 2
    kept = desk.listings.of(provider("openrouter"))
    assert kept is not None
    assert len(kept.models) == 12


HOSTILE = {
    "empty": b'{"data": []}',
    "emptied": openrouter(size=5),
    "a hundred times dearer": openrouter("0.0001"),
    "all free": openrouter("0"),
    "no numbers": openrouter("NaN"),
    "below zero": openrouter("-1"),
    "too long": b" " * (9 * 1024 * 1024),
    "nested": b"[" * 1_000_000,
    "no JSON": b"<html>",
}


@pytest.mark.parametrize("body", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_list_changes_nothing(body: bytes, tmp_path: Path) -> None:
    desk = Desk(tmp_path, openrouter=openrouter())
    desk.run("openrouter")
    before = (tmp_path / "openrouter.json").read_bytes()
    desk.answers["openrouter"] = body
    (found,) = desk.run("openrouter")
    assert found.problem
    assert (tmp_path / "openrouter.json").read_bytes() == before
    assert Listings(ListingStore(tmp_path)).of(provider("openrouter")) == desk.listings.of(provider("openrouter"))


def test_an_operator_may_accept_what_looks_wrong_and_compare_before(tmp_path: Path) -> None:
    desk = Desk(tmp_path, openrouter=openrouter())
    desk.run("openrouter")
    desk.answers["openrouter"] = openrouter("0.0001")
    (dry,) = desk.run("openrouter", dry=True, accept=True)
    assert dry.listing is not None
    assert desk.listings.of(provider("openrouter")) == dry.before
    (taken,) = desk.run("openrouter", accept=True)
    assert desk.listings.of(provider("openrouter")) == taken.listing


def test_a_list_is_refreshed_when_it_is_old_and_once_among_processes(tmp_path: Path) -> None:
    one = Desk(tmp_path, venice=venice())
    other = Desk(tmp_path, venice=venice())
    assert len(asyncio.run(one.hourly("venice").refresh_due())) == 1
    assert asyncio.run(other.hourly("venice").refresh_due()) == []
    one.now = other.now = one.now + 3700
    assert len(asyncio.run(other.hourly("venice").refresh_due())) == 1
    assert asyncio.run(one.hourly("venice").refresh_due()) == []
    assert one.listings.of(provider("venice")) == other.listings.of(provider("venice"))
    assert len(one.transport.calls) == len(other.transport.calls) == 1


def test_a_list_from_the_future_is_refreshed(tmp_path: Path) -> None:
    desk = Desk(tmp_path, venice=venice())
    desk.now += 10 * 86_400
    desk.run("venice")
    desk.now -= 10 * 86_400
    asyncio.run(desk.hourly("venice").refresh_due())
    found = Listings(ListingStore(tmp_path)).of(provider("venice"))
    assert found is not None
    assert found.at == desk.now


def test_no_network_is_noted_once_and_a_hostile_list_is_warned_of(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(tmp_path, venice=Unreachable("no route", provider="venice"), openrouter=openrouter())
    hourly = desk.hourly("venice", "openrouter")

    def records() -> list[tuple[int, str]]:
        desk.now += 3700
        caplog.clear()
        with caplog.at_level(logging.INFO, logger="bardo.catalog"):
            asyncio.run(hourly.refresh_due())
        return [(record.levelno, record.getMessage()) for record in caplog.records]

    ((level, said),) = records()
    assert level == logging.INFO
    assert "no route" in said
    assert records() == []
    desk.answers["openrouter"] = b'{"data": []}'
    ((level, said),) = records()
    assert level == logging.WARNING
    assert "openrouter is not taken over: it lists no model" in said


def test_the_background_task_starts_later_goes_on_after_a_mistake_and_ends(tmp_path: Path) -> None:
    desk = Desk(tmp_path, venice=venice())
    slept: list[float] = []

    async def scenario() -> None:
        rested = asyncio.Event()

        async def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) == 3:
                rested.set()
                await asyncio.Event().wait()

        def providers() -> Sequence[Provider]:
            if len(slept) == 1:
                raise ValueError("a mistake")
            return [provider("venice")]

        hourly = HourlyRefresh(
            desk.refresh, desk.listings, providers, seconds=3600, clock=lambda: desk.now, sleep=sleep
        )
        hourly.start()
        await rested.wait()
        await hourly.close()
        await hourly.close()

    asyncio.run(scenario())
    assert slept[0] >= 30
    assert slept[1] >= 3600
    assert len(desk.transport.calls) == 1


def test_nothing_runs_where_the_hours_are_none(tmp_path: Path) -> None:
    async def scenario() -> None:
        before = asyncio.all_tasks()
        off = HourlyRefresh(Desk(tmp_path).refresh, Listings(), list, seconds=0)
        off.start()
        assert asyncio.all_tasks() == before
        await off.close()

    asyncio.run(scenario())


def kept(desk: Desk, body: bytes) -> None:
    desk.answers["venice"] = body
    desk.run("venice")


def test_calls_draw_on_a_kept_list_between_the_server_and_the_catalog(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    facts, target = ModelFacts(listings=desk.listings), Target(provider=provider("venice"), model="qwen")
    before = facts.of(target)
    assert before.known.layers.get("control") != "listing"
    assert facts.of(target) is before
    revision = facts.revision(target.provider)
    kept(desk, venice(privacy="anonymized", capabilities={"supportsReasoning": False, "supportsVision": True}))
    after = facts.of(target)
    assert after.known.layers["control"] == "listing"
    assert after.known.control == ("none",)
    assert facts.of(target) is after
    assert facts.revision(target.provider) > revision
    assert {"vision"} <= candidate_of(target, after).features
    assert "privacy" not in candidate_of(target, after).features


def test_the_models_of_a_kept_list_can_be_asked_while_the_provider_does_not_answer(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    kept(desk, venice())
    desk.answers["venice"] = Unreachable("no route", provider="venice")

    async def names(listings: Listings | None) -> list[tuple[str, ...]]:
        directory = ProviderDirectory(
            [provider("venice")], desk.transport, Keyring(KEYS), clock=lambda: 1.0, listings=listings
        )
        return [one.models for one in await directory.models()]

    assert asyncio.run(names(None)) == [()]
    assert asyncio.run(names(desk.listings)) == [("qwen",)]


def test_whoever_asked_to_be_told_is_told_of_every_list(tmp_path: Path) -> None:
    desk = Desk(tmp_path, venice=venice(), openrouter=openrouter())
    desk.run("venice")
    told: list[tuple[str, Listing]] = []
    desk.listings.on_change(lambda at, listing: told.append((at.id, listing)), [provider("venice"), provider("groq")])
    assert [name for name, _ in told] == ["venice"]
    desk.run("openrouter")
    assert [name for name, _ in told] == ["venice", "openrouter"]
