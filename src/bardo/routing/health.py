"""The health of every provider and model, by the calls that were made: no call is made to find out.

A connection that fails counts for its whole provider, every other fault for the model at that provider. A caller's mistake counts for none,
and a rate limit is a rest of the key that met it. Time is an argument, in seconds of one clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import msgspec

from bardo.routing.candidates import Health
from bardo.routing.circuit import AttemptOutcome, Circuit, Fault, HealthPolicy
from bardo.routing.health_news import TargetCounts, TargetDown
from bardo.routing.key_rests import KeyRests, Rest

_LATEST = 100
LEAST_CALLS = 10
"""So many of the latest calls are remembered of a target, and so many are needed before anything is said of it."""
_NOTEWORTHY = 0.25
"""A latency that changed by less than this part of itself is taken for the same."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """Milliseconds of a target's latest calls to the first token of a stream, or to the end of a whole reply, or None if too few were made.

    `first_token_*` are of streams alone. `calls` is how many the figures rest on.
    """

    calls: int = 0
    p50_ms: int | None = None
    p90_ms: int | None = None
    p95_ms: int | None = None
    first_token_p50_ms: int | None = None
    first_token_p95_ms: int | None = None


UNKNOWN_LATENCY = Latency()


class LatencyRing:
    """The latest calls of one target. `p90_ms` is what routing goes by: it stays the same until it changed by a quarter."""

    __slots__ = ("_answered", "_count", "_first_tokens", "_known", "p90_ms")

    def __init__(self) -> None:
        self._answered: deque[float] = deque(maxlen=_LATEST)
        self._first_tokens: deque[float] = deque(maxlen=_LATEST)
        self._count = 0
        self._known: Latency | None = None
        self.p90_ms: int | None = None

    def note(self, seconds: float | None, first_token_seconds: float | None) -> bool:
        """Note a call that was answered: a whole one has no first token. Returns whether `p90_ms` changed."""
        if first_token_seconds is not None:
            self._first_tokens.append(first_token_seconds)
            seconds = first_token_seconds
        if seconds is None:
            return False
        self._answered.append(seconds)
        self._known = None
        self._count += 1
        return self._count % LEAST_CALLS == 0 and self._learn()

    def latency(self) -> Latency:
        """Return the figures, which are computed once between two calls."""
        if self._known is None:
            answered, first = sorted(self._answered), sorted(self._first_tokens)
            self._known = Latency(
                calls=len(answered),
                p50_ms=_quantile_ms(answered, 0.5),
                p90_ms=_quantile_ms(answered, 0.9),
                p95_ms=_quantile_ms(answered, 0.95),
                first_token_p50_ms=_quantile_ms(first, 0.5),
                first_token_p95_ms=_quantile_ms(first, 0.95),
            )
        return self._known

    def _learn(self) -> bool:
        p90 = _quantile_ms(sorted(self._answered), 0.9)
        before = self.p90_ms
        if p90 is None or (before is not None and abs(p90 - before) <= _NOTEWORTHY * before):
            return False
        self.p90_ms = p90
        return True


def _quantile_ms(ordered: list[float], share: float) -> int | None:
    """Return the value below which a share of sorted seconds lies, in milliseconds; None of too few."""
    if len(ordered) < LEAST_CALLS:
        return None
    return round(1000 * ordered[int(share * (len(ordered) - 1))])


OF_A_KEY = frozenset({"rate_limited", "key_refused", "overloaded"})
MOST_MODELS = 1024
"""Clients choose the names of models: beyond this number, those without calls are forgotten."""


class HealthStore(Protocol):
    """Where the health of targets is kept. A store that several processes share holds a copy here that it brings up to date on its own.

    An empty `model` stands for the whole provider. `revision` changes when a target goes down, comes back, or answers faster or slower.
    """

    @property
    def revision(self) -> int: ...

    @property
    def troubled(self) -> bool:
        """Whether any target is down or may be resting: False costs nothing to find out."""
        ...

    @property
    def rests(self) -> KeyRests: ...

    def note(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None: ...

    def down(self, provider: str, model: str, now: float) -> float | None:
        """Return when a target that is down is due to be tried; None for one that is not down."""
        ...

    def claim(self, provider: str, model: str, now: float) -> bool:
        """Whether a call may be sent now. A target that is down is given to one call at a time."""
        ...

    def count_due(self, now: float) -> int:
        """Return how many of the targets that are down may be tried now."""
        ...

    def circuit(self, provider: str, model: str, now: float) -> Circuit | None: ...

    def latency(self, provider: str, model: str) -> Latency: ...

    def p90_ms(self, provider: str, model: str) -> int | None: ...

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield every provider and model that something is known of."""
        ...


