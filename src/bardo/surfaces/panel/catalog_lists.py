"""What the catalog page lists: models of the configured providers, all presets of providers, and the built-in facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import urlencode

import msgspec

from bardo.adapters.config.accounts import Account
from bardo.catalog.load import builtin
from bardo.catalog.models import ModelRow, builtin_models
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.model_list import KnownModel
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.facts import source_text, value_text
from bardo.surfaces.render.prices import short_price
from bardo.surfaces.render.wording import NOT_REPORTED, count

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
    names: Sequence[ListedName], asked_by: Sequence[str], known: Sequence[KnownModel], *, searched: bool
) -> Table:
    """Return a row for each model: what it is asked for by, what is known of its thinking with who says so, its context and its price."""
    return Table(
        name="models",
        caption="Models of the configured providers",
        heads=(Head("model", wrap=True), Head("provider"), Head("its name there", wrap=True), Head("thinking", wrap=True),
               Head("source", wrap=True), Head("context", number=True), Head("$ per 1M tokens, in / out", number=True), Head("listed on")),
        rows=tuple(_model(*row) for row in zip(names, asked_by, known, strict=True)),
        empty=_NOTHING_FOUND if searched else "No models are known. List them under a provider, or run bardo catalog refresh.",
    )  # fmt: skip


def _model(name: ListedName, asked_by: str, known: KnownModel) -> tuple[Cell | str, ...]:
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
        rows=tuple(map(_fact, rows)),
        empty=_NOTHING_FOUND,
    )  # fmt: skip


def _fact(row: ModelRow) -> tuple[Cell | str, ...]:
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
