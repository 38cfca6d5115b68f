"""Facts as tables of a terminal: models and the facts about them, prices, listings, and what was learned."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.accounting.cost import Price, Rates, Schedule
from bardo.catalog.models import BudgetRange, ModelIds
from bardo.catalog.prices import TOKEN_PRICES
from bardo.catalog.rows import ProviderTraits
from bardo.routing.learned.outcomes import OutcomeTable
from bardo.routing.learned.router import LearnedState, RouteState
from bardo.services.facts.introspect import LayerValue, MergedFact, MergedModel
from bardo.services.facts.listings import ListedPrice, Listing
from bardo.surfaces.render.wording import NOT_REPORTED
from bardo.values.usage import usd

TITLES = {
    "control": "told by",
    "efforts": "efforts",
    "aliases": "act alike",
    "default_effort": "default",
    "omit": "unasked",
    "off": "can be off",
    "off_up_to": "off up to",
    "nearest_off": "instead of off",
    "budget": "budget",
    "form": "form",
    "switch": "switch",
    "model_ids": "ids of the pair",
    "output_limit": "longest reply",
    "shutdown": "shuts down",
}
_VALUE_TEXTS: dict[str, dict[Any, str]] = {
    "omit": {"on": "thinks", "off": "does not think"},
    "off": {True: "yes", False: "no"},
}


def value_text(field: str, value: Any) -> str:
    """Return a fact's value in words."""
    if field in _VALUE_TEXTS:
        return _VALUE_TEXTS[field].get(value, str(value))
    if field == "output_limit":
        return f"{value:,} tokens"
    if isinstance(value, BudgetRange):
        most = "" if value.max is None else f" to {value.max:,}"
        dynamic = "" if value.dynamic is None else f", {value.dynamic} leaves it to the model"
        return f"{'from ' if value.max is None else ''}{value.min:,}{most} tokens{dynamic}"
    if isinstance(value, ModelIds):
        return f"{value.thinking} thinks, {value.plain} does not"
    if isinstance(value, dict):
        return ", ".join(f"{name} as {acts}" for name, acts in value.items()) or "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def source_text(saying: LayerValue) -> str:
    """Return who says so, and as of when: `L2 2026-11-20`."""
    return f"{saying.layer} {saying.date}" if saying.date else saying.layer


def conflicts_text(fact: MergedFact) -> str:
    """Return what other layers say of the field, where it is something else."""
    return "; ".join(f"{source_text(one)} says {value_text(fact.field, one.value)}" for one in fact.against)


_TRAITS = {
    "private": "keeps nothing",
    "self_funding": "pays for itself",
    "context_engineering": "prompts may be made smaller",
}


def traits_text(traits: ProviderTraits) -> str:
    """Return what kind of business a provider is, in words."""
    has = [words for name, words in _TRAITS.items() if getattr(traits, name)]
    paid = f"paid by {', '.join(traits.payment)}" if traits.payment else "nobody knows how it is paid"
    return "; ".join([*has, paid])


def facts_line(merged: MergedModel) -> str:
    """Return everything that is known in one line."""
    said = [
        f"{TITLES[fact.field]} {value_text(fact.field, fact.holds.value)} ({source_text(fact.holds)})"
        for fact in merged.facts
        if fact.field != "form"
    ]
    return "; ".join([*said, f"form {merged.form}"]) if said else "nothing is known of its thinking"


def facts_json(merged: MergedModel) -> dict[str, Any]:
    """Return everything that is known for a program."""
    live = merged.live
    return {
        "provider": merged.provider,
        "dialect": merged.dialect,
        "model": merged.model,
        "catalog_id": merged.id,
        "maker": merged.maker,
        "how": merged.how,
        "assumed_like": merged.like or None,
        "form": merged.form,
        "traits": msgspec.to_builtins(merged.traits),
        "facts": {fact.field: _fact_json(fact) for fact in merged.facts},
        "disagreements": [fact.field for fact in merged.disagreements],
        "live": None
        if live is None
        else {"at": live.at, "adapter": live.adapter, "problem": live.problem, **_server_fields(live)},
    }


def _fact_json(fact: MergedFact) -> dict[str, Any]:
    others = [_saying_json(one) for one in fact.others]
    return {**_saying_json(fact.holds), "others": others, "agreed": not fact.against}


def _saying_json(saying: LayerValue) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(saying)
    return plain


def _server_fields(live: Any) -> dict[str, Any]:
    """Return what a server says beside facts of control."""
    names = ("starts_inside", "text_format", "known_as", "context")
    return {name: getattr(live.facts, name, None) for name in names}


def match_text(merged: MergedModel) -> str:
    """Write how the row of a model was found."""
    return f"{merged.how} to be like {merged.like}" if merged.like else merged.how


def server_text(merged: MergedModel) -> str:
    """Write what the server itself said, beside how the model thinks."""
    if merged.live is None:
        return "not asked"
    if merged.live.facts is None:
        return f"no facts: {merged.live.problem}"
    said = merged.live.facts
    beside = {
        "weights": said.known_as,
        "text format": said.text_format,
        "context": f"{said.context:,}" if said.context else None,
        "prompt opens the thinking": None if said.starts_inside is None else "yes" if said.starts_inside else "no",
    }
    return ", ".join(f"{name} {value}" for name, value in beside.items() if value) or "it answers"


