"""Read a provider's list of models, which may be wrong, strange or hostile, into a `Listing`.

A list that is none, or is too long, is refused whole. A row that names no model is left out, and a price that nobody can mean is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

from bardo.dialects.shared.json_values import decode_leniently
from bardo.planning.route import MAX_MODEL_NAME
from bardo.services.facts.introspect.adapters import builtin_adapters
from bardo.services.facts.introspect.answer_values import NotAnAnswer, count, inside, listed, rows_by_id
from bardo.services.facts.introspect.live import LiveFacts
from bardo.services.facts.listings.rows import ListingSource, RatePaths
from bardo.services.facts.listings.values import (
    MOST_PER_MILLION,
    MOST_PER_REQUEST,
    ListedModel,
    ListedPrice,
    ListedRates,
    Listing,
)

MOST_BYTES = 8 * 1024 * 1024
MOST_MODELS = 10_000
_NANOS = 10**9
_RATES = ListedRates.__struct_fields__
_LONGEST_NUMBER = 40
_LARGEST_EXPONENT = 20


class OddPrice(ValueError):
    """A price that nobody can mean: no number, below zero, or beyond every known price."""


def read_listing(source: ListingSource, body: bytes, at: float) -> Listing:
    """Return what a list says. Raises NotAnAnswer where it is none, or longer than any list."""
    if len(body) > MOST_BYTES:
        raise NotAnAnswer(f"it has more than {MOST_BYTES:,} bytes")
    try:
        answer = decode_leniently(body)
    except ValueError as problem:
        raise NotAnAnswer(f"it is no JSON: {problem}") from problem
    rows = _rows(source, answer)
    known, models, odd = _facts(source, answer), dict[str, ListedModel](), 0
    for name, row in _named_rows(source, rows):
        if len(models) >= MOST_MODELS:
            raise NotAnAnswer(f"it lists more than {MOST_MODELS:,} models")
        try:
            price = read_price(source, row)
        except OddPrice:
            price, odd = None, odd + 1
        models[name] = ListedModel(facts=known.get(name) or _context(source, row), price=price)
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
    said = inside(row, *source.kind.split(".")) if source.kind else None
    return said is None or any(kind in (said if isinstance(said, list) else [said]) for kind in source.kinds)


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
    """Return what a row says of prices, None where it says nothing. Raises OddPrice."""
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
    """Return a number, or the text of one, times `factor` as a whole number; None where there is none. Raises OddPrice."""
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