class _Target(NamedTuple):
    circuit: Circuit
    latency: LatencyRing


class MemoryHealth:
    """The health of targets, in this process."""

    def __init__(self, policy: HealthPolicy | None = None) -> None:
        self.revision = 0
        self.rests = KeyRests()
        self._policy = policy or HealthPolicy()
        self._providers: dict[str, Circuit] = {}
        self._models: dict[tuple[str, str], _Target] = {}
        self._down: set[Circuit] = set()

    @property
    def troubled(self) -> bool:
        """Whether any target is down or may be resting."""
        return bool(self._down or self.rests.states)

    def note(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        """Note how one attempt ended."""
        error = outcome.error
        if error is None:
            whole = self._providers.get(provider) or self._made_provider(provider)
            circuit, latency = self._models.get((provider, model)) or self._made(provider, model, now)
            if whole.note_success(now):
                self._close(whole)
            if circuit.note_success(now):
                self._close(circuit)
            if latency.note(outcome.seconds, outcome.first_token_seconds):
                self.revision += 1
            if self.rests.states:
                self.rests.note(provider, model, outcome, now)
            return
        self._note_error(provider, model, outcome, now)
        if error in OF_A_KEY:
            self.rests.note(provider, model, outcome, now)

    def down(self, provider: str, model: str, now: float) -> float | None:
        """Return when a target that is down is due to be tried; None for one that is not down."""
        due = [
            circuit.due_at
            for circuit in self._circuits(provider, model)
            if circuit.down_since is not None and not circuit.is_due(now)
        ]
        if due:
            return max(due)
        return now if any(circuit.down_since is not None for circuit in self._circuits(provider, model)) else None

    def claim(self, provider: str, model: str, now: float) -> bool:
        """Whether a call may be sent now. A target that is down is given to one call at a time."""
        if not self._down:
            return True
        circuits = self._circuits(provider, model)
        if not all(circuit.may_try(now) for circuit in circuits):
            return False
        for circuit in circuits:
            circuit.begin_trial(now)
        return True

    def count_due(self, now: float) -> int:
        """Return how many of the targets that are down may be tried now."""
        return sum(circuit.is_due(now) for circuit in self._down)

    def circuit(self, provider: str, model: str, now: float) -> Circuit | None:
        """Return the facts about a target, as of now, or None if there are none."""
        circuit = self._providers.get(provider) if not model else None
        if model and (target := self._models.get((provider, model))) is not None:
            circuit = target.circuit
        if circuit is not None:
            circuit.window.look(now)
        return circuit

    def latency(self, provider: str, model: str) -> Latency:
        """Return how long the latest calls to a target took."""
        target = self._models.get((provider, model))
        return UNKNOWN_LATENCY if target is None else target.latency.latency()

    def p90_ms(self, provider: str, model: str) -> int | None:
        """Return the time in which nine of ten calls are answered, which changes with `revision`, or None if too few were made."""
        target = self._models.get((provider, model))
        return None if target is None else target.latency.p90_ms

    def targets(self) -> Iterator[tuple[str, str]]:
        """Yield every provider and model that something is known of."""
        yield from ((provider, "") for provider in self._providers)
        yield from list(self._models)

    def note_counts(self, counts: TargetCounts, now: float) -> Sequence[str]:
        """Note calls that others made. Returns the models of what went down by them, "" for the whole provider."""
        provider, model = counts.provider, counts.model
        whole = self._providers.get(provider)
        if whole is None and (counts.answered or "connection" in counts.faults):
            whole = self._made_provider(provider)
        lost = counts.faults.get("connection", 0)
        own: dict[Fault, int] = {fault: count for fault, count in counts.faults.items() if fault != "connection"}
        reached = counts.answered + counts.refused + sum(own.values()) - own.get("timeout", 0)
        opened = []
        if whole is not None and whole.note_counts(reached, {"connection": lost} if lost else {}, now):
            opened.append("")
            self._open(whole)
        if not counts.answered and not own:
            return opened
        target = self._models.get((provider, model)) or self._made(provider, model, now)
        if target.circuit.note_counts(counts.answered, own, now):
            opened.append(model)
            self._open(target.circuit)
        self.revision += sum(target.latency.note(*sample) for sample in counts.samples)
        return opened

    def open_as_others(self, news: TargetDown, due_at: float, now: float) -> bool:
        """Take over that a target is down for others. Returns whether it was not down here."""
        circuit = self._circuit_of(news.provider, news.model, now)
        opened = circuit.open_as_others(news.rest_seconds, due_at, news.fault, now)
        if opened:
            self._open(circuit)
        return opened

    def close_as_others(self, provider: str, model: str, closed_at: float, now: float) -> bool:
        """Take over that a target answered others again. Returns whether it was down here."""
        circuit = self.circuit(provider, model, now)
        closed = circuit is not None and circuit.close_as_others(closed_at, now)
        if closed and circuit is not None:
            self._close(circuit)
        return closed

    def down_targets(self) -> Iterator[tuple[str, str, Circuit]]:
        """Yield every target that is down; a model of "" is the whole provider."""
        if not self._down:
            return
        for provider, whole in self._providers.items():
            if whole.down_since is not None:
                yield provider, "", whole
        for (provider, model), target in self._models.items():
            if target.circuit.down_since is not None:
                yield provider, model, target.circuit

    def _circuit_of(self, provider: str, model: str, now: float) -> Circuit:
        if not model:
            return self._made_provider(provider)
        return (self._models.get((provider, model)) or self._made(provider, model, now)).circuit

    def _note_error(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        error = outcome.error
        if error == "connection":
            self._fail(self._providers.get(provider) or self._made_provider(provider), error, now)
        elif outcome.answered and provider in self._providers and self._providers[provider].note_success(now):
            self._close(self._providers[provider])
        match error:
            case "timeout" | "overloaded" | "server" | "malformed" | "broken":
                target = self._models.get((provider, model)) or self._made(provider, model, now)
                self._fail(target.circuit, error, now)
                return
        for circuit in self._circuits(provider, model):
            circuit.end_trial()

    def _fail(self, circuit: Circuit, fault: Fault, now: float) -> None:
        if circuit.note_fault(fault, now):
            self._open(circuit)

    def _open(self, circuit: Circuit) -> None:
        self._down.add(circuit)
        self.revision += 1

    def _close(self, circuit: Circuit) -> None:
        self._down.discard(circuit)
        self.revision += 1

    def _circuits(self, provider: str, model: str) -> list[Circuit]:
        target = self._models.get((provider, model))
        circuits = (self._providers.get(provider), None if target is None else target.circuit)
        return [circuit for circuit in circuits if circuit is not None]

    def _made_provider(self, provider: str) -> Circuit:
        return self._providers.setdefault(provider, Circuit(self._policy))

    def _made(self, provider: str, model: str, now: float) -> _Target:
        if len(self._models) >= MOST_MODELS:
            self._forget(now)
        made = self._models[provider, model] = _Target(Circuit(self._policy), LatencyRing())
        return made

    def _forget(self, now: float) -> None:
        """Forget the models without calls for a window; where there are few of these, the half that came first and is not down."""
        idle = [name for name, target in self._models.items() if target.circuit.is_idle(now)]
        if len(idle) < MOST_MODELS // 8:
            up = [name for name, target in self._models.items() if target.circuit.down_since is None]
            idle = up[: MOST_MODELS // 2]
        idle = idle or list(self._models)[: MOST_MODELS // 2]
        for name in idle:
            self._down.discard(self._models.pop(name).circuit)
        self.revision += 1


def state_of(circuit: Circuit | None, whole: Circuit | None, rest: Rest | None) -> Health:
    """Return the state of a target: by its own circuit and its provider's, and by whether its keys rest.

    `degraded`: more of its calls fail than may, and that is not certain yet; or it must wait for a rate limit. `unknown`: too few calls.
    """
    circuits = [item for item in (circuit, whole) if item is not None]
    if any(circuit.down_since is not None for circuit in circuits) or (rest is not None and rest.refused):
        return "down"
    if rest is not None or any(_fails_often(circuit) for circuit in circuits):
        return "degraded"
    if circuit is None or circuit.window.calls < circuit.policy.least_calls:
        return "unknown"
    return "healthy"


def _fails_often(circuit: Circuit) -> bool:
    calls = circuit.window.calls
    return calls >= circuit.policy.least_calls and circuit.window.failed > circuit.policy.error_rate * calls
