"""`bardo cache`: what the cache of replies did and holds, and how entries are removed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from bardo.context.cache.confidence import comparisons_needed
from bardo.context.cache.entries import ReplyStore, Selection
from bardo.edge.data_paths import data_folder, log_path
from bardo.edge.log import LogReader
from bardo.edge.log.row import ReplyCacheTotal
from bardo.edge.reply_cache.evidence import SimilarFigures, read_figures
from bardo.edge.reply_cache.opening import bounds_of, open_replies
from bardo.edge.settings import Settings, load_settings
from bardo.edge.settings_cache import place_of
from bardo.surfaces.cli.options import AsJson, Config, Since, since_time
from bardo.surfaces.render.console import say, show, show_json
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.wording import count, dollars
from bardo.values.cost import usd
from bardo.values.errors import ConfigError, InvalidRequest

_GIVEN = ("hit", "similar")
_COLUMNS = (Column("cache"), Column("calls", right=True), Column("share", right=True), Column("saved", right=True))


class Action(StrEnum):
    """What is done."""

    STATS = "stats"
    PURGE = "purge"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("cache", epilog="Example: bardo cache purge --tag news")(cache)


def cache(
    action: Annotated[Action, typer.Argument(help="stats, or purge: remove entries.")],
    tag: Annotated[str | None, typer.Option("--tag", help="Only entries with this tag.")] = None,
    model: Annotated[str | None, typer.Option("--model", help="Only entries of this model.")] = None,
    tenant: Annotated[
        str | None, typer.Option("--tenant", help="Only entries of this tenant, as the log has it.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Remove all entries.")] = False,
    since: Since = None,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show what the cache of replies did, or remove entries from it.

    What it did is told from the log, and what it holds from the store of the configuration. A model is named as it was asked for, or as it
    answered. Entries in the memory of a running gateway end with it.
    """
    settings = load_settings(config)
    if action is Action.PURGE:
        _purge(settings, Selection(tag=tag, model=model, tenant=tenant), everything=everything, as_json=as_json)
        return
    if tag or model or everything:
        raise InvalidRequest("stats takes --tenant, --since and --json", hint="bardo cache purge removes entries")
    with LogReader(log_path(settings)) as log:
        totals = log.reply_cache_totals(since=since_time(since, time.time()))
    held, similar = _held(settings, tenant), read_figures(data_folder(settings))
    if as_json:
        show_json({**_json(totals, held), "similar": [_similar_json(one, settings) for one in similar]})
    else:
        _show(totals, held)
        for figures in similar:
            _show_similar(figures, settings)


def _purge(settings: Settings, selection: Selection, *, everything: bool, as_json: bool) -> None:
    if everything is (selection != Selection()):
        hint = "give --tag, --model or --tenant, which may be combined; or --all"
        raise InvalidRequest("it must be said which entries are removed", hint=hint)
    store = _open(settings)
    if store is None:
        hint = 'end the gateway, or name another store: [inference.pipeline.cache] store = "replies.db"'
        raise ConfigError("entries in the memory of a gateway cannot be reached from here", hint=hint)
    try:
        removed = store.purge(selection)
    finally:
        store.close()
    if as_json:
        show_json({"removed": removed})
    else:
        say(f"{count(removed)} removed")


def _open(settings: Settings) -> ReplyStore | None:
    """Return the store of a configuration; None where each gateway has its own in memory."""
    own = settings.inference.pipeline.cache
    where = place_of(own, os.environ)
    return None if where == "memory" else open_replies(where, bounds_of(own))


def _held(settings: Settings, tenant: str | None) -> tuple[int, int] | None:
    store = _open(settings)
    if store is None:
        return None
    try:
        return store.held(tenant)
    finally:
        store.close()


def _show(totals: Sequence[ReplyCacheTotal], held: tuple[int, int] | None) -> None:
    if totals:
        calls = sum(one.calls for one in totals)
        show(table(_COLUMNS, [_cells(one, calls) for one in totals]))
    else:
        say("no calls that the cache worked on")
    if held is None:
        say("the store is the memory of each gateway: what it holds cannot be seen from here")
    else:
        say(f"the store holds {count(held[0])} entries of {count(held[1])} bytes")


def _cells(one: ReplyCacheTotal, calls: int) -> tuple[str, ...]:
    saved = ""
    if one.cache in _GIVEN:
        saved = dollars(None if one.saved_nanos is None else usd(one.saved_nanos))
        if one.unknown and one.saved_nanos is not None:
            saved += f" and {count(one.unknown)} calls of unknown cost"
    return one.cache.replace(":", ": "), count(one.calls), f"{one.calls / calls:.1%}", saved


def _json(totals: Sequence[ReplyCacheTotal], held: tuple[int, int] | None) -> dict[str, Any]:
    saved = [one.saved_nanos for one in totals if one.cache in _GIVEN and one.saved_nanos is not None]
    return {
        "calls": {one.cache: one.calls for one in totals},
        "saved_usd": usd(sum(saved)) if saved else None,
        "unknown_savings": sum(one.unknown for one in totals if one.cache in _GIVEN),
        "store": None if held is None else {"entries": held[0], "bytes": held[1]},
    }


def _show_similar(figures: SimilarFigures, settings: Settings) -> None:
    """Show what became of similar questions: everything that was counted in this folder, whenever that was."""
    budget = settings.inference.pipeline.cache.max_false_hit
    low, high = figures.evidence.false_rate
    say(f"similar questions, by vectors of {figures.fingerprint}, since bardo began to count")
    say(
        f"  looked for a similar one {count(figures.lookups)} times: {count(figures.served)} served, "
        f"{count(figures.shadowed)} only compared, "
        f"{count(figures.rechecked)} asked again, {count(figures.refused_by_guard)} refused by the guard"
    )
    if not figures.evidence.total:
        say(
            f"  no answers were compared yet; {count(comparisons_needed(budget))} without an error are needed for {budget:.1%}"
        )
        return
    say(
        f"  {count(figures.evidence.total)} answers compared: {count(figures.different)} wrong, "
        f"{figures.different / figures.evidence.total:.1%} ({low:.1%} to {high:.1%}); budget {budget:.1%}; "
        f"{count(figures.undecided)} could not be told"
    )


def _similar_json(figures: SimilarFigures, settings: Settings) -> dict[str, Any]:
    low, high = figures.evidence.false_rate
    total = figures.evidence.total
    return {
        "embedding": figures.fingerprint,
        "lookups": figures.lookups,
        "served": figures.served,
        "shadowed": figures.shadowed,
        "rechecked": figures.rechecked,
        "refused_by_guard": figures.refused_by_guard,
        "compared": {"same": figures.same, "different": figures.different, "undecided": figures.undecided},
        "false_hits": figures.different / total if total else None,
        "false_hits_interval": [low, high],
        "max_false_hit": settings.inference.pipeline.cache.max_false_hit,
    }
