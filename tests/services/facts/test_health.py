"""The order in which targets are asked, what is said of those passed over, and what attempts and pings tell."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Sequence

import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.client import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.planning.route import Provider, Target
from bardo.routing.circuit import AttemptOutcome
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.health import AttemptWatch, HealthKeeper
from bardo.services.facts.health_sharing import HealthPings
from bardo.values.errors import BardoError, ConfigError, Unreachable, UpstreamRefused
from support.patience import PATIENCE

SERVER = AttemptOutcome(error="server")
LIMITED = AttemptOutcome(error="rate_limited", rest_seconds=10.0)


def target(name: str, model: str = "m") -> Target:
    row = builtin().provider("openai")
    assert row is not None
    return Target(provider=Provider(id=name, row=row, base_url="http://x"), model=model)


A, B, C = target("a"), target("b"), target("c")


class Context:
    """The parts of a call's surroundings that health looks at, with a clock that is set."""

    def __init__(self) -> None:
        self.health = HealthKeeper()
        self.now = 0.0
        self.watch: Callable[[], float] = lambda: self.now


def order(health: HealthKeeper, now: float = 0.0, targets: Sequence[Target] = (A, B, C)) -> str:
    return "".join(one.provider.id for one in health.ordered(targets, now)[0])


def fail(health: HealthKeeper, *targets: Target, outcome: AttemptOutcome = SERVER, now: float = 0.0) -> None:
    for one in targets:
        for _ in range(5):
            health.note(one.provider.id, one.model, outcome, now)


def test_targets_that_are_well_are_not_even_copied() -> None:
    targets = (A, B, C)
    assert HealthKeeper().ordered(targets, 0.0) == (targets, ())
    assert HealthKeeper().ordered(targets, 0.0)[0] is targets


def test_targets_that_are_down_come_last_and_none_is_left_out() -> None:
    health = HealthKeeper()
    fail(health, A)
    targets, passed_over = health.ordered((A, B, C), 1.0)
    assert "".join(one.provider.id for one in targets) == "bca"
    (told,) = passed_over
    assert (told.what, told.asked, told.sent) == ("provider", "a", "b")
    assert told.why == "a/m is down: 5 of 5 calls failed (server), and is tried again in 14 s"


def test_a_target_behind_the_one_that_is_asked_is_not_reported() -> None:
    health = HealthKeeper()
    fail(health, C)
    assert health.ordered((A, B, C), 1.0)[1] == ()


def test_where_all_are_down_or_wait_the_first_to_come_back_is_asked_first() -> None:
    health = HealthKeeper()
    fail(health, A)
    fail(health, C, now=2.0)
    health.note("b", "m", LIMITED, 3.0)
    assert order(health, 5.0) == "bac"
    assert order(health, 14.0) == "bac", "a rest that is over is none"


def test_one_call_tries_a_target_that_is_due_and_the_next_passes_it_over() -> None:
    health = HealthKeeper()
    fail(health, A)
    assert [order(health, 16.0) for _ in range(3)] == ["abc", "bca", "bca"]
    health.note("a", "m", AttemptOutcome(seconds=1.0), 17.0)
    assert order(health, 17.0) == "abc"


def test_a_target_that_is_due_and_would_not_be_first_is_not_claimed() -> None:
    health = HealthKeeper()
    fail(health, B)
    assert order(health, 16.0) == "acb"
    assert health.may_try("b", "m", 16.0)


def test_a_target_that_goes_down_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    health = HealthKeeper()
    for _ in range(10):
        health.note("a", "m", SERVER, 0.0)
        health.note("b", "", AttemptOutcome(error="connection"), 0.0)
    assert [record.getMessage() for record in caplog.records] == [
        "a/m is down: calls to it fail (server)",
        "b is down: calls to it fail (connection)",
    ]


def attempt(context: Context, problem: BaseException | None, *, of_model: bool = True) -> None:
    expected = contextlib.nullcontext() if problem is None else pytest.raises(type(problem))
    with expected, AttemptWatch(context.health, context.watch, A, of_model=of_model) as watch:
        context.now += 1.0
        if problem is not None:
            raise problem
        watch.ended(None)


def counts(context: Context) -> tuple[int, int]:
    circuit = context.health.store.circuit("a", "m", context.now)
    return (0, 0) if circuit is None else (circuit.window.calls, circuit.window.failed)


def test_an_attempt_is_noted_once_as_it_ended() -> None:
    context = Context()
    attempt(context, None)
    attempt(context, UpstreamRefused("no", status=500))
    assert counts(context) == (2, 1)
    watch = AttemptWatch(context.health, context.watch, A)
    for _ in range(3):
        watch.ended(None)
        watch.left()
    assert counts(context) == (3, 1)


@pytest.mark.parametrize("gone", [asyncio.CancelledError(), KeyboardInterrupt(), ValueError("ours")])
def test_an_attempt_that_nobody_waits_for_is_no_fault(gone: BaseException) -> None:
    context = Context()
    for _ in range(10):
        attempt(context, gone)
    assert counts(context) == (0, 0)


