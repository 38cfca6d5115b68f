"""`bardo catalog`: show the rows of the catalog and the facts of a model, and refresh or compare providers' lists of models."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bardo.accounting.cost import Price
from bardo.adapters.config.formats import known_formats
from bardo.adapters.config.settings import Settings, load_settings, provider_of
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider
from bardo.reasoning.formats import ReasoningFormat, example_of
from bardo.services.facts.directory import ProviderDirectory, with_keys
from bardo.services.facts.introspect import Introspector, MergedModel
from bardo.services.facts.listings import CatalogRefresh, Change, Listing, Outcome, askable, changes, listing_sources
from bardo.services.facts.listings.listings import feed_prices
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.model_list import ModelEntry, model_entry
from bardo.services.facts.price_book import PriceBook
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.presets import target_named
from bardo.surfaces.render.console import as_plain, print_stderr, show, show_json, show_text
from bardo.surfaces.render.facts import (
    TITLES,
    conflicts_text,
    facts_json,
    listed_json,
    listed_text,
    match_text,
    price_json,
    price_text,
    server_text,
    source_text,
    traits_text,
    value_text,
)
from bardo.surfaces.render.tables import Column, facts, table
from bardo.surfaces.render.wording import NOT_REPORTED, one_line
from bardo.values.errors import InvalidRequest
from bardo.wiring import open_listings

EXAMPLE_WIDTH = 64
_SHOW_HINT = "write it as in: bardo catalog show claude-sonnet-5"


class Rows(StrEnum):
    """What the catalog holds."""

    PROVIDERS = "providers"
    FORMATS = "formats"
    SHOW = "show"
    REFRESH = "refresh"
    DIFF = "diff"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("catalog", epilog="Example: bardo catalog show qwen/qwen3-32b --provider openrouter")(catalog)


def catalog(
    which: Annotated[Rows, typer.Argument(help="Which rows; show one model; or refresh lists.")] = Rows.PROVIDERS,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="With show: a model. With refresh and diff: providers."),
    ] = None,
    provider: Annotated[
        str, typer.Option("--provider", metavar="NAME", help="With show: the provider, by its id or a preset.")
    ] = "",
    offline: Annotated[bool, typer.Option("--offline", help="With show: ask no server.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="With refresh: accept implausible changes too.")] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show facts about providers and models, or refresh them.

    Providers are the presets of bardo.toml; formats are how models mark their thinking in text. Of a model every fact is shown with who
    says so and as of when. refresh asks providers for their lists of models, prices included, and keeps them; diff shows what that would
    change. A list that lost half of its models, or whose prices moved tenfold, is kept out.
    """
    _check(which, names or [], accept=accept)
    if which is Rows.SHOW:
        show_model((names or [""])[0], provider, config, live=not offline, as_json=as_json)
    elif which in (Rows.REFRESH, Rows.DIFF):
        refresh_lists(names or [], config, accept=accept, dry=which is Rows.DIFF, as_json=as_json)
    elif which is Rows.PROVIDERS:
        _providers(as_json)
    else:
        _formats(config, as_json)


def _check(which: Rows, names: Sequence[str], *, accept: bool) -> None:
    """Raise InvalidRequest for names or an option that go with something else."""
    wanted = {Rows.SHOW: len(names) == 1, Rows.PROVIDERS: not names, Rows.FORMATS: not names}
    if not wanted.get(which, True):
        message = "show takes a model, refresh and diff take providers, and nothing else takes a name"
        raise InvalidRequest(message, hint=_SHOW_HINT, param="NAME")
    if accept and which is not Rows.REFRESH:
        raise InvalidRequest("only refresh accepts", hint="bardo catalog refresh --accept", param="--accept")


def _providers(as_json: bool) -> None:
    rows = builtin().providers
    if as_json:
        show_json(rows)
        return
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("preset", keep=True), Column("dialect"), Column("key"), Column("address", cut=True))
    show(table(columns, (_provider(row) for row in rows)))


def _provider(row: ProviderRow) -> tuple[str, ...]:
    return row.id, row.dialect, next(iter(row.key_variables), NOT_REPORTED), row.base_url or "your own: base_url"


