"""The tables of docs/reference/routing.md and prices.md: features, ratings, prices, and the numbers of the score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from bardo.accounting.cost import price_table
from bardo.catalog.features import Place, features
from bardo.catalog.models import model_qualities
from bardo.catalog.prices import price_lists, price_rows
from bardo.catalog.profile_fields import profile_fields
from bardo.catalog.routing_rows import routing_rows

Rows = tuple[Sequence[str], Iterator[Sequence[str]]]
_FACTS = {
    "thinks": "models that think",
    "adaptive": "models whose row says `adaptive`",
    "low_effort": "models that take a low level or a budget",
    "schema": "targets whose first form of a schema is the provider's own field",
    "tool_format": "models with a known format of tool calls",
    "private": "providers that keep nothing, and servers of models on this machine",
}


def feature_table() -> Rows:
    """Return every feature, with what it means and where it holds."""
    rows = [(f"`{one.name}`", one.about, _where(one.fact, one.at), _places(one.not_at)) for one in features().feature]
    return ("feature", "meaning", "where", "but not"), iter(rows)


def quality_table() -> Rows:
    """Return what is known of how good answers are."""
    rows = [(_code(row.match), row.quality) for row in model_qualities().rows]
    return ("models", "quality"), iter(rows)


def list_table() -> Rows:
    """Return by which lists of the shipped table providers charge."""
    held = price_table().sellers
    rows = [
        (_code(row.providers), _code(row.lists), f"{sum(len(held[name]) for name in row.lists):,}")
        for row in price_lists()
    ]
    return ("providers", "lists", "models"), iter(rows)


def price_rows_table() -> Rows:
    """Return the rows of prices.toml, in USD per million tokens."""
    rows = [
        (
            _code(row.match),
            _code(row.providers) or "all",
            "not known" if row.input is None else f"{row.input:f}",
            "" if row.output is None else f"{row.output:f}",
            row.source,
        )
        for row in price_rows()
    ]
    return ("models", "providers", "input", "output", "source"), iter(rows)


def weight_table() -> Rows:
    """Return the weights of the score at both ends of the cost sensitivity."""
    weights = routing_rows().weights
    named = {
        "cost": weights.cost,
        "quality": weights.quality,
        "latency": weights.latency,
        "features": weights.features,
    }
    rows = [(name, f"{one.at(0):.2f}", f"{one.at(1):.2f}") for name, one in named.items()]
    return ("term", "at cost sensitivity 0", "at 1"), iter(rows)


TABLES: dict[str, Callable[[], Rows]] = {
    "features": feature_table,
    "model-quality": quality_table,
    "price-lists": list_table,
    "price-rows": price_rows_table,
    "score-weights": weight_table,
}


def _where(fact: str | None, places: tuple[Place, ...]) -> str:
    said = [*_facts(fact), *([_places(places)] if places else [])] if fact else [_places(places)]
    return "; ".join(said)


def _facts(fact: str) -> list[str]:
    """Return where a fact holds: of a field of a profile, the places at which a row says how it is sent."""
    row = next((one for one in profile_fields() if fact == f"field:{one.name}"), None)
    if row is None:
        return [_FACTS[fact]]
    forms = [Place(models=form.models or ("*",), providers=form.providers or ("*",)) for form in row.form]
    return [*(["providers that run the hosted tool"] if row.hosted else []), _places(forms)]


def _places(places: Iterable[Place]) -> str:
    return "; ".join(map(_place, places))


def _place(place: Place) -> str:
    models = "" if place.models == ("*",) else _code(place.models)
    providers = "" if place.providers == ("*",) else _code(place.providers)
    return f"{models} at {providers}" if models and providers else models or f"all at {providers}"


def _code(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
