"""`bardo costs --cache`: what prompt caches read, wrote and saved, and which prompts they never hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import CacheTotal
from bardo.surfaces.render.caches import prompt_cache_cells
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.wording import one_line

_COLUMNS = (
    Column("provider", keep=True),
    Column("model", keep=True),
    Column("key", keep=True),
    Column("calls", right=True),
    Column("input", right=True),
    Column("read", right=True, drop=1),
    Column("written", right=True, drop=2),
    Column("saved", right=True),
)


def show_cache(log: Path | str, since: float | None, *, as_json: bool) -> None:
    """Show what prompt caches did since a time."""
    with LogReader(log) as reader:
        totals = reader.cache_totals(since=since)
    if as_json:
        show_json({"totals": [_json(one) for one in totals]})
        return
    if not totals:
        print_stderr("no calls")
        return
    show(table(_COLUMNS, map(prompt_cache_cells, totals)))
    for one in totals:
        if one.changing:
            where = f"{one.provider}/{one.model}" + (f", key {one.key_id}" if one.key_id else "")
            show_text(one_line(f"{where}: {one.changing:,} calls whose prompt begins anew: {one.why}"))


def _json(one: CacheTotal) -> dict[str, Any]:
    return {name: getattr(one, name) for name in one.__struct_fields__}