def _formats(config: Path | None, as_json: bool) -> None:
    rows = list(known_formats(config).rows.values())
    if as_json:
        show_json([{**msgspec.to_builtins(row, enc_hook=as_plain), "example": example_of(row)} for row in rows])
        return
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("format", keep=True), Column("example"), Column("models", cut=True))
    show(table(columns, (_format(row) for row in rows)))
    print_stderr("An example without a beginning: the prompt holds it. --json prints whole rows.")


def _format(row: ReasoningFormat) -> tuple[str, ...]:
    models = ", ".join(row.families or row.patterns)
    return row.name, _on_one_line(example_of(row)) or NOT_REPORTED, models


def _on_one_line(example: str) -> str:
    shown = one_line(example)
    return shown if len(shown) <= EXAMPLE_WIDTH else f"{shown[: EXAMPLE_WIDTH - 1]}…"


_MOST_SHOWN = 40
_NANOS = 10**9
_FAILED = 1


def refresh_lists(names: Sequence[str], config: Path | None, *, accept: bool, dry: bool, as_json: bool) -> None:
    """Refresh the lists of the named providers, of all that are configured without names; with `dry` only compare them.

    Raises InvalidRequest for a name that has no list, and Exit(1) where a list could not be had or taken over.
    """
    settings = load_settings(config)
    providers = _refreshed_providers(names, settings)
    outcomes = asyncio.run(_refresh(providers, settings, accept=accept, dry=dry))
    if as_json:
        show_json([_json(one) for one in outcomes])
    else:
        for one in outcomes:
            _show(one, dry=dry)
    if any(one.problem for one in outcomes):
        raise typer.Exit(_FAILED)


async def _refresh(providers: Sequence[Provider], settings: Settings, *, accept: bool, dry: bool) -> list[Outcome]:
    transport = HttpTransport()
    try:
        refresh = CatalogRefresh(open_listings(settings), transport, Keyring())
        return await refresh.refresh(providers, accept=accept, dry=dry)
    finally:
        await transport.close()


def _refreshed_providers(names: Sequence[str], settings: Settings) -> list[Provider]:
    """Return the named providers: configured ones, else presets. Raises InvalidRequest where there is no such list."""
    configured = [provider_of(entry, settings.source) for entry in settings.providers] or with_keys(Keyring())
    if not names:
        if found := askable(configured):
            return found
        raise InvalidRequest("no provider is configured whose list is read", hint=_hint(), param="NAME")
    by_id = {one.id: one for one in configured}
    return [by_id.get(name) or _preset(name) for name in dict.fromkeys(names)]


def _preset(name: str) -> Provider:
    row = builtin().provider(name)
    found = None if row is None else Provider(id=row.id, row=row, base_url=row.base_url)
    if found is None or not askable([found]):
        near = get_close_matches(name[:100], listing_sources(), n=1)
        hint = f"did you mean {near[0]}?" if near else _hint()
        raise InvalidRequest(f"{name[:100]!r} has no list that is read", hint=hint, param="NAME")
    return found


def _hint() -> str:
    return f"name one of {', '.join(listing_sources())}"


def _show(outcome: Outcome, *, dry: bool) -> None:
    found = _changes(outcome)
    if outcome.problem:
        kept = "the last one holds" if outcome.before is not None else "the catalog's rows hold"
        fix = "; to take it over all the same: --accept" if outcome.refused else ""
        print_stderr(f"{outcome.provider}: {outcome.problem}; {kept}{fix}")
    elif outcome.listing is not None:
        priced = sum(model.price is not None for model in outcome.listing.models.values())
        done = "would change" if dry else "changed"
        print_stderr(
            f"{outcome.provider}: {len(outcome.listing.models):,} models, {priced:,} with prices; {len(found):,} {done}"
        )
    if outcome.held:
        print_stderr(f"{outcome.provider}: prices moved more than tenfold, and stay: {', '.join(outcome.held[:5])}")
    if dry and found:
        columns = (Column("model", keep=True), Column("what"), Column("before", wrap=True), Column("after", wrap=True))
        show(table(columns, map(_cells, found[:_MOST_SHOWN])))
        if len(found) > _MOST_SHOWN:
            print_stderr(f"and {len(found) - _MOST_SHOWN:,} more: --json shows all")


