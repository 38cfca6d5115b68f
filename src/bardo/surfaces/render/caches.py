"""What the cache of replies and the caches of prompts did, in words and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from bardo.adapters.stores.log.row import CacheTotal, ReplyCacheTotal
from bardo.context.cache.confidence import comparisons_needed
from bardo.services.pipeline.reply_cache.evidence import SimilarFigures
from bardo.surfaces.render.wording import NOT_REPORTED, count, dollars
from bardo.values.usage import usd

GIVEN = ("hit", "similar")
"""What the rows of calls say that got a kept reply."""


def reply_cache_cells(one: ReplyCacheTotal, calls: int) -> tuple[str, ...]:
    """Return what the cache did, how often, its share of all `calls`, and what that saved."""
    saved = ""
    if one.cache in GIVEN:
        saved = dollars(None if one.saved_nanos is None else usd(one.saved_nanos))
        if one.unknown and one.saved_nanos is not None:
            saved += f" and {count(one.unknown)} calls of unknown cost"
    return one.cache.replace(":", ": "), count(one.calls), f"{one.calls / calls:.1%}", saved


def reply_cache_json(totals: Sequence[ReplyCacheTotal], held: tuple[int, int] | None) -> dict[str, Any]:
    """Return what the cache of replies did, for a program. `held` are the entries and bytes of its store."""
    saved = [one.saved_nanos for one in totals if one.cache in GIVEN and one.saved_nanos is not None]
    return {
        "calls": {one.cache: one.calls for one in totals},
        "saved_usd": usd(sum(saved)) if saved else None,
        "unknown_savings": sum(one.unknown for one in totals if one.cache in GIVEN),
        "store": None if held is None else {"entries": held[0], "bytes": held[1]},
    }


def similar_text(figures: SimilarFigures, budget: float) -> Iterator[str]:
    """Write what became of similar questions, in lines: everything that was counted in a folder, whenever that was."""
    low, high = figures.evidence.false_rate
    yield (
        f"looked for a similar one {count(figures.lookups)} times: {count(figures.served)} served, "
        f"{count(figures.shadowed)} only compared, "
        f"{count(figures.rechecked)} asked again, {count(figures.refused_by_guard)} refused by the guard"
    )
    if not figures.evidence.total:
        needed = count(comparisons_needed(budget))
        yield f"no answers were compared yet; {needed} without an error are needed for {budget:.1%}"
        return
    yield (
        f"{count(figures.evidence.total)} answers compared: {count(figures.different)} wrong, "
        f"{figures.different / figures.evidence.total:.1%} ({low:.1%} to {high:.1%}); budget {budget:.1%}; "
        f"{count(figures.undecided)} could not be told"
    )


def similar_json(figures: SimilarFigures, budget: float) -> dict[str, Any]:
    """Return what became of similar questions, for a program. `budget` is the share of wrong answers that is allowed."""
    low, high = figures.evidence.false_rate
    total = figures.evidence.total
    return {
        "embedding": figures.fingerprint,
        "lookups": figures.lookups,
        "served": figures.served,
        "shadowed": figures.shadowed,
        "rechecked": figures.rechecked,
        "refused_by_guard": figures.refused_by_guard,
        "compared": {"same": figures.same, "different": figures.different, "undecided": figures.undecided},
        "false_hits": figures.different / total if total else None,
        "false_hits_interval": [low, high],
        "max_false_hit": budget,
    }


def prompt_cache_cells(one: CacheTotal) -> tuple[str, ...]:
    """Return whose calls these are, their tokens, how many of them a cache held, and what that saved."""
    share = (
        ""
        if not one.input_tokens or one.cached_input_tokens is None
        else f" ({one.cached_input_tokens / one.input_tokens:.0%})"
    )
    return (
        one.provider or "nobody",
        one.model or NOT_REPORTED,
        one.key_id or "",
        count(one.calls),
        count(one.input_tokens),
        count(one.cached_input_tokens) + share,
        count(one.cache_write_tokens),
        dollars(None if one.saved_nanos is None else usd(one.saved_nanos)),
    )
