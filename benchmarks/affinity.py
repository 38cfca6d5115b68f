"""Subject `affinity`: how much of prompts is read from the caches of several servers, by how calls are spread, and what the layer takes.

The policies are compared on simulated pods (`affinity_pods.py`). `session` is what bardo does for several servers without layers,
`affinity` its layer: both are bardo's own code. `best possible` is one cache for all pods that forgets nothing.
"""

from __future__ import annotations

import time
from collections.abc import Generator
from typing import Any

from bardo.adapters.config.providers import ProviderEntry, provider_of
from bardo.context.affinity.layer import Affinity as Layer
from bardo.context.affinity.layer import ExpectSession, FindServerStates, RecordSession
from bardo.context.layer import LayerFacts, Passed, TargetFacts
from bardo.planning.route import Target
from bardo.planning.token_counting import PromptEstimates
from bardo.services.facts.health import HealthKeeper
from bardo.services.facts.server_choice import ServerChoice
from bardo.services.pipeline.affinity import Affinity
from bardo.services.pipeline.call_layers import CallLayers, LayerPlan, LayerSelection, PromptCounter
from bardo.services.pipeline.effects import Effects
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from benchmarks.affinity_pods import Outcome, Pod, Policy, Session, Workload, play
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.figures import Target as Aim

LIMIT = 15
"""In microseconds: the part of this layer in the 30 that the layers 1, 2 (exact) and 6 may take together."""
PODS = 8
MODEL = "m"
LEAST = 0.94
"""The share of the best possible hit rate that the layer is to reach in every scenario."""
_ROUNDS = 20
_ROOMY, _TIGHT = 40_000, 6_000


class Base:
    """A policy that learns nothing."""

    def ended(self, session: Session, pod: int, tokens: int, cached: int, now: float) -> None:
        """Nothing is noted."""

    def lost(self, pod: int, now: float) -> None:
        """Nothing is forgotten."""


class RoundRobin(Base):
    """One pod after the other."""

    def __init__(self) -> None:
        self._turn = 0

    def choose(self, session: Session, pods: list[Pod], now: float) -> int:
        self._turn += 1
        while pods[self._turn % len(pods)].down:
            self._turn += 1
        return self._turn % len(pods)


class LeastBusy(Base):
    """The pod with the fewest calls under way, of those the one whose turn it is."""

    def __init__(self) -> None:
        self._turn = 0

    def choose(self, session: Session, pods: list[Pod], now: float) -> int:
        self._turn += 1
        return min(
            range(len(pods)), key=lambda place: (pods[place].down, pods[place].calls, (place - self._turn) % len(pods))
        )


class OneCache(Base):
    """All calls to one pod."""

    def choose(self, session: Session, pods: list[Pod], now: float) -> int:
        return 0


class Sessions(Base):
    """bardo without layers: rendezvous hashing of conversations, with a bound on the load."""

    def __init__(self) -> None:
        self._health = HealthKeeper()
        self._provider = _provider()
        self._choice = ServerChoice(self._health, lambda: 0.0)
        self._places = {one.place: place for place, one in enumerate(self._provider.servers)}

    def choose(self, session: Session, pods: list[Pod], now: float) -> int:
        for place, pod in enumerate(pods):
            name = self._provider.servers[place].place
            self._health.count_in_flight(name, pod.calls - self._health.in_flight(name))
        order = [self._places[one.place] for one in self._choice.order(self._provider, MODEL, session.name.encode())]
        return next(place for place in order if not pods[place].down)


class WithLayer:
    """bardo with the layer `affinity`."""

    def __init__(self) -> None:
        self._now = 0.0
        self._health = HealthKeeper()
        self.state = Affinity(self._health, lambda: self._now)
        self._layer = Layer()
        self._servers = _provider().servers
        self._requests: dict[int, Request] = {}
        self._call = CallLayers(LayerSelection(LayerPlan("own")), Effects(), PromptCounter(PromptEstimates()))

    def choose(self, session: Session, pods: list[Pod], now: float) -> int:
        self._now = now
        for place, pod in enumerate(pods):
            name = self._servers[place].place
            self._health.count_in_flight(name, pod.calls - self._health.in_flight(name))
        targets = tuple(
            [
                TargetFacts(provider=one.id, model=MODEL, dialect="", address=one.address, down=pod.down)
                for one, pod in zip(self._servers, pods, strict=True)
            ]
        )
        passed = self.run(
            session.name, request_of(session.program, session.head, session.messages), targets, session.tokens
        )
        return 0 if passed.order is None else passed.order[0]

    def run(self, session: str, request: Request, targets: tuple[TargetFacts, ...], tokens: int) -> Passed:
        """Return what the layer decides."""
        facts = LayerFacts(
            tenant="",
            session=session,
            now=self._now,
            profile="",
            count_tokens=lambda request, target: tokens,
            targets=targets,
        )
        steps = self._layer.steps(request, facts)
        try:
            effect = next(steps)
            while True:
                effect = steps.send(_performed(self.state, effect))
        except StopIteration as done:
            passed: Passed = done.value
            return passed

    def ended(self, session: Session, pod: int, tokens: int, cached: int, now: float) -> None:
        self._now = now
        prefix = self.state.prefix(request_of(session.program, session.head, session.messages))
        self._call.answered = (Target(provider=self._servers[pod], model=MODEL), "")
        _finished(self.state.note(RecordSession(session.name, prefix, session.messages, tokens, cached), self._call))

    def lost(self, pod: int, now: float) -> None:
        self._now = now
        self.state.forget_server(self._servers[pod].place)


