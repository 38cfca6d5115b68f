"""The catalog page: the configured providers, their models and all presets, with each fact's source and date."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.catalog.load import builtin
from bardo.catalog.models import ModelRow, builtin_models
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider, Target, target_at
from bardo.services.facts.introspect import MergedFact
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.model_list import ModelEntry, model_entry, names_to_ask
from bardo.surfaces.panel.pages import Page, PanelRequest
from bardo.surfaces.panel.tables import Cell, Head, Pager, Table, paged
from bardo.surfaces.presets import provider_named
from bardo.surfaces.render.calls import LAYERS
from bardo.surfaces.render.facts import (
    TITLES,
    conflicts_text,
    listed_text,
    match_text,
    price_text,
    server_text,
    short_price,
    source_text,
    traits_text,
    value_text,
)
from bardo.surfaces.render.wording import NOT_REPORTED, count
from bardo.values.errors import InvalidRequest, UnknownModel

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

LISTS = {"models": "configured models", "providers": "providers", "facts": "built-in facts"}
_NOTHING_FOUND = "Nothing matches all of these words."


class ListedName(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a configured provider, by its name there."""

    provider: Provider
    model: str

    @property
    def address(self) -> str:
        """Where the page of the model is."""
        return model_address(self.provider.id, self.model)


def model_address(provider: str, model: str) -> str:
    """Return where the page of a model is."""
    return f"/panel/catalog/model?{urlencode({'provider': provider, 'model': model})}"


def model_names(providers: Iterable[Provider], facts: ModelFacts, account: Account | None) -> list[ListedName]:
    """Return the models that are configured, or stand in a list, of every provider; of an account those that it may ask."""
    found = []
    for provider in providers:
        kept = facts.listing(provider)
        names = dict.fromkeys((*provider.models, *(() if kept is None or provider.configured_models else kept.models)))
        found += [
            ListedName(provider=provider, model=model)
            for model in names
            if account is None or account.may_ask(model, f"{provider.id}/{model}")
        ]
    return found


def has_words(text: str, words: Sequence[str]) -> bool:
    """Whether a text has all of some words, which are in small letters."""
    lowered = text.lower()
    return all(word in lowered for word in words)


def models_table(
    names: Sequence[ListedName], asked_by: Sequence[str], known: Sequence[ModelEntry], *, searched: bool
) -> Table:
    """Return a row for each model: what it is asked for by, the facts about its thinking with who says so, its context and its price."""
    return Table(
        name="models",
        caption="Models of the configured providers",
        heads=(Head("model", wrap=True), Head("provider"), Head("its name there", wrap=True), Head("thinking", wrap=True),
               Head("source", wrap=True), Head("context", number=True), Head("$ per 1M tokens, in / out", number=True), Head("listed on")),
        rows=tuple(_model(*row) for row in zip(names, asked_by, known, strict=True)),
        empty=_NOTHING_FOUND if searched else "No models are known. List them under a provider, or run bardo catalog refresh.",
    )  # fmt: skip


def _model(name: ListedName, asked_by: str, known: ModelEntry) -> tuple[Cell | str, ...]:
    merged, listed = known.merged, known.listing and known.listing.models.get(name.model)
    fact = next((one for one in merged.facts if one.field == "control"), None)
    efforts = merged["efforts"]
    words = "" if fact is None else value_text("control", fact.holds.value)
    live = merged.live and merged.live.facts and merged.live.facts.context
    context = live or (listed and listed.facts.context)
    day = known.listing.date.isoformat() if known.listing is not None and listed is not None else ""
    return (
        Cell(asked_by or name.model, href=name.address),
        name.provider.id,
        _other_name(name, asked_by),
        Cell(words or "unknown", below=", ".join(efforts) if efforts else ""),
        "" if fact is None else source_text(fact.holds) + (", sources disagree" if merged.disagreements else ""),
        count(context) if context else NOT_REPORTED,
        short_price(known.price),
        day,
    )


def _other_name(name: ListedName, asked_by: str) -> str:
    """Return what is to be said of a model's name there, where it is not asked for by it."""
    if not asked_by:
        return "no name leads to it"
    return "" if asked_by == name.model else name.model


def preset_rows() -> Sequence[ProviderRow]:
    """Return every provider that the catalog has a row of."""
    return builtin().providers


def provider_text(row: ProviderRow) -> str:
    """Return what a provider can be found by."""
    return " ".join((row.id, row.name, row.dialect, *row.key_variables, *row.aliases))


def providers_table(
    rows: Sequence[ProviderRow], configured: Sequence[Provider], examples: Mapping[str, str], *, addresses: bool
) -> Table:
    """Return a row for each provider: its dialect, the names of its variables, and what is configured of it.

    `examples` are models of configured providers, by the names that they are asked for by.
    """
    return Table(
        name="providers",
        caption="Providers",
        heads=(Head("preset"), Head("name", wrap=True), Head("dialect"), Head("key variables", wrap=True), Head("data retention"),
               Head("configured here", wrap=True), Head("ask for, as an example", wrap=True), Head("address", wrap=True)),
        rows=tuple(_provider(row, [one for one in configured if one.row.id == row.id], examples, addresses) for row in rows),
        empty=_NOTHING_FOUND,
    )  # fmt: skip