def test_a_client_that_leaves_lets_another_call_try() -> None:
    context = Context()
    fail(context.health, A)
    context.now = 20.0
    assert context.health.may_try("a", "m", 20.0)
    attempt(context, asyncio.CancelledError())
    assert context.health.may_try("a", "m", context.now)


def test_a_client_that_leaves_a_reply_that_had_begun_was_answered() -> None:
    context = Context()
    watch = AttemptWatch(context.health, context.watch, A)
    watch.began()
    watch.left()
    assert counts(context) == (1, 0)


def test_the_time_to_the_first_token_of_a_reply_is_learned() -> None:
    context = Context()
    for _ in range(10):
        watch = AttemptWatch(context.health, context.watch, A)
        context.now += 0.25
        watch.began()
        context.now += 1.0
        watch.ended(None)
    assert context.health.latency("a", "m").first_token_p50_ms == 250


def test_a_prompt_that_is_refused_for_its_content_puts_no_key_to_rest() -> None:
    context = Context()
    flagged = UpstreamRefused("Your input was flagged", status=403, detail={"metadata": {"reasons": ["violence"]}})
    for _ in range(5):
        attempt(context, flagged)
    assert context.health.rest_until("a", "m", context.watch()) is None
    for _ in range(3):
        attempt(context, UpstreamRefused("forbidden", status=403))
    assert context.health.rest_until("a", "m", context.watch()) is not None


def test_counts_of_tokens_tell_of_the_connection_alone() -> None:
    context = Context()
    for _ in range(10):
        attempt(context, UpstreamRefused("no", status=500), of_model=False)
    assert counts(context) == (0, 0)
    for _ in range(10):
        attempt(context, Unreachable("gone"), of_model=False)
    assert context.health.state("a", "m", context.now) == "down"


class Servers:
    """A transport whose providers list models, or are not there, by their ids."""

    def __init__(self, **problems: BardoError | int) -> None:
        self.problems = problems
        self.asked: list[str] = []
        self.all_asked = asyncio.Event()

    def __call__(self, call: Call) -> FakeReply:
        self.asked.append(call.provider)
        if len(self.asked) == 3:
            self.all_asked.set()
        assert call.method == "GET"
        problem = self.problems.get(call.provider, 200)
        if isinstance(problem, BardoError):
            raise problem
        return FakeReply(status=problem, chunks=[b'{"data": [{"id": "m"}]}'])


def pings(servers: Servers, *, row: str = "openai") -> tuple[HealthPings, HealthKeeper]:
    text = "".join(f'[[providers]]\nid = "{name}"\npreset = "{row}"\n' for name in ("there", "gone", "locked"))
    transport, keyring, health = (
        FakeTransport(servers),
        Keyring({"OPENAI_API_KEY": "k", "WATSONX_API_KEY": "k"}),
        HealthKeeper(),
    )
    directory = ProviderDirectory.of(parse_settings(text), transport, keyring, clock=lambda: 0.0)
    return HealthPings(directory, transport, keyring, health, seconds=30.0, watch=lambda: 0.0), health


def test_pings_tell_of_the_connection() -> None:
    servers = Servers(gone=Unreachable("gone"), locked=401)
    pinging, health = pings(servers)
    for _ in range(5):
        asyncio.run(pinging.ping_all())
    assert sorted(set(servers.asked)) == ["gone", "locked", "there"]
    states = {name: health.state(name, "any", 0.0) for name in ("there", "gone", "locked")}
    assert states == {"there": "unknown", "gone": "down", "locked": "unknown"}


def test_no_provider_is_pinged_whose_list_is_not_known_to_be_free() -> None:
    servers = Servers()
    pinging, _ = pings(servers)
    for provider in list(pinging._directory._providers):
        row = msgspec.structs.replace(provider.row, free_list=False)
        pinging._directory._providers.remove(provider)
        pinging._directory._providers.append(msgspec.structs.replace(provider, row=row))
    asyncio.run(pinging.ping_all())
    assert servers.asked == []


def test_pings_stop_when_they_are_closed() -> None:
    servers = Servers()

    async def run() -> int:
        pinging, _ = pings(servers)
        pinging.start()
        pinging.start()
        async with asyncio.timeout(PATIENCE):
            await servers.all_asked.wait()
        await pinging.close()
        return len(asyncio.all_tasks())

    assert asyncio.run(run()) == 1
    assert len(servers.asked) == 3


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("error_rate = 0", "line 2"),
        ("error_rate = 1.5", "line 2"),
        ("least_calls = 1", "line 2"),
        ("rest_seconds = 400", "line 1"),
        ("pings = true", "ping"),
    ],
)
def test_a_mistake_under_health_names_its_line(line: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_settings(f"[health]\n{line}\n")


def test_settings_reach_the_circuits() -> None:
    settings = parse_settings("[health]\nleast_calls = 3\nrest_seconds = 1\n").health
    assert (settings.least_calls, settings.rest_seconds, settings.ping) == (3, 1.0, False)
    assert math.isclose(settings.error_rate, 0.05)
