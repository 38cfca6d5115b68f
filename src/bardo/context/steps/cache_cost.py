"""What it costs to change a prompt where its provider still has it in the cache, and from where on a change pays.

A provider bills the beginning of a prompt that it has read lately at the price of a cache read. A change in that beginning has all that
follows it read anew, once; what the change left out is not billed again, neither now nor in later turns. All costs here are in tokens at
the price of input.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.context.layer import LayerFacts, TargetFacts

ASSUMED_READ_SHARE = 0.1
"""What a cache read costs of the price of input where a price is unknown: what most providers ask (catalog/data/prices.toml, 2026-11)."""


_MARGIN = 1.5
"""How many times its cost a change has to save. Conversations end early; of 1, 1.5, 2, 3 and 4 this costs least (benchmarks context)."""


class WarmPrefix(msgspec.Struct, frozen=True, kw_only=True):
    """How many tokens of the conversation the provider probably has in its cache, and what reading one costs, as a share of its price."""

    tokens: int = 0
    read_share: float = ASSUMED_READ_SHARE


class FirstChange(msgspec.Struct, frozen=True):
    """The token of the conversation from which on the prompt differs from the cached one, for the layers after this one."""

    tokens: int


class Edit(msgspec.Struct, frozen=True, kw_only=True):
    """A change that a layer could make: from which token of the conversation on, and how many tokens fewer there are then."""

    before: int
    saved: int


def warm_prefix(facts: LayerFacts, sent_tokens: int, sent_at: float, cache_seconds: float) -> WarmPrefix:
    """Return what the first target probably has in its cache: what it is known to have, or what this session sent not long ago.

    Nothing behind a change that an earlier layer makes in this call.
    """
    lately = sent_tokens if facts.now - sent_at < cache_seconds else 0
    warm = max(lately, facts.targets[0].warm_tokens) if facts.targets else lately
    changed = [change.tokens for change in facts.found.values() if isinstance(change, FirstChange)]
    return WarmPrefix(
        tokens=min([warm, *changed]), read_share=_read_share(facts.targets[0]) if facts.targets else ASSUMED_READ_SHARE
    )


def behind(edits: Sequence[Edit], made: Sequence[Edit]) -> list[Edit]:
    """Return edits with their places in the prompt as it was sent: what was left out before them is no longer there."""
    moved: list[Edit] = []
    place, left_out = 0, 0
    for edit in edits:
        while place < len(made) and made[place].before < edit.before:
            left_out += made[place].saved
            place += 1
        moved.append(Edit(before=edit.before - left_out, saved=edit.saved))
    return moved


def _read_share(target: TargetFacts) -> float:
    if not target.input_nanos or target.cache_read_nanos is None:
        return ASSUMED_READ_SHARE
    return min(1.0, target.cache_read_nanos / target.input_nanos)


def first_worth_making(edits: Sequence[Edit], warm: WarmPrefix, turns: int) -> int:
    """Return the place of the first edit such that making it and all after it saves most; the number of edits where none pays.

    `edits` stand in the order of the prompt. `turns` is how many calls with this prompt are expected, this one among them.
    """
    best, place_of_best = 0.0, len(edits)
    saving, saved_in_cache = 0.0, 0
    for place in reversed(range(len(edits))):
        edit = edits[place]
        if edit.before < warm.tokens:
            saved_in_cache += edit.saved
            saving += edit.saved * warm.read_share * turns
            read_anew = max(0, warm.tokens - edit.before - saved_in_cache)
            net = saving - _MARGIN * read_anew * (1 - warm.read_share)
        else:
            saving += edit.saved * (1 + warm.read_share * (turns - 1))
            net = saving
        if net > best:
            best, place_of_best = net, place
    return place_of_best