def _provider(
    row: ProviderRow, own: Sequence[Provider], examples: Mapping[str, str], addresses: bool
) -> tuple[Cell | str, ...]:
    # An address of one's own may say more than other keys' holders should know.
    shown = row.base_url if addresses or not own else ""
    models = sum(len(one.models) for one in own)
    here = ", ".join(one.id for one in own)
    return (
        row.id,
        row.name,
        row.dialect,
        ", ".join(row.key_variables) or NOT_REPORTED,
        "none" if row.private else "",
        Cell(here, below=f"{models:,} models" if models else "") if own else "",
        ", ".join(examples[one.id] for one in own if one.id in examples),
        shown or ("your own" if not row.base_url else ""),
    )


def fact_rows() -> Sequence[ModelRow]:
    """Return the built-in rows about models."""
    return builtin_models().rows


def fact_text(row: ModelRow) -> str:
    """Return what a row can be found by."""
    return " ".join((row.provider, *row.match, row.source))


def facts_table(rows: Sequence[ModelRow]) -> Table:
    """Return a row for each built-in row: which models it is about, what it says, and where from as of when."""
    return Table(
        name="facts",
        caption="Built-in facts about models",
        heads=(Head("models", wrap=True), Head("provider"), Head("thinking", wrap=True), Head("efforts", wrap=True), Head("form"),
               Head("as of"), Head("source", wrap=True)),
        rows=tuple(map(_listed_fact, rows)),
        empty=_NOTHING_FOUND,
    )  # fmt: skip


def _listed_fact(row: ModelRow) -> tuple[Cell | str, ...]:
    like = f"as {row.like}" if row.like else ""
    return (
        ", ".join(row.match),
        row.provider,
        Cell(value_text("control", row.control) if row.control else like, below="assumed" if row.assumed else ""),
        ", ".join(row.efforts or ()),
        row.form or "",
        row.date.isoformat() if row.date is not None else "",
        row.source,
    )


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
    services = panel.context.services
    target = target_at(provider_named(name, services.directory.providers, param="provider"), model)
    account = None if request.viewer.operator else request.viewer.account
    if account is not None and not account.may_ask(model, f"{target.provider.id}/{model}"):
        raise UnknownModel(f"the model {model!r} is not one that your key may ask")
    known = model_entry(target, services.facts, services.prices, services.clock())
    (asked_by,) = await names_to_ask(services.directory, [target])
    merged = known.merged
    facts = [
        ("ask for", asked_by or "no name leads to it"),
        ("provider", f"{merged.provider} ({merged.dialect})"),
        ("in the catalog", f"{merged.id}, by {merged.maker or 'nobody known'} ({match_text(merged)})"),
        ("form of its control", merged.form),
        ("the provider", traits_text(merged.traits)),
        ("its server", server_text(merged)),
        ("its list of models", listed_text(known.listing, merged.model)),
        ("price", price_text(known.price)),
    ]
    values = {"known": known.merged, "facts": facts, "table": _facts_table(known)}
    return Page("catalog_model.html", model, values)


async def _list_page(panel: Panel, request: PanelRequest, which: str, words: Sequence[str]) -> tuple[Table, Pager]:
    services, query = panel.context.services, request.query
    if which == "facts":
        found = [row for row in fact_rows() if has_words(fact_text(row), words)]
        some, pager = paged(found, _PATH, query)
        return facts_table(some), pager
    # Names depend on what every provider lists: they are asked as for `/v1/models`.
    configured = await services.directory.models()
    if which == "providers":
        rows = [row for row in preset_rows() if has_words(provider_text(row), words)]
        shown, pager = paged(rows, _PATH, query)
        examples = await _examples(panel, request, [one for one in configured if one.row in shown])
        return providers_table(shown, configured, examples, addresses=request.viewer.operator), pager
    account = None if request.viewer.operator else request.viewer.account
    names = model_names(configured, services.facts, account)
    names = [name for name in names if has_words(f"{name.provider.id}/{name.model}", words)]
    page, pager = paged(names, _PATH, query)
    targets = [Target(provider=one.provider, model=one.model) for one in page]
    known, asked_by = await _model_entries(panel, targets), await names_to_ask(services.directory, targets)
    return models_table(page, asked_by, known, searched=bool(words)), pager


async def _examples(panel: Panel, request: PanelRequest, providers: Sequence[Provider]) -> dict[str, str]:
    """Return for each provider the name of a model of it that the viewer may ask for, where there is one."""
    services, account = panel.context.services, None if request.viewer.operator else request.viewer.account
    firsts: dict[str, ListedName] = {}
    for one in model_names(providers, services.facts, account):
        firsts.setdefault(one.provider.id, one)
    targets = [Target(provider=one.provider, model=one.model) for one in firsts.values()]
    names = await names_to_ask(services.directory, targets) if targets else []
    return {provider: name for provider, name in zip(firsts, names, strict=True) if name}


async def _model_entries(panel: Panel, targets: Sequence[Target]) -> list[ModelEntry]:
    services = panel.context.services
    now, found = services.clock(), []
    for place, target in enumerate(targets):
        if place % _AT_ONCE == _AT_ONCE - 1:
            await asyncio.sleep(0)
        found.append(model_entry(target, services.facts, services.prices, now))
    return found


def _facts_table(known: ModelEntry) -> Table:
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
