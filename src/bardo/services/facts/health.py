"""The health of targets as calls draw on it: who is asked first, who waits, and what each attempt tells.

No clock is read here but a call's own: `now` is of the clock that never jumps (`Services.watch`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import msgspec

from bardo.planning.refusals import is_about_content
from bardo.planning.route import Target, target_names
from bardo.routing.candidates import Health
from bardo.routing.circuit import ABANDONED, AttemptOutcome, outcome_of
from bardo.routing.health import HealthStore, Latency, MemoryHealth, state_of
from bardo.routing.shared_health import SharedHealth
from bardo.services.facts.balances import Balances
from bardo.services.facts.directory import Placement
from bardo.services.facts.event_feed import EventBus
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.inference_events import HealthChanged

_log = logging.getLogger("bardo.health")

_OF_THE_PROVIDER = frozenset({"connection", "key_refused"})
_OF_THE_LOGIN = frozenset({"rate_limited", "key_refused"})


class HealthKeeper:
    """Records how attempts end, and chooses whom to ask. `store` holds the health, and `events` is told of changes."""

    def __init__(self, store: HealthStore | None = None, events: EventBus | None = None) -> None:
        self.store: HealthStore = store if store is not None else MemoryHealth()
        self.balances = Balances()
        self._events = events
        self._refused: set[tuple[str, str]] = set()
        self._in_flight: dict[str, int] = {}
        self._on_loss: Callable[[str], None] | None = None

    @property
    def sharing(self) -> str:
        """`shared` where other gateways' calls count here too, `alone` while these cannot be reached, empty where none are asked."""
        store = self.store
        return ("shared" if store.in_step else "alone") if isinstance(store, SharedHealth) else ""

    @property
    def revision(self) -> int:
        """A number that changes when a target goes down or comes back, or answers much faster or slower than before."""
        return self.store.revision

    def tell_of_losses(self, listener: Callable[[str], None]) -> None:
        """Have `listener` told of each of several servers that was not there, or closed its connection, in the place of whoever was."""
        self._on_loss = listener

    def note_lost(self, server: str) -> None:
        """Note that one of several servers was not there, or closed its connection."""
        if self._on_loss is not None:
            self._on_loss(server)

    def note_given_up(self, target: Target, problem: BardoError, now: float) -> None:
        """Note an attempt that was given up for a fault of the provider's."""
        self.note(target.provider.place, target.model, _outcome_of(problem), now)

    def note(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        """Note how one attempt ended."""
        if outcome.error is None:
            store = self.store
            was_down = self.reason(provider, model, now) if store.troubled else ""
            store.note(provider, model, outcome, now)
            if self._refused:
                self._refused.discard((provider, outcome.key))
            if was_down and not self.reason(provider, model, now):
                self._publish(provider, model, "", now)
            return
        before = self._reasons(provider, model, now)
        self.store.note(provider, model, outcome, now)
        for reason in self._reasons(provider, model, now) - before:
            _log.warning("%s", reason, extra={"provider": provider, "model": model})
            self._publish(provider, model, reason, now)
        if outcome.error == "key_refused":
            self._warn_of_key(provider, model, outcome, now)

    def tell_of_others(self, provider: str, model: str, now: float, *, is_down: bool) -> None:
        """Log and publish that a target went down or came back by what other gateways saw; `model` is empty for the whole provider."""
        what = f"{provider}/{model}" if model else provider
        if not is_down:
            _log.info(
                "%s is up again: another gateway was answered", what, extra={"provider": provider, "model": model}
            )
            self._publish(provider, model, "", now)
            return
        reason = f"{what} is down: calls of other gateways to it fail"
        _log.warning("%s", reason, extra={"provider": provider, "model": model})
        self._publish(provider, model, reason, now)

    def _publish(self, provider: str, model: str, reason: str, now: float) -> None:
        if self._events is not None and self._events.active:
            state = self.state(provider, model, now)
            event = HealthChanged(subsystem="", provider=provider, model=model, state=state, reason=reason)
            self._events.publish("", (event,))

    def in_flight(self, server: str) -> int:
        """Return how many calls are under way at one of several servers of a provider."""
        return self._in_flight.get(server, 0)

    def count_in_flight(self, server: str, calls: int) -> None:
        """Take calls that began at one of several servers, or (below 0) that ended there."""
        left = self._in_flight.get(server, 0) + calls
        if left > 0:
            self._in_flight[server] = left
        else:
            self._in_flight.pop(server, None)

    def state(self, provider: str, model: str, now: float) -> Health:
        """Return the state of a model at a provider."""
        store = self.store
        circuit, whole = store.circuit(provider, model, now), store.circuit(provider, "", now)
        return state_of(circuit, whole, store.rests.rest_of_all(provider, model, now))

    def may_try(self, provider: str, model: str, now: float) -> bool:
        """Whether a call may be sent: of a target that is down and due, to one call at a time."""
        return self.store.claim(provider, model, now)

    def rest_until(self, provider: str, model: str, now: float) -> float | None:
        """Return when the first key of a provider may be used again at a model, or None if one may be used now."""
        key_rest = self.store.rests.rest_of_all(provider, model, now)
        return None if key_rest is None else key_rest.until

    def latency(self, provider: str, model: str) -> Latency:
        """Return how long the latest calls to a target took."""
        return self.store.latency(provider, model)

    def p90_ms(self, provider: str, model: str) -> int | None:
        """Return the time in which nine of ten calls are answered, which changes with `revision`, or None if too few were made."""
        return self.store.p90_ms(provider, model)

    def mark(self, now: float) -> tuple[int, int, int]:
        """Return what changes whenever `is_out` or `p90_ms` may say something else of any target."""
        store = self.store
        return store.revision, store.count_due(now), store.rests.count_refused(now)

    def is_out(self, provider: str, model: str, now: float) -> bool:
        """Whether a target is down and not due to be tried, or its keys are refused."""
        due, key_rest = self.store.down(provider, model, now), self.store.rests.rest_of_all(provider, model, now)
        return (due is not None and due > now) or (key_rest is not None and key_rest.refused)

    def ordered(self, targets: Sequence[Target], now: float) -> tuple[Sequence[Target], tuple[Degradation, ...]]:
        """Return targets in the order in which they are asked, all of them, and why some that came first do not.

        Those that are down or wait for a rate limit come last, in the order in which they may be asked again. One that is down, due, and
        would be first stays first for one call, which finds out.
        """
        if not self.store.troubled:
            return targets, ()
        ready: list[Target] = []
        later: list[tuple[float, int]] = []
        for place, target in enumerate(targets):
            waits = self._waits_until(target, now, may_claim=not ready)
            if waits is None:
                ready.append(target)
            else:
                later.append((waits, place))
        if not later:
            return targets, ()
        later.sort()
        order = [*ready, *(targets[place] for _, place in later)]
        return order, self._passed_over(targets, order[0], now)

    def ordered_placement(self, placement: Placement, watch: Callable[[], float]) -> Placement:
        """Return who is asked, in the order of `ordered`, with why some were passed over."""
        if not self.store.troubled:
            return placement
        targets, passed_over = self.ordered(placement.targets, watch())
        return msgspec.structs.replace(placement, targets=tuple(targets), skipped=(*placement.skipped, *passed_over))

    def _waits_until(self, target: Target, now: float, *, may_claim: bool) -> float | None:
        """Return until when a target is passed over, or None if it keeps its place."""
        provider, model = target.provider.place, target.model
        key_rest = self.rest_until(provider, model, now)
        due = self.store.down(provider, model, now)
        if due is None or (due <= now and may_claim and key_rest is None and self.store.claim(provider, model, now)):
            return key_rest
        return max(due, key_rest or due)

    def _passed_over(self, targets: Sequence[Target], first: Target, now: float) -> tuple[Degradation, ...]:
        names, degradations = target_names(targets), []
        for target, name in zip(targets, names, strict=True):
            if target is first:
                break
            why = self.reason(target.provider.place, target.model, now) or "it is tried by another call"
            degradations.append(Degradation("provider", asked=name, sent=names[targets.index(first)], why=why))
        return tuple(degradations)

    def reason(self, provider: str, model: str, now: float) -> str:
        """Return why a target is not asked now, as one clause; empty where it is."""
        for name in (model, ""):
            circuit = self.store.circuit(provider, name, now)
            if circuit is not None and circuit.down_since is not None:
                window = circuit.window
                what = f"{provider}/{model}" if name else provider
                waits = f", and is tried again in {max(0.0, circuit.due_at - now):.0f} s"
                return f"{what} is down: {window.failed} of {window.calls} calls failed ({circuit.last_fault}){waits}"
        key_rest = self.store.rests.rest_of_all(provider, model, now)
        if key_rest is None:
            return ""
        return f"{provider} waits {max(0.0, key_rest.until - now):.0f} s more: {key_rest.why}"

    def _warn_of_key(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        """Warn once of a key that is refused, until it is taken again."""
        key_rest, which = self.store.rests.rest(provider, outcome.key, model, now), (provider, outcome.key)
        if key_rest is None or not key_rest.refused or which in self._refused:
            return
        self._refused.add(which)
        name = f"the key in {outcome.key}" if outcome.key else "the key"
        _log.warning("%s refuses %s (%s)", provider, name, outcome.status, extra={"provider": provider})

    def _reasons(self, provider: str, model: str, now: float) -> set[str]:
        """Return the reasons to log once: that a target went down."""
        reasons: set[str] = set()
        for name in {model, ""}:
            circuit = self.store.circuit(provider, name, now)
            if circuit is not None and circuit.down_since is not None:
                reasons.add(
                    f"{f'{provider}/{name}' if name else provider} is down: calls to it fail ({circuit.last_fault})"
                )
        return reasons


def _outcome_of(problem: BardoError, key: str = "") -> AttemptOutcome:
    """Return the outcome of a failure. A prompt that was refused for its content is its caller's, whatever the status: no key rests."""
    if isinstance(problem, UpstreamRefused) and is_about_content(problem):
        return AttemptOutcome(error="caller", status=problem.status, key=key)
    return outcome_of(problem, key=key)


class AttemptWatch:
    """One attempt from when it is sent, in a `with` block that notes an error. Its end is noted once.

    `watch` counts seconds. `of_model` False: the call is of a side endpoint, and tells of the connection and the key alone. `own_login`: it
    goes by a credential of its client's, whose refusals and limits are that client's alone.
    """

    __slots__ = (
        "_first",
        "_health",
        "_key",
        "_model",
        "_noted",
        "_of_model",
        "_own_login",
        "_provider",
        "_several",
        "_started",
        "_watch",
    )

    def __init__(
        self,
        health: HealthKeeper,
        watch: Callable[[], float],
        target: Target,
        key: str = "",
        *,
        of_model: bool = True,
        own_login: bool = False,
    ) -> None:
        self._own_login = own_login
        self._health = health
        self._watch = watch
        self._provider, self._model, self._key = target.provider.place, target.model, key
        self._of_model = of_model
        self._noted = False
        self._several = bool(target.provider.address)
        if self._several:
            health.count_in_flight(self._provider, 1)
        self._first: float | None = None
        self._started = watch()

    def seconds(self) -> float:
        """Return the seconds since the attempt was sent."""
        return self._watch() - self._started

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(value, BardoError):
            self.ended(value)
        elif value is not None:
            self.left()

    def began(self) -> None:
        """Note that the first piece of a stream came."""
        self._first = self._watch() - self._started

    def ended(self, problem: BardoError | None) -> None:
        """Note that the attempt was answered, or failed."""
        if self._noted:
            return
        now = self._watch()
        if problem is None:
            seconds = now - self._started
            outcome = AttemptOutcome(seconds=seconds, first_token_seconds=self._first, key=self._key)
        else:
            outcome = _outcome_of(problem, self._key)
        self._note(outcome, now)

    def left(self) -> None:
        """Note that the client left: an answer that had begun counts as one."""
        if self._noted:
            return
        if self._first is not None:
            self.ended(None)
        else:
            self._note(ABANDONED, self._watch())

    def _note(self, outcome: AttemptOutcome, now: float) -> None:
        self._noted = True
        if self._several:
            self._health.count_in_flight(self._provider, -1)
            if outcome.error == "connection":
                self._health.note_lost(self._provider)
        if self._own_login and outcome.error in _OF_THE_LOGIN:
            outcome = ABANDONED
        if not self._of_model and outcome.error not in _OF_THE_PROVIDER:
            outcome = ABANDONED
        self._health.note(self._provider, self._model, outcome, now)
