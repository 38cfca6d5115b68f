"""What is known of a model, in words: each fact with who says so and as of when, and who says otherwise."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.catalog.models import BudgetRange, ModelIds
from bardo.catalog.rows import ProviderTraits
from bardo.services.facts.introspect import LayerValue, MergedFact, MergedModel

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
        return _range_text(value)
    if isinstance(value, ModelIds):
        return f"{value.thinking} thinks, {value.plain} does not"
    if isinstance(value, dict):
        return ", ".join(f"{name} as {acts}" for name, acts in value.items()) or "none"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _range_text(span: BudgetRange) -> str:
    most = "" if span.max is None else f" to {span.max:,}"
    dynamic = "" if span.dynamic is None else f", {span.dynamic} leaves it to the model"
    return f"{'from ' if span.max is None else ''}{span.min:,}{most} tokens{dynamic}"


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
