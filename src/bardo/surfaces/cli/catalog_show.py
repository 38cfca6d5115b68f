"""`bardo catalog show`: everything known of one model's thinking, and who says so."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bardo.accounting.price_table import Price
from bardo.adapters.config.settings import load_settings
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.services.facts.directory import ProviderDirectory
from bardo.services.facts.introspect import Introspector, MergedModel
from bardo.services.facts.listings import Listing
from bardo.services.facts.listings.listings import feed_prices
from bardo.services.facts.model_facts import ModelFacts
from bardo.services.facts.model_list import KnownModel, known_model
from bardo.services.facts.price_book import PriceBook
from bardo.surfaces.cli.targets import target_named
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
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
from bardo.wiring import open_listings


def show_model(model: str, provider: str, config: Path | None, *, live: bool, as_json: bool) -> None:
    """Print the merged facts of a model. Raises UnknownModel or InvalidRequest where nobody is meant."""
    known = asyncio.run(_merged_facts(model, provider, config, live=live))
    if as_json:
        listing = listed_json(known.listing, known.merged.model)
        show_json({**facts_json(known.merged), "listing": listing, "price": price_json(known.price)})
    else:
        _show(known.merged, known.listing, known.price)


async def _merged_facts(model: str, provider: str, config: Path | None, *, live: bool) -> KnownModel:
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
        return known_model(target, facts, prices, time.time(), learned=learned)
    finally:
        await introspector.close()
        await transport.close()


def _show(merged: MergedModel, kept: Listing | None, price: Price | None) -> None:
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
