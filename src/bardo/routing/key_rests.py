"""Which key of a provider is used, and for how long one rests that was refused: by the headers that say so, or by the status."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from bardo.routing.circuit import AttemptOutcome

LIMITED_SECONDS = 5.0
"""How long a key rests after a rate limit that does not say for how long."""
MOST_LIMITED_SECONDS = 3600.0
"""No rate limit puts a key to rest for longer, whatever the provider asks: all callers share the key, and one call finds out."""
REFUSED_SECONDS = 60.0
MOST_REFUSED_SECONDS = 3600.0
"""A key that is refused rests for this long, twice as long each time in a row, up to an hour."""
# OpenRouter answers 402 where `max_tokens` costs more than is left, and 403 where a prompt is flagged (openrouter.ai/docs, as of 2026-11).
_OF_ONE_REQUEST = frozenset({402, 403})
_REFUSALS = 3
"""So many refusals in a row that may be about one request put a key to rest as 401 does at once."""
_MOST_MODELS = 256
_EVERY = ""


class Rest(NamedTuple):
    """Until when a key is not used, since when, and why. `refused`: it was not taken, or has no credit."""

    until: float
    since: float
    why: str
    refused: bool = False

    def lasts(self, now: float) -> bool:
        """Whether the key still rests."""
        return self.since <= now < self.until


class KeyState:
    """One key of a provider: its rests by model, and how often in a row it was refused. `""` is the rest at every model."""

    __slots__ = ("refusals", "rests", "times_rested")

    def __init__(self) -> None:
        self.rests: dict[str, Rest] = {}
        self.refusals = 0
        self.times_rested = 0

    def rest_at(self, model: str, now: float) -> Rest | None:
        """Return the rest that lasts longest at a model, or None if the key may be used."""
        lasting = [
            rest for rest in (self.rests.get(_EVERY), self.rests.get(model)) if rest is not None and rest.lasts(now)
        ]
        return max(lasting, default=None)

    def note_refusal(self, status: int | None, now: float) -> None:
        """Note that the key was refused."""
        self.refusals += 1
        if status in _OF_ONE_REQUEST and self.refusals < _REFUSALS:
            return
        seconds = min(REFUSED_SECONDS * 2**self.times_rested, MOST_REFUSED_SECONDS)
        self.times_rested = min(self.times_rested + 1, 10)
        self.rests[_EVERY] = Rest(now + seconds, now, f"the key was refused ({status})", refused=True)

    def note_limit(self, model: str, seconds: float | None, now: float) -> None:
        """Note that the key has reached a limit at a model."""
        waits = LIMITED_SECONDS if seconds is None else min(seconds, MOST_LIMITED_SECONDS)
        if len(self.rests) >= _MOST_MODELS and model not in self.rests:
            self._forget(now)
        self.rests[model] = Rest(now + waits, now, "rate limit")

    def rest_as_others(self, model: str, rest: Rest, times_rested: int) -> None:
        """Take over a rest that others noted, unless the one that is known lasts longer."""
        rest = rest._replace(until=min(rest.until, rest.since + max(MOST_LIMITED_SECONDS, MOST_REFUSED_SECONDS)))
        before = self.rests.get(model)
        if before is not None and before.until >= rest.until and before.lasts(rest.since):
            return
        if len(self.rests) >= _MOST_MODELS and model not in self.rests:
            self._forget(rest.since)
        self.rests[model] = rest
        self.times_rested = max(self.times_rested, min(times_rested, 10))

    def note_success(self) -> None:
        """Note that the key was taken."""
        self.refusals = self.times_rested = 0
        self.rests.pop(_EVERY, None)

    def _forget(self, now: float) -> None:
        """Forget the rests that are over, and where there is none the one that ends first."""
        self.rests = {model: rest for model, rest in self.rests.items() if rest.lasts(now)}
        if len(self.rests) >= _MOST_MODELS:
            del self.rests[min(self.rests, key=lambda model: self.rests[model].until)]


class KeyRests:
    """The keys of all providers by their labels, which are the names of their variables. A key without a label is a provider's only one."""

    __slots__ = ("_labels", "states")

    def __init__(self) -> None:
        self.states: dict[tuple[str, str], KeyState] = {}
        """The keys that may be resting, by provider and label: none as a rule."""
        self._labels: dict[str, tuple[str, ...]] = {}

    def register(self, provider: str, labels: tuple[str, ...]) -> None:
        """Say which keys a provider has."""
        self._labels[provider] = labels

    def note(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        """Note how an attempt with a key ended."""
        where = (provider, outcome.key)
        state = self.states.get(where)
        if outcome.error == "key_refused":
            self._state_of(where).note_refusal(outcome.status, now)
        elif outcome.error == "rate_limited" or (outcome.error == "overloaded" and outcome.rest_seconds is not None):
            self._state_of(where).note_limit(model, outcome.rest_seconds, now)
        elif state is not None and outcome.error is None:
            state.note_success()
            if not any(rest.lasts(now) for rest in state.rests.values()):
                del self.states[where]

    def rest_as_others(self, provider: str, key: str, model: str, rest: Rest, times_rested: int) -> None:
        """Take over that a key rests for others, at a model or ("") at all."""
        self._state_of((provider, key)).rest_as_others(model, rest, times_rested)

    def end_as_others(self, provider: str, key: str) -> None:
        """Take over that a key which was refused was taken from others again."""
        state = self.states.get((provider, key))
        if state is not None:
            state.note_success()
            if not state.rests:
                del self.states[provider, key]

    def rest(self, provider: str, key: str, model: str, now: float) -> Rest | None:
        """Return until when a key rests at a model, or None if it may be used."""
        state = self.states.get((provider, key))
        return None if state is None else state.rest_at(model, now)

    def is_refused(self, provider: str, key: str) -> bool:
        """Whether a key was refused the last time it was used."""
        state = self.states.get((provider, key))
        return state is not None and _EVERY in state.rests

    def rest_of_all(self, provider: str, model: str, now: float) -> Rest | None:
        """Return the rest of a provider at a model, which ends with that of the first key, or None if a key may be used."""
        if not self.states:
            return None
        rests = [self.rest(provider, label, model, now) for label in self._labels.get(provider, ("",))]
        lasting = [rest for rest in rests if rest is not None]
        return min(lasting) if lasting and len(lasting) == len(rests) else None

    def count_refused(self, now: float) -> int:
        """Return how many keys rest because they were refused."""
        rests = (state.rests.get(_EVERY) for state in self.states.values())
        return sum(rest is not None and rest.lasts(now) for rest in rests)

    def _state_of(self, where: tuple[str, str]) -> KeyState:
        return self.states.setdefault(where, KeyState())


WARM_SECONDS = 300.0
"""How long a cached prompt is kept after its last use, as a rule (Anthropic and OpenAI, as of 2026-11)."""
_MOST_CONVERSATIONS = 20_000
_COUNTED_SECONDS = 300.0
"""Uses count half after this time."""


class KeyRotation:
    """The keys of all providers by their labels, and which conversation uses which."""

    def __init__(self) -> None:
        self._warm: dict[tuple[str, bytes], tuple[str, float, float]] = {}
        self._warm_seconds: Callable[[str, str], float] | None = None
        self._uses: dict[tuple[str, str], float] = {}
        self._counted_since = 0.0

    def measure_by(self, warm_seconds: Callable[[str, str], float]) -> None:
        """Take from now on how long a model at a provider keeps prompts from what measures it, and not as a rule."""
        self._warm_seconds = warm_seconds

    def choose(
        self,
        provider: str,
        model: str,
        labels: Sequence[str],
        rests: KeyRests,
        now: float,
        *,
        conversation: bytes = b"",
        tried: Collection[str] = (),
    ) -> str:
        """Return the label of the key to use, of at least one. Where all must wait, it is the one whose turn comes first.

        `conversation` identifies the head of a prompt, empty where nothing is cached; `tried` are keys that failed in this call.
        """
        free = [label for label in labels if label not in tried and rests.rest(provider, label, model, now) is None]
        if not free:
            return self._first_back(provider, model, labels, rests, now, tried)
        where = (provider, conversation)
        label = self._warm_key(where, now) if conversation else None
        if label is None or label not in free:
            label = min(free, key=lambda other: self._uses.get((provider, other), 0.0))
        self._count(provider, label, now)
        if conversation:
            seconds = WARM_SECONDS if self._warm_seconds is None else self._warm_seconds(provider, model)
            self._keep(where, label, now, seconds)
        return label

    def uses(self, provider: str, label: str) -> float:
        """Return how often a key was used lately."""
        return self._uses.get((provider, label), 0.0)

    def _warm_key(self, where: tuple[str, bytes], now: float) -> str | None:
        warm = self._warm.get(where)
        if warm is None or not warm[1] <= now < warm[2]:
            return None
        return warm[0]

    def _keep(self, where: tuple[str, bytes], label: str, now: float, seconds: float) -> None:
        self._warm.pop(where, None)
        if len(self._warm) >= _MOST_CONVERSATIONS:
            # The one that was used longest ago comes first.
            del self._warm[next(iter(self._warm))]
        self._warm[where] = (label, now, now + seconds)

    def _count(self, provider: str, label: str, now: float) -> None:
        if not 0 <= now - self._counted_since < _COUNTED_SECONDS:
            self._uses = {where: count / 2 for where, count in self._uses.items() if count >= 1}
            self._counted_since = now
        where = (provider, label)
        self._uses[where] = self._uses.get(where, 0.0) + 1

    def _first_back(
        self, provider: str, model: str, labels: Sequence[str], rests: KeyRests, now: float, tried: Collection[str]
    ) -> str:
        left = [label for label in labels if label not in tried] or list(labels)
        until = {label: rests.rest(provider, label, model, now) for label in left}
        return min(left, key=lambda label: rest.until if (rest := until[label]) is not None else now)
