"""The catalog: providers and models, what is known of each, who says so, and as of when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from bardo.planning.route import Provider, Target, target_at
from bardo.services.facts.introspect import MergedFact
from bardo.services.facts.model_list import KnownModel, known_model, names_to_ask
from bardo.surfaces.panel.catalog_lists import (
    LISTS,
    ListedName,
    fact_rows,
    fact_text,
    facts_table,
    has_words,
    model_names,
    models_table,
    preset_rows,
    provider_text,
    providers_table,
)
from bardo.surfaces.panel.pages import Page, PanelRequest
from bardo.surfaces.panel.tables import Head, Pager, Table, paged
from bardo.surfaces.presets import provider_named
from bardo.surfaces.render.facts import TITLES, conflicts_text, match_text, server_text, traits_text, value_text
from bardo.surfaces.render.listings import listed_text
from bardo.surfaces.render.prices import price_text
from bardo.surfaces.render.receipts import LAYERS
from bardo.values.errors import InvalidRequest, UnknownModel

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

_PATH = "/panel/catalog"
_AT_ONCE = 8
"""How many models are looked up before calls have their turn."""
_LONGEST = 300


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return a list of the catalog, as far as it has what is searched for."""
    which = request.query.get("list", "")
    which = which if which in LISTS else "models"
    search = request.query.get("q", "").strip()[:_LONGEST]
    table, pager = await _list_page(panel, request, which, search.lower().split())
    values = {"list": which, "lists": list(LISTS.items()), "search": search, "table": table, "pager": pager}
    return Page("catalog.html", "Catalog", values)


async def show_model(panel: Panel, request: PanelRequest) -> Page:
    """Return all that is known of one model at one provider. Raises InvalidRequest and UnknownModel."""
    name, model = request.query.get("provider", "").strip(), request.query.get("model", "").strip()
    if not model or len(model) > _LONGEST:
        raise InvalidRequest("no model is named", hint="choose one in the catalog", param="model")
    runner = panel.context.runner
    target = target_at(provider_named(name, runner.directory.providers, param="provider"), model)
    account = None if request.viewer.operator else request.viewer.account
    if account is not None and not account.may_ask(model, f"{target.provider.id}/{model}"):
        raise UnknownModel(f"the model {model!r} is not one that your key may ask")
    known = known_model(target, runner.facts, runner.prices, runner.clock())
    (asked_by,) = await names_to_ask(runner.directory, [target])
    facts = [("ask for", asked_by or "no name leads to it"), *_model_facts(known)]
    values = {"known": known.merged, "facts": facts, "table": _facts_table(known)}
    return Page("catalog_model.html", model, values)


async def _list_page(panel: Panel, request: PanelRequest, which: str, words: Sequence[str]) -> tuple[Table, Pager]:
    runner, query = panel.context.runner, request.query
    if which == "facts":
        found = [row for row in fact_rows() if has_words(fact_text(row), words)]
        some, pager = paged(found, _PATH, query)
        return facts_table(some), pager
    # Names depend on what every provider lists: they are asked as for `/v1/models`.
    configured = await runner.directory.models()
    if which == "providers":
        rows = [row for row in preset_rows() if has_words(provider_text(row), words)]
        shown, pager = paged(rows, _PATH, query)
        examples = await _examples(panel, request, [one for one in configured if one.row in shown])
        return providers_table(shown, configured, examples, addresses=request.viewer.operator), pager
    account = None if request.viewer.operator else request.viewer.account
    names = model_names(configured, runner.facts, account)
    names = [one for one in names if has_words(f"{one.provider.id}/{one.model}", words)]
    page, pager = paged(names, _PATH, query)
    targets = [Target(provider=one.provider, model=one.model) for one in page]
    known, asked_by = await _known_models(panel, targets), await names_to_ask(runner.directory, targets)
    return models_table(page, asked_by, known, searched=bool(words)), pager


async def _examples(panel: Panel, request: PanelRequest, providers: Sequence[Provider]) -> dict[str, str]:
    """Return for each provider the name of a model of it that the viewer may ask for, where there is one."""
    runner, account = panel.context.runner, None if request.viewer.operator else request.viewer.account
    firsts: dict[str, ListedName] = {}
    for one in model_names(providers, runner.facts, account):
        firsts.setdefault(one.provider.id, one)
    targets = [Target(provider=one.provider, model=one.model) for one in firsts.values()]
    names = await names_to_ask(runner.directory, targets) if targets else []
    return {provider: name for provider, name in zip(firsts, names, strict=True) if name}


async def _known_models(panel: Panel, targets: Sequence[Target]) -> list[KnownModel]:
    runner = panel.context.runner
    now, found = runner.clock(), []
    for place, target in enumerate(targets):
        if place % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
        found.append(known_model(target, runner.facts, runner.prices, now))
    return found


def _model_facts(known: KnownModel) -> list[tuple[str, str]]:
    merged = known.merged
    return [
        ("provider", f"{merged.provider} ({merged.dialect})"),
        ("in the catalog", f"{merged.id}, by {merged.maker or 'nobody known'} ({match_text(merged)})"),
        ("form of its control", merged.form),
        ("the provider", traits_text(merged.traits)),
        ("its server", server_text(merged)),
        ("its list of models", listed_text(known.listing, merged.model)),
        ("price", price_text(known.price)),
    ]


def _facts_table(known: KnownModel) -> Table:
    return Table(
        name="facts",
        caption="What is known of its thinking",
        heads=(Head("fact"), Head("value", wrap=True), Head("layer", wrap=True), Head("as of"), Head("source", wrap=True),
               Head("other layers", wrap=True)),
        rows=tuple(map(_fact, known.merged.facts)),
        empty="Nothing is known of its thinking. bardo probe finds out.",
    )  # fmt: skip


def _fact(fact: MergedFact) -> tuple[str, ...]:
    holds = fact.holds
    who = f"{holds.layer}, {LAYERS[holds.layer]}" if holds.layer in LAYERS else holds.layer
    day = "" if holds.date is None else holds.date.isoformat()
    agreed = "agree" if fact.others else ""
    return (
        TITLES[fact.field],
        value_text(fact.field, holds.value),
        who,
        day,
        holds.source,
        conflicts_text(fact) or agreed,
    )
