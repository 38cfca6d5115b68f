"""What layers are told of the targets of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from bardo.accounting.price import Price
from bardo.context.layer import TargetFacts
from bardo.engine.knowledge import TargetFacts as PlanningFacts
from bardo.engine.route import Target

if TYPE_CHECKING:
    from bardo.services.pipeline.parts import CallRunner

_MOST_KEPT = 1024


class _CachedFacts(msgspec.Struct, frozen=True):
    """What was told of a target, and what it was made from: it holds as long as that is the same."""

    known: PlanningFacts
    price: Price | None
    down: bool
    facts: TargetFacts


class TargetReader:
    """Tells what is known of targets. It keeps what it told, because most calls ask the same targets."""

    def __init__(self, runner: CallRunner) -> None:
        self._runner = runner
        self._cached: dict[tuple[str, str, str], _CachedFacts] = {}

    def facts(self, targets: Sequence[Target], now: float) -> tuple[TargetFacts, ...]:
        """Return what is known of targets at a Unix time, in their order."""
        runner, troubled = self._runner, self._runner.health.store.troubled
        watched = runner.watch() if troubled else 0.0
        found = []
        for target in targets:
            provider = target.provider
            facts, price = runner.facts.of(target), runner.prices.price(provider, target.model, now)
            down = troubled and runner.health.is_out(provider.place, target.model, watched)
            place = provider.place, target.model, provider.row.dialect
            told = self._cached.get(place)
            if told is None or told.known is not facts or told.price is not price or told.down is not down:
                if len(self._cached) >= _MOST_KEPT:
                    self._cached.clear()
                told = self._cached[place] = _CachedFacts(facts, price, down, _facts(target, facts, price, down=down))
            found.append(told.facts)
        return tuple(found)


def _facts(target: Target, facts: PlanningFacts, price: Price | None, *, down: bool) -> TargetFacts:
    rates = None if price is None else price.schedule.rates
    return TargetFacts(
        provider=target.provider.id,
        model=target.model,
        dialect=target.provider.row.dialect,
        row=target.provider.row.id,
        address=target.provider.address,
        window=facts.context,
        max_output_tokens=facts.known.facts.output_limit,
        input_nanos=None if rates is None else rates.input,
        cache_read_nanos=None if rates is None else rates.cache_read,
        down=down,
    )
