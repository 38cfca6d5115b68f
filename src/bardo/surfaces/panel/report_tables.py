"""What caches, routing and the log report, as tables of a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bardo.adapters.stores.log.row import CacheTotal, LogExtent, LogGap, ReplyCacheTotal
from bardo.services.pipeline.reply_cache.evidence import SimilarFigures
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.panel.periods import day_text
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.caches import GIVEN, prompt_cache_cells, reply_cache_cells, similar_text
from bardo.surfaces.render.client_keys import time_text
from bardo.surfaces.render.learned import model_cells, route_cells
from bardo.surfaces.render.wording import count

MOST_GAPS = 50
_UNITS = ("bytes", "KB", "MB", "GB", "TB")
_CACHE_WORDS = {
    "hit": "answered from the cache",
    "similar": "answered with the reply to a similar question",
    "miss": "not in the cache",
}


def reply_figures(totals: Sequence[ReplyCacheTotal]) -> list[tuple[str, str, str]]:
    """Return how many calls got a kept reply, and what that saved."""
    calls = sum(one.calls for one in totals)
    given = [one for one in totals if one.cache in GIVEN]
    served = sum(one.calls for one in given)
    known = [one.saved_nanos for one in given if one.saved_nanos is not None]
    unknown = sum(one.unknown for one in given)
    remark = f"and {unknown:,} calls of unknown cost" if unknown and known else ""
    return [
        ("Calls with caching", count(calls), ""),
        ("Cache hits", count(served), f"{served / calls:.1%}" if calls else ""),
        ("Saved", exact_text(sum(known)) if known or not served else "unknown", remark),
    ]


def replies_table(totals: Sequence[ReplyCacheTotal], words: str) -> Table:
    """Return what the cache of replies did with calls, refusals by their reason."""
    calls = sum(one.calls for one in totals)
    rows: list[tuple[Cell | str, ...]] = []
    for one in totals:
        did, *cells = reply_cache_cells(one, calls)
        rows.append((Cell(did, below=_CACHE_WORDS.get(one.cache, "")), *cells))
    return Table(
        name="replies",
        caption=f"Response cache, {words}",
        heads=(
            Head("result", wrap=True),
            Head("calls", number=True),
            Head("share", number=True),
            Head("saved", number=True),
        ),
        rows=tuple(rows),
        empty=f"No calls used the response cache {words}. A pipeline profile with the cache layer turns it on.",
    )


def similar_table(found: Sequence[SimilarFigures], budget: float) -> Table:
    """Return what became of similar questions, with the share of wrong answers and its interval."""
    return Table(
        name="similar",
        caption="Answers to similar questions, since counting began",
        heads=(Head("embedding", wrap=True), Head("lookups", number=True), Head("served", number=True),
               Head("answers compared", number=True), Head("wrong", number=True),
               Head("error rate (95 % interval)", number=True), Head("allowed", number=True), Head("in words", wrap=True)),
        rows=tuple(_similar(one, budget) for one in found),
        empty="No lookups of similar questions.",
    )  # fmt: skip


def _similar(one: SimilarFigures, budget: float) -> tuple[str, ...]:
    low, high = one.evidence.false_rate
    total = one.evidence.total
    share = f"{one.different / total:.1%} ({low:.1%} to {high:.1%})" if total else "unknown"
    return (
        one.fingerprint,
        count(one.lookups),
        count(one.served),
        count(total),
        count(one.different),
        share,
        f"{budget:.1%}",
        "; ".join(similar_text(one, budget)),
    )


def prompts_table(totals: Sequence[CacheTotal], names: Mapping[str, str], words: str) -> Table:
    """Return what prompt caches did by provider, model and key."""
    heads = ("calls", "input", "read", "written", "saved")
    return Table(
        name="prompts",
        caption=f"Prompt caches, {words}",
        heads=(Head("model", wrap=True), Head("provider", wrap=True), Head("key", wrap=True), *(Head(one, number=True) for one in heads),
               Head("cache misses caused by changing prompts", wrap=True)),
        rows=tuple(_prompts(one, names) for one in totals),
        empty=f"No calls {words}.",
    )  # fmt: skip


def _prompts(one: CacheTotal, names: Mapping[str, str]) -> tuple[Cell | str, ...]:
    provider, model, key, *numbers = prompt_cache_cells(one)
    named = names.get(key, "")
    changing = f"{one.changing:,} calls: {one.why}" if one.changing else ""
    return model, provider, Cell(named or key or "no key", below=key if named else ""), *numbers, changing


def learned_tables(record: Mapping[str, Any]) -> tuple[Table, Table]:
    """Return what is learned of models, and whether that pays on each route."""
    models = Table(
        name="learned-models",
        caption="What routing has learned about models",
        heads=(
            Head("model", wrap=True),
            Head("outcomes", number=True),
            Head("success", number=True),
            Head("cost per call", number=True),
        ),
        rows=tuple(map(model_cells, record["models"])),
        empty='Nothing has been learned yet. Set strategy = "learned" in [routing], or run bardo routing fit FILE.',
    )
    routes = Table(
        name="learned-routes",
        caption="Learned routing compared with the best single model",
        heads=(Head("route", wrap=True), Head("verdict", wrap=True), Head("gain", number=True), Head("95 % interval", number=True),
               Head("routed", number=True), Head("best single", number=True), Head("regret", number=True)),
        rows=tuple(map(route_cells, record["routes"])),
        empty="No routes have been compared yet.",
    )  # fmt: skip
    return models, routes


def log_figures(found: LogExtent) -> list[tuple[str, str, str]]:
    """Return how many calls the log holds, how much room it takes, and what is missing."""
    days = "" if found.first is None or found.last is None else f"{day_text(found.first)} to {day_text(found.last)}"
    return [
        ("Calls in the log", count(found.rows), days),
        ("Size", size_text(found.bytes), ""),
        ("Missing rows", count(found.dropped), "" if found.dropped else "no rows were dropped"),
    ]


def gaps_table(gaps: Sequence[LogGap]) -> Table:
    """Return the latest notes of rows that were dropped, the newest first."""
    newest = [*gaps][::-1][:MOST_GAPS]
    return Table(
        name="gaps",
        caption="Rows missing from the log",
        heads=(Head("noticed (UTC)"), Head("rows", number=True), Head("why", wrap=True)),
        rows=tuple((time_text(one.noticed_at) or "", count(one.rows), one.why) for one in newest),
    )


def size_text(size: int | None) -> str:
    """Write a number of bytes: `87.1 MB`."""
    if size is None:
        return "unknown"
    number, place = float(size), 0
    while number >= 1000 and place < len(_UNITS) - 1:
        number, place = number / 1000, place + 1
    return f"{size:,} bytes" if not place else f"{number:.1f} {_UNITS[place]}"
