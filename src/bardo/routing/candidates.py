"""A model at a provider that describes itself, and says whether it can do what a call needs."""

from __future__ import annotations

from typing import Literal

import msgspec

from bardo.catalog.routing_rows import CallSize, routing_rows
from bardo.catalog.rows import Payment
from bardo.routing import reasons
from bardo.values.intent import Intent, Quality, Resolution

Health = Literal["healthy", "degraded", "down", "unknown"]
_ROWS = routing_rows()
USUAL_CALL = _ROWS.usual_call
_PRIVACY = "privacy"


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """What a model costs, in USD per million tokens."""

    input: float
    output: float

    @property
    def blended(self) -> float:
        """The price of a million tokens of which most are input: `score.input_share` of `routing.toml` says how many."""
        share = _ROWS.score.input_share
        return share * self.input + (1 - share) * self.output

    def of(self, size: CallSize) -> float:
        """Return what a call of this size costs, in USD."""
        return (self.input * size.input_tokens + self.output * size.output_tokens) / 1_000_000


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """What holds beside an intent, and is never relaxed.

    `private`: only private providers may see the call. Models rated above a cap are not asked. `down` are the ids of providers to which
    calls fail now.
    """

    private: bool = False
    tier_cap: Quality | None = None
    phase_cap: Quality | None = None
    down: frozenset[str] = frozenset()


NO_CONDITIONS = Conditions()


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """One model at one provider, by its id in the configuration, with all that is known of it.

    `rating` is the quality of its answers from 0 to 1, `latency_ms` the time in which nine of ten calls are answered; None where nobody
    knows. `payments` are the ways in which the provider is paid. Calls that are private go to candidates with the feature `privacy` only.
    `stay_discount` is how much less a million tokens of this call cost because their beginning is cached there, in USD.
    """

    provider: str
    model: str
    features: frozenset[str] = frozenset()
    prices: Prices | None = None
    rating: float | None = None
    latency_ms: int | None = None
    payments: tuple[Payment, ...] = ()
    health: Health = "unknown"
    stay_discount: float = 0.0

    def refusals(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> tuple[str, ...]:
        """Return every reason (`reasons.py`) for which it cannot do what the intent requires; none where it can."""
        why = [reasons.lacks(name) for name in dict.fromkeys(intent.require) if name not in self.features]
        if conditions.private and _PRIVACY not in self.features:
            why.append(reasons.PRIVATE)
        if self._is_above(conditions.tier_cap):
            why.append(reasons.TIER_CAP)
        if self._is_above(conditions.phase_cap):
            why.append(reasons.PHASE_CAP)
        if (
            self.latency_ms is not None
            and intent.max_latency_ms is not None
            and self.latency_ms > intent.max_latency_ms
        ):
            why.append(reasons.latency(self.latency_ms))
        if self.health == "down" or self.provider in conditions.down:
            why.append(reasons.DOWN)
        return tuple(why)

    def meets(self, intent: Intent, conditions: Conditions = NO_CONDITIONS) -> bool:
        """Whether it can do what the intent requires: it has no `refusals`."""
        if not self.features.issuperset(intent.require):
            return False
        if conditions is NO_CONDITIONS and intent.max_latency_ms is None:
            return self.health != "down"
        return not self.refusals(intent, conditions)

    def resolve(
        self, intent: Intent, conditions: Conditions = NO_CONDITIONS, size: CallSize = USUAL_CALL
    ) -> Resolution | None:
        """Return what the intent comes to here; None where a requirement is not met. The name of the model is not looked at."""
        return self.resolution(intent, size) if self.meets(intent, conditions) else None

    def resolution(self, intent: Intent, size: CallSize = USUAL_CALL) -> Resolution:
        """Return what the intent comes to if it is asked, whatever it lacks."""
        return Resolution(
            model=self.model,
            provider=self.provider,
            estimated_cost_usd=self.cost(size, diem=intent.diem_available),
            features=tuple(sorted(self.features)),
            degraded=self.lacking(intent),
        )

    def lacking(self, intent: Intent) -> tuple[str, ...]:
        """Return the wanted features that it does not have, the preferred ones first."""
        wanted = dict.fromkeys((*intent.prefer, *intent.require))
        return tuple([name for name in wanted if name not in self.features])

    def cost(self, size: CallSize, *, diem: bool = False) -> float | None:
        """Return what a call costs, in USD; None where no price is known. With `diem` a provider that takes it costs nothing."""
        if diem and "diem" in self.payments:
            return 0.0
        return None if self.prices is None else self.prices.of(size)

    def price(self, *, diem: bool = False) -> float | None:
        """Return the blended price of a million tokens, in USD; None where no price is known."""
        if diem and "diem" in self.payments:
            return 0.0
        return None if self.prices is None else max(0.0, self.prices.blended - self.stay_discount)

    def _is_above(self, cap: Quality | None) -> bool:
        return cap is not None and self.rating is not None and self.rating > _ROWS.quality[cap]
