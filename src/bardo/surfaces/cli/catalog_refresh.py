"""`bardo catalog refresh` and `bardo catalog diff`: providers' lists of models, taken over or compared."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import typer

from bardo.adapters.config.settings import Settings, load_settings, provider_of
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.catalog.load import builtin
from bardo.planning.route import Provider
from bardo.services.facts.directory import with_keys
from bardo.services.facts.listings import CatalogRefresh, Change, Outcome, askable, changes, listing_sources
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.surfaces.render.tables import Column, table
from bardo.values.errors import InvalidRequest
from bardo.wiring import open_listings

_MOST_SHOWN = 40
_NANOS = 10**9
_FAILED = 1


def refresh_lists(names: Sequence[str], config: Path | None, *, accept: bool, dry: bool, as_json: bool) -> None:
    """Refresh the lists of the named providers, of all that are configured without names; with `dry` only compare them.

    Raises InvalidRequest for a name that has no list, and Exit(1) where a list could not be had or taken over.
    """
    settings = load_settings(config)
    providers = _providers(names, settings)
    outcomes = asyncio.run(_refresh(providers, settings, accept=accept, dry=dry))
    if as_json:
        show_json([_json(one) for one in outcomes])
    else:
        for one in outcomes:
            _show(one, dry=dry)
    if any(one.problem for one in outcomes):
        raise typer.Exit(_FAILED)


async def _refresh(providers: Sequence[Provider], settings: Settings, *, accept: bool, dry: bool) -> list[Outcome]:
    transport = HttpTransport(settings.http.client)
    try:
        refresh = CatalogRefresh(open_listings(settings), transport, Keyring())
        return await refresh.refresh(providers, accept=accept, dry=dry)
    finally:
        await transport.close()


def _providers(names: Sequence[str], settings: Settings) -> list[Provider]:
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
        priced = sum(one.price is not None for one in outcome.listing.models.values())
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
