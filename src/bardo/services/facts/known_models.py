"""All that is known of one model at one provider: its facts with who says so, the list that names it, and its price."""

from __future__ import annotations

import msgspec

from bardo.accounting.price_table import Price
from bardo.planning.route import Target
from bardo.services.facts.introspect import MergedModel, merge
from bardo.services.facts.introspect.live import FactsAnswer
from bardo.services.facts.listings import Listing
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.price_book import PriceBook


class KnownModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model at a provider. `listing` is the list of the provider that was kept, None where there is none."""

    merged: MergedModel
    listing: Listing | None
    price: Price | None


def known_model(
    target: Target, facts: ModelFacts, prices: PriceBook, now: float, *, learned: FactsAnswer | None = None
) -> KnownModel:
    """Return what is known of a target at a Unix time. `learned` is what its server says, else what it last said is taken."""
    said = facts.learned(target) if learned is None else learned
    own = [layer for layer in facts.of(target, asks=False).layers if layer.name != "L1"]
    kept = facts.listing(target.provider)
    day = None if kept is None else kept.date
    return KnownModel(
        merged=merge(target.provider, target.model, said, own=own, listed_on=day),
        listing=kept,
        price=prices.price(target.provider, target.model, now),
    )
