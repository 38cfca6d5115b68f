"""The health of targets as several gateways see it together: a copy in this process, and what passes between it and the others.

Nothing here waits. `outgoing` is what others are told since the last time, `take` what they told; a carrier exchanges them. Without a
carrier the copy goes on with what this process sees itself. A target that is down is tried by the one gateway that holds its trial.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bardo.routing.circuit import TRIAL_SECONDS, AttemptOutcome, Circuit
from bardo.routing.health import MOST_MODELS, OF_A_KEY, Latency, MemoryHealth
from bardo.routing.health_news import (
    HealthNews,
    KeyAccepted,
    KeyRests,
    TargetCounts,
    TargetDown,
    TargetUp,
    UnsentCounts,
)
from bardo.routing.key_rests import KeyRests as RestingKeys
from bardo.routing.key_rests import Rest

STALE_COUNTS_SECONDS = 30.0
"""Counts that are older on their way are left out, unless nothing is known here yet."""
_UNUSED_TRIAL_SECONDS = 5.0
"""After so long, a trial that no call used is given to another gateway."""
_WANTED_SECONDS = 600.0

TargetName = tuple[str, str]


class HealthChange(NamedTuple):
    """A target that went down or came back by what others told; `model` is empty for the whole provider."""

    provider: str
    model: str
    is_down: bool


class SharedHealth:
    """A store of health that is kept in step with those of other gateways, while `in_step` is true.

    `wake` is called where something should be told, or a trial be asked for, sooner than at the next turn.
    """

    def __init__(self, own: MemoryHealth | None = None) -> None:
        self._own = own or MemoryHealth()
        self.in_step = False
        self.wake: Callable[[], None] = _nothing
        self._counts: dict[TargetName, UnsentCounts] = {}
        self._news: deque[tuple[float, TargetName, bool]] = deque(maxlen=MOST_MODELS)
        self._keys: dict[tuple[str, str], bool] = {}
        self._wanted: dict[TargetName, float] = {}
        self._trials: dict[TargetName, float] = {}

    @property
    def revision(self) -> int:
        """A number that changes when a target goes down, comes back, or answers faster or slower."""
        return self._own.revision

    @property
    def troubled(self) -> bool:
        """Whether any target is down or may be resting."""
        return self._own.troubled

    @property
    def rests(self) -> RestingKeys:
        """The rests of keys, of this gateway and of others."""
        return self._own.rests

    def note(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        """Note how one attempt ended, here and for others."""
        own = self._own
        if not self.in_step:
            own.note(provider, model, outcome, now)
            return
        counts = self._counts.get((provider, model))
        if counts is None:
            if len(self._counts) >= MOST_MODELS:
                self._counts.clear()
            counts = self._counts[provider, model] = UnsentCounts()
        counts.add(outcome)
        if outcome.error is None and not own.troubled:
            own.note(provider, model, outcome, now)
        else:
            self._note_watched(provider, model, outcome, now)

    def down(self, provider: str, model: str, now: float) -> float | None:
        """Return when a target that is down is due to be tried; None for one that is not down."""
        return self._own.down(provider, model, now)

    def claim(self, provider: str, model: str, now: float) -> bool:
        """Whether a call may be sent now. A target that is down is given to one call at a time, of one gateway."""
        own = self._own
        if not self.in_step or not own.troubled:
            return own.claim(provider, model, now)
        due = own.down(provider, model, now)
        if due is None:
            return True
        if due > now:
            return False
        down = self._down_names(provider, model, now)
        missing = [name for name in down if not self._has_trial(name, now)]
        if missing:
            self._wanted.update(dict.fromkeys(missing, now))
            self.wake()
            return False
        if not own.claim(provider, model, now):
            return False
        self._trials.update(dict.fromkeys(down, now + TRIAL_SECONDS))
        return True

    def count_due(self, now: float) -> int:
        """Return how many of the targets that are down may be tried now."""
        return self._own.count_due(now)

    def circuit(self, provider: str, model: str, now: float) -> Circuit | None:
        """Return the facts about a target, as of now, or None if there are none."""
        return self._own.circuit(provider, model, now)

    def latency(self, provider: str, model: str) -> Latency:
        """Return how long the latest calls to a target took."""
        return self._own.latency(provider, model)

    def p90_ms(self, provider: str, model: str) -> int | None:
        """Return the time in which nine of ten calls are answered, or None if too few were made."""
        return self._own.p90_ms(provider, model)

    def targets(self) -> Iterator[TargetName]:
        """Yield every provider and model that something is known of."""
        return self._own.targets()

    def outgoing(self, now: float) -> tuple[HealthNews, ...]:
        """Return what others are to be told since the last time."""
        counts, news, keys = self._counts, self._news, self._keys
        self._forget_unsent()
        outgoing: list[HealthNews] = [total.news(*name) for name, total in counts.items()]
        for at, name, is_down in news:
            outgoing.extend(self._target_news(name, is_down, at, now))
        for (provider, key), was_taken in keys.items():
            outgoing.extend(
                (KeyAccepted(provider=provider, key=key),) if was_taken else self._key_news(provider, key, now)
            )
        return tuple(outgoing)

    def standing(self, now: float) -> tuple[HealthNews, ...]:
        """Return all that is down or rests here, for others that may not know it."""
        news: list[HealthNews] = []
        for provider, model, _ in self._own.down_targets():
            news.extend(self._target_news((provider, model), True, now, now))
        for provider, key in self._own.rests.states:
            news.extend(self._key_news(provider, key, now))
        return tuple(news)

    def take(self, news: Iterable[HealthNews], *, age: float, now: float, first: bool = False) -> list[HealthChange]:
        """Take what others told `age` seconds ago. Returns what it changed.

        `first`: nothing is known here yet, and the news are those of the window that is past, in their order.
        """
        changes: list[HealthChange] = []
        for item in news:
            if not isinstance(item, TargetCounts):
                changes.extend(self._take(item, age, now, now - age if first else now))
            elif first or age < STALE_COUNTS_SECONDS:
                changes.extend(self._count(item, now - age if first else now))
        return changes

    def leave(self) -> None:
        """Go on alone: the others cannot be reached. What was to be told is dropped, and so are trials."""
        self.in_step = False
        self._forget_unsent()
        self._trials.clear()

    def trials(self, now: float) -> tuple[list[TargetName], list[TargetName]]:
        """Return the trials to ask for, or to keep, and those to give back."""
        trials = [name for name, until in self._trials.items() if until > now and self._is_due(name, now)]
        back = [name for name in self._trials if name not in trials]
        for name in back:
            del self._trials[name]
        self._wanted = {
            name: at for name, at in self._wanted.items() if now - at < _WANTED_SECONDS and self._is_down(name, now)
        }
        wanted = [name for name in self._wanted if name not in trials and name not in back and self._is_due(name, now)]
        return [*trials, *wanted], back

    def set_trials(self, asked: Iterable[TargetName], held: Iterable[TargetName], now: float) -> None:
        """Say which of the trials that were asked for this gateway holds."""
        holds = set(held)
        for name in asked:
            if name in holds:
                self._trials.setdefault(name, now + _UNUSED_TRIAL_SECONDS)
            else:
                self._trials.pop(name, None)

    def _note_watched(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        """Note an attempt, and remember for others what changed by it."""
        own, names = self._own, ((provider, ""), (provider, model))
        was_refused = own.rests.is_refused(provider, outcome.key)
        before = [_mark(own.circuit(*name, now)) for name in names]
        own.note(provider, model, outcome, now)
        for name, mark in zip(dict.fromkeys(names), before, strict=False):
            circuit = own.circuit(*name, now)
            if circuit is not None and _mark(circuit) != mark:
                self._news.append((now, name, circuit.down_since is not None))
                self.wake()
        if was_refused != own.rests.is_refused(provider, outcome.key) or outcome.error in OF_A_KEY:
            self._keys[provider, outcome.key] = outcome.error is None

    def _forget_unsent(self) -> None:
        self._counts, self._news, self._keys = {}, deque(maxlen=MOST_MODELS), {}

    def _target_news(self, name: TargetName, is_down: bool, at: float, now: float) -> Iterator[HealthNews]:
        provider, model = name
        circuit = self._own.circuit(provider, model, now)
        if not is_down:
            yield TargetUp(provider=provider, model=model, up_for=max(0.0, now - at))
        elif circuit is not None and circuit.down_since is not None:
            yield TargetDown(
                provider=provider,
                model=model,
                rest_seconds=circuit.rest_seconds,
                due_in=circuit.due_at - now,
                fault=circuit.last_fault,
            )

    def _key_news(self, provider: str, key: str, now: float) -> Iterator[HealthNews]:
        state = self._own.rests.states.get((provider, key))
        rests = {} if state is None else {model: rest for model, rest in state.rests.items() if rest.lasts(now)}
        for model, rest in rests.items():
            yield KeyRests(
                provider=provider,
                key=key,
                model=model,
                seconds_left=rest.until - now,
                rests_for=now - rest.since,
                why=rest.why,
                refused=rest.refused,
                times_rested=0 if state is None or model else state.times_rested,
            )

    def _count(self, counts: TargetCounts, at: float) -> Iterator[HealthChange]:
        for model in self._own.note_counts(counts, at):
            # The others may know less of it: who finds it by what several saw tells it.
            self._news.append((at, (counts.provider, model), True))
            yield HealthChange(counts.provider, model, is_down=True)

    def _take(self, item: HealthNews, age: float, now: float, at: float) -> Iterator[HealthChange]:
        own = self._own
        match item:
            case TargetDown():
                if own.open_as_others(item, now + item.due_in - age, at):
                    yield HealthChange(item.provider, item.model, is_down=True)
            case TargetUp():
                if own.close_as_others(item.provider, item.model, now - age - item.up_for, at):
                    yield HealthChange(item.provider, item.model, is_down=False)
            case KeyRests():
                left = item.seconds_left - age
                if left > 0:
                    rest = Rest(now + left, now - item.rests_for - age, item.why, item.refused)
                    own.rests.rest_as_others(item.provider, item.key, item.model, rest, item.times_rested)
            case KeyAccepted():
                own.rests.end_as_others(item.provider, item.key)

    def _down_names(self, provider: str, model: str, now: float) -> list[TargetName]:
        return [name for name in dict.fromkeys(((provider, ""), (provider, model))) if self._is_down(name, now)]

    def _has_trial(self, name: TargetName, now: float) -> bool:
        return self._trials.get(name, now) > now

    def _is_down(self, name: TargetName, now: float) -> bool:
        circuit = self._own.circuit(*name, now)
        return circuit is not None and circuit.down_since is not None

    def _is_due(self, name: TargetName, now: float) -> bool:
        circuit = self._own.circuit(*name, now)
        return circuit is not None and circuit.is_due(now)


def _nothing() -> None:
    """Do nothing: there is no carrier of news yet."""


def _mark(circuit: Circuit | None) -> tuple[float | None, float] | None:
    return None if circuit is None or circuit.down_since is None else (circuit.down_since, circuit.due_at)
