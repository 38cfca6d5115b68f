"""Whether a new list of models can be believed beside the last good one, and what has changed between the two. Pure.

A list that lost more than half of its models, or changed the prices of more than a tenth of them more than tenfold, is not taken over; one
strange price among many stays what it was. An operator may accept both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from bardo.services.facts.listings.values import ListedModel, ListedPrice, ListedRates, Listing

MOST_LOST = 0.5
MOST_MOVED = 0.1
TIMES = 10
_SHOWN = 5
_RATES = ListedRates.__struct_fields__
_FACTS = tuple(name for name in ListedModel().facts.__struct_fields__ if name != "features")


class CheckedListing(msgspec.Struct, frozen=True, kw_only=True):
    """What is taken over of a new list. `refused` says why nothing is; `held` are the models that keep their price of before."""

    listing: Listing | None = None
    refused: str = ""
    held: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two lists. A model that is new, or gone, has no `field`; a value that nobody says is None."""

    model: str
    field: str = ""
    before: Any = None
    after: Any = None


def check(new: Listing, old: Listing | None, *, accept: bool = False) -> CheckedListing:
    """Return what is taken over of `new` where `old` is the last good list, None where there is none."""
    if not new.models:
        return CheckedListing(refused="it lists no model")
    if accept:
        return CheckedListing(listing=new)
    if _mostly_odd(new):
        return CheckedListing(refused=f"{new.odd:,} of its prices cannot be meant")
    if old is None:
        return CheckedListing(listing=new)
    lost = [name for name in old.models if name not in new.models]
    if len(lost) > MOST_LOST * len(old.models):
        return CheckedListing(refused=f"{len(lost):,} of {len(old.models):,} models are missing: {_names_text(lost)}")
    moved, priced = _moved_prices(new, old)
    if len(moved) > MOST_MOVED * priced:
        why = f"the prices of {len(moved):,} of {priced:,} models changed more than tenfold: {_names_text(moved)}"
        return CheckedListing(refused=why)
    return CheckedListing(listing=_holding(new, old, moved), held=tuple(moved))


def _mostly_odd(new: Listing) -> bool:
    priced = sum(one.price is not None for one in new.models.values())
    return new.odd > MOST_MOVED * (priced + new.odd)


def _names_text(names: list[str]) -> str:
    return ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else "")


def _moved_prices(new: Listing, old: Listing) -> tuple[list[str], int]:
    """Return the models whose prices changed more than tenfold, and how many have prices in both lists."""
    both = [
        (name, before.price, after.price)
        for name, before in old.models.items()
        if (after := new.models.get(name)) is not None and before.price is not None and after.price is not None
    ]
    return [name for name, before, after in both if _differ(before, after)], len(both)


def _differ(before: ListedPrice, after: ListedPrice) -> bool:
    pairs = [(getattr(before, name), getattr(after, name)) for name in (*_RATES, "request")]
    if before.long is not None and after.long is not None:
        pairs += [(getattr(before.long, name), getattr(after.long, name)) for name in _RATES]
    return any(one is not None and two is not None and _far(one, two) for one, two in pairs)


def _far(one: int, two: int) -> bool:
    """Whether two prices are more than tenfold apart; nothing is tenfold of nothing."""
    return max(one, two) > TIMES * min(one, two)


def _holding(new: Listing, old: Listing, moved: list[str]) -> Listing:
    """Return the new list with the prices of `moved` as they were."""
    if not moved:
        return new
    kept = {name: msgspec.structs.replace(new.models[name], price=old.models[name].price) for name in moved}
    return msgspec.structs.replace(new, models={**new.models, **kept})


def changes(old: Listing | None, new: Listing) -> Iterator[Change]:
    """Yield what `new` says otherwise than `old`: models that are new or gone first, then what changed of the others."""
    before = {} if old is None else old.models
    for name in sorted(before.keys() | new.models.keys()):
        if (name in before) != (name in new.models):
            yield Change(model=name, before=name in before, after=name in new.models)
    for name in sorted(before.keys() & new.models.keys()):
        yield from _changes_of(name, _flat(before[name]), _flat(new.models[name]))


def _changes_of(name: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[Change]:
    for field in sorted(before.keys() | after.keys()):
        if before.get(field) != after.get(field):
            yield Change(model=name, field=field, before=before.get(field), after=after.get(field))


def _flat(model: ListedModel) -> dict[str, Any]:
    """Return all that is said of a model, by the name of the field."""
    said = {name: getattr(model.facts, name) for name in _FACTS} | dict(model.facts.features)
    if model.price is not None:
        price = model.price
        said |= {f"price.{name}": getattr(price, name) for name in (*_RATES, "request", "threshold")}
        said |= {} if price.long is None else {f"price.long.{name}": getattr(price.long, name) for name in _RATES}
    return {name: value for name, value in said.items() if value is not None}
