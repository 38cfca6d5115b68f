"""`bardo cache`: what the cache of replies did and holds, and how entries are removed."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

import typer

from bardo.adapters.config.settings import Settings, data_folder, load_settings, log_path
from bardo.adapters.config.storage import place_of
from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import ReplyCacheTotal
from bardo.context.cache.entries import ReplyStore, Selection
from bardo.services.pipeline.reply_cache.evidence import read_figures
from bardo.services.pipeline.reply_cache.opening import bounds_of, open_replies
from bardo.surfaces.cli.options import AsJson, Config, Since, since_time
from bardo.surfaces.render.caches import reply_cache_cells, reply_cache_json, similar_json, similar_text
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.wording import count
from bardo.values.errors import ConfigError, InvalidRequest

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
    """Show statistics of the reply cache, or remove entries from it.

    What it did is told from the log, and what it holds from the store of the configuration. A model is named as it was asked for, or as it
    answered. Entries in the memory of a running gateway end with it.
    """
    settings = load_settings(config)
    if action is Action.PURGE:
        selection = Selection(tag=tag, model=model, tenant=tenant)
        if everything is (selection != Selection()):
            hint = "give --tag, --model or --tenant, which may be combined; or --all"
            raise InvalidRequest("it must be said which entries are removed", hint=hint)
        store = _open_store(settings)
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
            print_stderr(f"{count(removed)} removed")
        return
    if tag or model or everything:
        raise InvalidRequest("stats takes --tenant, --since and --json", hint="bardo cache purge removes entries")
    with LogReader(log_path(settings)) as log:
        totals = log.reply_cache_totals(since=since_time(since, time.time()))
    held, similar = _stored_counts(settings, tenant), read_figures(data_folder(settings))
    budget = settings.inference.pipeline.cache.max_false_hit
    if as_json:
        show_json({**reply_cache_json(totals, held), "similar": [similar_json(one, budget) for one in similar]})
    else:
        _show(totals, held)
        for figures in similar:
            print_stderr(f"similar questions, by vectors of {figures.fingerprint}, since bardo began to count")
            for line in similar_text(figures, budget):
                print_stderr(f"  {line}")


def _open_store(settings: Settings) -> ReplyStore | None:
    """Return the store of a configuration, or None if each gateway has its own in memory."""
    own = settings.inference.pipeline.cache
    where = place_of(own, os.environ, "kept replies")
    return None if where == "memory" else open_replies(where, bounds_of(own))


def _stored_counts(settings: Settings, tenant: str | None) -> tuple[int, int] | None:
    store = _open_store(settings)
    if store is None:
        return None
    try:
        return store.totals(tenant)
    finally:
        store.close()


def _show(totals: Sequence[ReplyCacheTotal], held: tuple[int, int] | None) -> None:
    if totals:
        calls = sum(one.calls for one in totals)
        show(table(_COLUMNS, [reply_cache_cells(one, calls) for one in totals]))
    else:
        print_stderr("no calls that the cache worked on")
    if held is None:
        print_stderr("the store is the memory of each gateway: what it holds cannot be seen from here")
    else:
        print_stderr(f"the store holds {count(held[0])} entries of {count(held[1])} bytes")