_SHOWN = {"input": "input", "cached_input": "read from the cache", "cache_write": "written to it", "output": "output"}


def price_text(price: Price | None) -> str:
    """Return what a model costs, in US dollars per million tokens."""
    if price is None:
        return "not known"
    prices = _named_rates(price.schedule.rates)
    told = ", ".join(f"{word} {_dollars(prices[name])}" for name, word in _SHOWN.items() if name in prices)
    tiers = "".join(_tier_text(tier.above, tier.rates) for tier in price.schedule.tiers)
    since = f"; since {price.valid_from}" if price.valid_from else ""
    return f"{told} per million tokens{tiers} ({' '.join(filter(None, (price.source, price.page)))}{since})"


def short_price(price: Price | None) -> str:
    """Return what a million tokens of input and of output cost; a dash where it is unknown."""
    prices = {} if price is None else _named_rates(price.schedule.rates)
    return " / ".join(_dollars(prices[name]) for name in ("input", "output") if name in prices) or NOT_REPORTED


def price_json(price: Price | None) -> dict[str, Any] | None:
    """Return a price as JSON, in US dollars, or None if it is not known."""
    if price is None:
        return None
    return {
        "usd_per_million_tokens": _named_rates(price.schedule.rates),
        "tiers": _tiers(price.schedule),
        "variants": {
            name: {"usd_per_million_tokens": _named_rates(one.rates), "tiers": _tiers(one)}
            for name, one in price.variants.items()
        },
        "request_fee_usd": usd(price.request_fee),
        "search_fee_usd": None if price.search_fee is None else usd(price.search_fee),
        "source": price.source,
        "page": price.page or None,
        "from": price.valid_from or None,
    }


def _tiers(schedule: Schedule) -> list[dict[str, Any]]:
    return [{"above": tier.above, "usd_per_million_tokens": _named_rates(tier.rates)} for tier in schedule.tiers]


def _named_rates(rates: Rates) -> dict[str, float]:
    """Return the rates that are known, in US dollars, by the names that `[[prices]]` has for them."""
    pairs = zip(TOKEN_PRICES, msgspec.structs.astuple(rates), strict=True)
    return {name: usd(rate) for name, rate in pairs if rate is not None}


def _tier_text(above: int, rates: Rates) -> str:
    prices = _named_rates(rates)
    told = ", ".join(f"{name} {_dollars(prices[name])}" for name in ("input", "output") if name in prices)
    return f"; above {above:,} tokens of input {told}"


def _dollars(amount: float) -> str:
    return f"${amount:.10f}".rstrip("0").rstrip(".")


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
    said = [part for part in (listed_price_text(found.price), context, features) if part]
    return f"{where}: {'; '.join(said) or 'it lists the model, and no more'}"


def listed_price_text(price: ListedPrice | None) -> str:
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


def route_fields(name: str, route: RouteState) -> dict[str, Any]:
    """Return whether routing pays on one route, and what it has cost to find out."""
    found = route.comparison()
    return {
        "route": name,
        "verdict": found.verdict,
        "off": route.off,
        "gain": found.gain,
        "interval": None if found.low is None else [found.low, found.high],
        "routed": msgspec.to_builtins(found.routed),
        "best_single": msgspec.to_builtins(found.single),
        "regret": {"spent": route.budget.spent, "allowed": route.budget.per_choice * route.budget.choices},
    }


def model_fields(state: LearnedState) -> list[dict[str, Any]]:
    """Return the facts about each model: how many outcomes, how often they were good, and what a call costs."""
    table = OutcomeTable(state.clusters, rows=state.rows)
    found = []
    for model in table.models:
        whole = state.rows[model].whole
        one = table.overall(model)
        found.append({"model": model, "outcomes": whole.count, "success": one.success, "cost_usd": one.cost})
    return found


def learned_record(state: LearnedState) -> dict[str, Any]:
    """Return the facts about routes and models."""
    return {
        "routes": [route_fields(name, one) for name, one in sorted(state.routes.items())],
        "models": model_fields(state),
    }


def model_cells(model: dict[str, Any]) -> tuple[str, ...]:
    """Return the facts about one model, in words."""
    cost = "unknown" if model["cost_usd"] is None else f"${model['cost_usd']:.6f}"
    return model["model"], f"{model['outcomes']:.1f}", f"{model['success']:.3f}", cost


def route_cells(route: dict[str, Any]) -> tuple[str, ...]:
    """Return whether routing pays on one route, in words: verdict, gain, its interval, the outcomes of both arms, and regret."""
    gain = "" if route["gain"] is None else f"{route['gain']:+.3f}"
    interval = "" if route["interval"] is None else "{:+.3f} to {:+.3f}".format(*route["interval"])
    verdict = f"{route['verdict']}, switched off" if route["off"] else route["verdict"]
    spent = f"{route['regret']['spent']:.2f} of {route['regret']['allowed']:.2f}"
    counts = (f"{route[arm]['count']}" for arm in ("routed", "best_single"))
    return route["route"], verdict, gain, interval, *counts, spent
