"""What a provider's kept list says of one model, beside how it thinks: prices, context and features, with the list's source and day."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.services.facts.listings import ListedPrice, Listing

_NANOS = 10**9
_RATES = {"input": "input", "output": "output", "cache_read": "cache reads", "cache_write": "cache writes"}


def listed_text(kept: Listing | None, model: str) -> str:
    """Return what the list says of a model, in words."""
    if kept is None:
        return "none kept: `bardo catalog refresh`"
    where = f"{kept.source} {kept.date}"
    found = kept.models.get(model)
    if found is None:
        return f"{where}: it does not list this model"
    context = "" if found.facts.context is None else f"context {found.facts.context:,}"
    features = ", ".join(name if has else f"no {name}" for name, has in found.facts.features)
    said = [part for part in (price_text(found.price), context, features) if part]
    return f"{where}: {'; '.join(said) or 'it lists the model, and no more'}"


def price_text(price: ListedPrice | None) -> str:
    """Return a price in USD for a million tokens; empty where none is known."""
    if price is None:
        return ""
    rates = [(name, getattr(price, field)) for field, name in _RATES.items()]
    known = [f"{name} ${value / _NANOS:g}/M" for name, value in rates if value is not None]
    fee = [] if price.request is None else [f"${price.request / _NANOS:g} a call"]
    long = [] if price.threshold is None else [f"more above {price.threshold:,} tokens"]
    return ", ".join([*known, *fee, *long])


def listed_json(kept: Listing | None, model: str) -> dict[str, Any] | None:
    """Return what the list says of a model for a program: prices in nano-dollars for a million tokens."""
    if kept is None:
        return None
    found = kept.models.get(model)
    about = {"source": kept.source, "at": kept.at, "date": kept.date.isoformat()}
    if found is None:
        return {**about, "listed": False}
    price = None if found.price is None else msgspec.to_builtins(found.price)
    return {
        **about,
        "listed": True,
        "context": found.facts.context,
        "features": dict(found.facts.features),
        "price": price,
    }