def _provider() -> Any:
    urls = tuple(f"http://pod-{place}:8000/v1" for place in range(PODS))
    return provider_of(ProviderEntry(id="pods", preset="vllm", base_urls=urls, models=(MODEL,)))


_KEPT: dict[tuple[int, int], str] = {}


def request_of(program: int, head: int, messages: int) -> Request:
    """Return a request of a program: a system prompt of so many tokens, and so many messages in all."""
    text = _KEPT.setdefault((program, head), f"You are program {program}. " * (head // 6))
    turn = Message("user", (TextBlock("Go on."),))
    return Request(model=MODEL, messages=(Message("system", (TextBlock(text),)), *[turn] * (messages - 1)))


def _performed(state: Affinity, effect: Any) -> Any:
    if isinstance(effect, FindServerStates):
        return state.look(effect)
    assert isinstance(effect, ExpectSession)
    state.expect(effect)
    return None


def _finished(coroutine: Any) -> Any:
    """Return the result of a coroutine that waits for nothing."""
    steps: Generator[Any, Any, Any] = coroutine.__await__()
    try:
        next(steps)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits")


SCENARIOS = {
    "roomy caches": (Workload(3.0, 600.0), _ROOMY, None),
    "tight caches": (Workload(3.0, 600.0), _TIGHT, None),
    "one program has most sessions": (Workload(3.0, 600.0, skew=2.5), _TIGHT, None),
    "short sessions, long prompts": (Workload(6.0, 600.0, turns=1.5, programs=60, skew=0.8), _TIGHT, None),
    "a pod dies and comes back": (Workload(3.0, 600.0), _ROOMY, 300.0),
}
_TITLES = {
    "%": "Tokens read from caches",
    "ms": "Time to the first token, 95th percentile",
    "% of calls": "Share of the calls at the most used pod",
}


def run(bench: Bench) -> tuple[list[Table], list[Aim]]:
    """Compare the policies, and time the layer."""
    rows: dict[str, list[Row]] = {unit: [] for unit in _TITLES}
    least = 1.0
    for name, scenario in SCENARIOS.items():
        found, best = compared(*scenario, share=0.2 if bench.pace.quick else 1.0)
        least = min(least, found["affinity"].hit_rate / best)
        rates = {policy: _one(100 * one.hit_rate) for policy, one in found.items()}
        rows["%"].append(Row(measure=name, unit="%", figures={**rates, "best possible": _one(100 * best)}))
        waits = {policy: _one(1000 * one.wait(0.95)) for policy, one in found.items()}
        rows["ms"].append(Row(measure=name, unit="ms", figures=waits))
        shares = {policy: _one(100 * one.most_used) for policy, one in found.items()}
        rows["% of calls"].append(Row(measure=name, unit="%", figures=shares))
    notes = (
        f"{PODS} simulated pods that read 8,000 tokens a second; sessions of programs with system prompts of their own.",
    )
    tables = [
        Table(subject="affinity", title=title, columns=_columns(unit), rows=tuple(rows[unit]), notes=notes)
        for unit, title in _TITLES.items()
    ]
    taken = _taken(2000 if bench.pace.quick else 20_000)
    row = Row(measure="one call, one target", unit="µs", figures={"bardo": taken})
    tables.append(Table(subject="affinity", title="The layer", columns=("bardo",), rows=(row,), notes=()))
    aims = [
        Aim(says="the layer affinity, one call", limit=LIMIT, unit="µs", found=taken.median),
        Aim(says="tokens not read that could have been", limit=100 * (1 - LEAST), unit="%", found=100 * (1 - least)),
    ]
    return tables, aims


def compared(load: Workload, capacity: int, dies_at: float | None, *, share: float) -> tuple[dict[str, Outcome], float]:
    """Return what came of a `share` of a workload by each policy, and the best hit rate there can be."""
    load = load._replace(seconds=load.seconds * share)
    dies_at = None if dies_at is None else dies_at * share
    policies: dict[str, Policy] = {
        "round robin": RoundRobin(),
        "least busy": LeastBusy(),
        "session": Sessions(),
        "affinity": WithLayer(),
    }
    found = {name: play(load, PODS, capacity, one, dies_at=dies_at) for name, one in policies.items()}
    return found, play(load, 1, 10**9, OneCache()).hit_rate


def _columns(unit: str) -> tuple[str, ...]:
    return ("affinity", "session", "least busy", "round robin", *(("best possible",) if unit == "%" else ()))


def _taken(calls: int) -> Figure:
    """Time the layer for a session in its later turns, with what layers before it are told of what is cached."""
    policy = WithLayer()
    request, target = request_of(1, 2000, 2), TargetFacts(provider="hosted", model=MODEL, dialect="")
    prefix = policy.state.prefix(request)
    policy.state.warm.note(("hosted", MODEL), "session", prefix, 0.0, tokens=4000, cached=0, messages=2)
    found = []
    for _ in range(_ROUNDS):
        began = time.thread_time_ns()
        for _ in range(calls // _ROUNDS):
            told = policy.state.with_warm_tokens("session", request, (target,))
            policy.run("session", request, told, 4000)
        found.append((time.thread_time_ns() - began) / (calls // _ROUNDS) / 1000)
    figure = Figure.of(found)
    assert figure is not None
    return figure


def _one(value: float) -> Figure:
    return Figure(median=value, low=value, high=value, rounds=1)
