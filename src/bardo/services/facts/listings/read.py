"""Read a provider's list of models, which may be wrong, strange or hostile, and decide how much of it is taken over.

A list that is none, or is too long, is refused whole. A row that names no model is left out, and an impossible price is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from bardo.dialects.shared.json_values import decode_leniently
from bardo.planning.route import MAX_MODEL_NAME
from bardo.services.facts.introspect.adapters import builtin_adapters
from bardo.services.facts.introspect.answer_values import NotAnAnswer, count, inside, listed, rows_by_id
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.listings.rows import (
    MOST_PER_MILLION,
    MOST_PER_REQUEST,
    ListedModel,
    ListedPrice,
    ListedRates,
    Listing,
    ListingSource,
    RatePaths,
)

MOST_BYTES = 8 * 1024 * 1024
MOST_MODELS = 10_000
_NANOS = 10**9
_RATES = ListedRates.__struct_fields__
_LONGEST_NUMBER = 40
_LARGEST_EXPONENT = 20


class OddPrice(ValueError):
    """An impossible price: no number, below zero, or beyond every known price."""


def read_listing(source: ListingSource, body: bytes, at: float) -> Listing:
    """Return what a list says. Raises NotAnAnswer where it is none, or longer than any list."""
    if len(body) > MOST_BYTES:
        raise NotAnAnswer(f"it has more than {MOST_BYTES:,} bytes")
    try:
        answer = decode_leniently(body)
    except ValueError as problem:
        raise NotAnAnswer(f"it is no JSON: {problem}") from problem
    rows = _rows(source, answer)
    facts, models, odd = _facts(source, answer), dict[str, ListedModel](), 0
    for name, row in _named_rows(source, rows):
        if len(models) >= MOST_MODELS:
            raise NotAnAnswer(f"it lists more than {MOST_MODELS:,} models")
        try:
            price = read_price(source, row)
        except OddPrice:
            price, odd = None, odd + 1
        models[name] = ListedModel(facts=facts.get(name) or _context(source, row), price=price)
    return Listing(source=source.name, at=at, models=models, odd=odd)


def _rows(source: ListingSource, answer: Any) -> list[dict[str, Any]]:
    if "" in source.lists and isinstance(answer, list):
        return [row for row in answer if isinstance(row, dict)]
    return listed(answer, *(name or "data" for name in source.lists))


def _named_rows(source: ListingSource, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each name that can be one, with its row."""
    for name, row in rows_by_id([row for row in rows if _counts(source, row)], *source.ids):
        plain = name.removeprefix(source.prefix)
        if plain and len(plain) <= MAX_MODEL_NAME and plain.isprintable():
            yield plain, row


def _counts(source: ListingSource, row: dict[str, Any]) -> bool:
    """Whether a row is about a model that bardo can ask; one that does not say is taken to be."""
    value = inside(row, *source.kind.split(".")) if source.kind else None
    return value is None or any(kind in (value if isinstance(value, list) else [value]) for kind in source.kinds)


def _facts(source: ListingSource, answer: Any) -> dict[str, LiveFacts]:
    """Return what live introspection reads in the same answer; nothing where it does not ask these providers."""
    adapter = builtin_adapters().get(source.providers[0])
    if adapter is None:
        return {}
    try:
        return adapter.read({adapter.questions[0].name: answer}, "")
    except (NotAnAnswer, KeyError):
        return {}


def _context(source: ListingSource, row: dict[str, Any]) -> LiveFacts:
    return LiveFacts(context=count(inside(row, *source.context.split("."))) if source.context else None)


def read_price(source: ListingSource, row: dict[str, Any]) -> ListedPrice | None:
    """Return what a row says of prices, or None if it says nothing. Raises OddPrice."""
    paths = source.price
    if paths is None:
        return None
    rates = _rates(paths, row, source)
    if rates["input"] is None:
        return None
    request = _amount(_value_at(row, paths.request), _NANOS, MOST_PER_REQUEST)
    threshold, long = _long_rates(source, row)
    return ListedPrice(**rates, request=request or None, threshold=threshold, long=long)


def _long_rates(source: ListingSource, row: dict[str, Any]) -> tuple[int | None, ListedRates | None]:
    if source.long_price is None:
        return None, None
    threshold = count(_value_at(row, source.long_price.threshold))
    rates = _rates(source.long_price, row, source) if threshold else {}
    return (threshold, ListedRates(**rates)) if rates.get("input") is not None else (None, None)


def _rates(paths: RatePaths, row: dict[str, Any], source: ListingSource) -> dict[str, int | None]:
    factor = _NANOS * (1_000_000 if source.unit == "token" else 1)
    return {name: _amount(_value_at(row, getattr(paths, name)), factor, MOST_PER_MILLION) for name in _RATES}


def _value_at(row: dict[str, Any], path: str) -> Any:
    return inside(row, *path.split(".")) if path else None


def _amount(value: Any, factor: int, most: int) -> int | None:
    """Return a number, or the text of one, times `factor` as a whole number, or None if there is none. Raises OddPrice."""
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise OddPrice
    try:
        text = str(value)
        amount = Decimal(text) if len(text) <= _LONGEST_NUMBER else Decimal("NaN")
    except (InvalidOperation, ValueError):
        raise OddPrice from None
    if not amount.is_finite() or amount < 0 or amount.adjusted() > _LARGEST_EXPONENT or amount * factor > most:
        raise OddPrice
    return int((amount * factor).to_integral_value())


MOST_LOST = 0.5
MOST_MOVED = 0.1
TIMES = 10
_SHOWN = 5
_FACTS = tuple(name for name in ListedModel().facts.__struct_fields__ if name != "features")


class CheckedListing(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a new list that is taken over. `refused` says why none is; `held` are the models that keep their price of before."""

    listing: Listing | None = None
    refused: str = ""
    held: tuple[str, ...] = ()


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One difference between two lists. A model that is new, or gone, has no `field`; a value that is not stated is None."""

    model: str
    field: str = ""
    before: Any = None
    after: Any = None


def check(new: Listing, old: Listing | None, *, accept: bool = False) -> CheckedListing:
    """Return the part of `new` that is taken over. `old` is the last good list, or None if there is none.

    A list that lost more than half of its models, or changed the prices of more than a tenth of them more than tenfold, is not taken over;
    one strange price among many stays as before. An operator may accept both.
    """
    if not new.models:
        return CheckedListing(refused="it lists no model")
    if accept:
        return CheckedListing(listing=new)
    priced = sum(model.price is not None for model in new.models.values())
    if new.odd > MOST_MOVED * (priced + new.odd):
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
    if not moved:
        holding = new
    else:
        unchanged = {name: msgspec.structs.replace(new.models[name], price=old.models[name].price) for name in moved}
        holding = msgspec.structs.replace(new, models={**new.models, **unchanged})
    return CheckedListing(listing=holding, held=tuple(moved))


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
    # Nothing is tenfold of nothing.
    return any(one is not None and two is not None and max(one, two) > TIMES * min(one, two) for one, two in pairs)


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
    fields = {name: getattr(model.facts, name) for name in _FACTS} | dict(model.facts.features)
    if model.price is not None:
        price = model.price
        fields |= {f"price.{name}": getattr(price, name) for name in (*_RATES, "request", "threshold")}
        fields |= {} if price.long is None else {f"price.long.{name}": getattr(price.long, name) for name in _RATES}
    return {name: value for name, value in fields.items() if value is not None}