def _changes(outcome: Outcome) -> list[Change]:
    return [] if outcome.listing is None else list(changes(outcome.before, outcome.listing))


def _cells(change: Change) -> tuple[str, ...]:
    if not change.field:
        return change.model, "new" if change.after else "gone", "", ""
    return change.model, change.field, _text(change.field, change.before), _text(change.field, change.after)


def _text(field: str, value: Any) -> str:
    if value is None:
        return "unknown"
    if field == "price.request":
        return f"${value / _NANOS:g}"
    if field.startswith("price.") and field != "price.threshold":
        return f"${value / _NANOS:g}/M"
    return ", ".join(map(str, value)) if isinstance(value, tuple | list) else str(value)


def _json(outcome: Outcome) -> dict[str, Any]:
    listing = outcome.listing
    return {
        "provider": outcome.provider,
        "source": outcome.source,
        "at": None if listing is None else listing.at,
        "models": None if listing is None else len(listing.models),
        "problem": outcome.problem or None,
        "refused": outcome.refused,
        "held": list(outcome.held),
        "changes": [_change_json(one) for one in _changes(outcome)],
    }


def _change_json(change: Change) -> dict[str, Any]:
    if not change.field:
        return {"model": change.model, "change": "new" if change.after else "gone"}
    return {"model": change.model, "field": change.field, "before": change.before, "after": change.after}


def show_model(model: str, provider: str, config: Path | None, *, live: bool, as_json: bool) -> None:
    """Print the merged facts of a model. Raises UnknownModel or InvalidRequest where nobody is meant."""
    known = asyncio.run(_merged_facts(model, provider, config, live=live))
    if as_json:
        listing = listed_json(known.listing, known.merged.model)
        show_json({**facts_json(known.merged), "listing": listing, "price": price_json(known.price)})
    else:
        _show_row(known.merged, known.listing, known.price)


async def _merged_facts(model: str, provider: str, config: Path | None, *, live: bool) -> ModelEntry:
    settings, keyring, transport = load_settings(config), Keyring(), HttpTransport()
    introspector = Introspector(transport, keyring)
    try:
        listings = open_listings(settings)
        directory = ProviderDirectory.of(settings, transport, keyring, clock=time.monotonic, listings=listings)
        target = await target_named(model, provider, directory, discovers=live)
        learned = await introspector.learn(target.provider, target.model) if live else None
        prices = PriceBook(settings.prices)
        feed_prices(listings, prices, [target.provider])
        facts = ModelFacts(settings.models, listings=listings)
        return model_entry(target, facts, prices, time.time(), learned=learned)
    finally:
        await introspector.close()
        await transport.close()


def _show_row(merged: MergedModel, kept: Listing | None, price: Price | None) -> None:
    show(
        facts(
            [
                ("model", f"{merged.model} at {merged.provider} ({merged.dialect})"),
                ("catalog", f"{merged.id}, by {merged.maker or 'nobody known'} ({match_text(merged)})"),
                ("form", merged.form),
                ("traits", traits_text(merged.traits)),
                ("server", server_text(merged)),
                ("list", listed_text(kept, merged.model)),
                ("price", price_text(price)),
            ]
        )
    )
    columns = (Column("fact"), Column("value", wrap=True), Column("says"), Column("but", wrap=True))
    rows = [
        (TITLES[fact.field], value_text(fact.field, fact.holds.value), source_text(fact.holds), conflicts_text(fact))
        for fact in merged.facts
    ]
    if rows:
        show_text()
        show(table(columns, rows))
    else:
        show_text("\nnothing is known of its thinking: `bardo probe` finds out")
    if merged.disagreements:
        print_stderr(
            "\nLayers disagree, and the first goes before: operator, L1 the server itself, its kept list, L2 the catalog, L3 an assumption."
        )
