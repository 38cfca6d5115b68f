"""The pages of reports: what caches saved, what routing has learned, and how the log is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.adapters.config.settings import data_folder
from bardo.adapters.stores.log import LogGap, LogReader
from bardo.adapters.stores.log.row import CacheTotal, LogExtent, ReplyCacheTotal
from bardo.context.layer import EffectFailed
from bardo.services.facts.learned_routing import open_router, state_path
from bardo.services.pipeline.reply_cache.evidence import SimilarFigures, read_figures
from bardo.surfaces.panel.cost_tables import exact_text, names_of
from bardo.surfaces.panel.pages import Page, PanelRequest
from bardo.surfaces.panel.periods import CHOICES, OWN, Period, read_period
from bardo.surfaces.panel.tables import Cell, Head, Table, paged
from bardo.surfaces.render.caches import GIVEN, prompt_cache_cells, reply_cache_cells, similar_text
from bardo.surfaces.render.client_keys import time_text
from bardo.surfaces.render.costs import day_text
from bardo.surfaces.render.facts import learned_record, model_cells, route_cells
from bardo.surfaces.render.wording import count

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

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
        rows=tuple(_similarity_table(one, budget) for one in found),
        empty="No lookups of similar questions.",
    )  # fmt: skip


def _similarity_table(one: SimilarFigures, budget: float) -> tuple[str, ...]:
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
        heads=(Head("model", wrap=True), Head("provider", wrap=True), Head("key", wrap=True), *(Head(head, number=True) for head in heads),
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
    """Return how many calls the log holds, how much room it takes, and the missing parts."""
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


_PATH = "/panel/reports"
_USUAL = "7d"
_PROMPT_ROWS = 20
_NOTHING: Mapping[str, Sequence[Any]] = {"routes": (), "models": ()}
_PERIODS = [(name, words) for name, (words, _) in CHOICES.items() if name != OWN]


class LogReport(msgspec.Struct, frozen=True):
    """What the log tells of a period, and of itself where the viewer is an operator."""

    prompts: Sequence[CacheTotal]
    replies: Sequence[ReplyCacheTotal]
    extent: LogExtent | None
    gaps: Sequence[LogGap]


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return the page. A key that is no operator's sees what caches did with its own calls. Raises Unsupported without a log."""
    operator = request.viewer.operator
    chosen = request.query.get("period", "")
    period = read_period({"period": chosen if chosen in CHOICES else _USUAL}, panel.context.services.clock())
    found = await _read_log_report(panel, period, request.viewer.key_id, whole=operator)
    names = names_of(panel.context.accounts) if operator else {}
    prompts, pager = paged(found.prompts, _PATH, request.query, size=_PROMPT_ROWS)
    values = {
        "period": period,
        "periods": _PERIODS,
        "reply_figures": reply_figures(found.replies),
        "replies": replies_table(found.replies, period.words),
        "held": await _stored_text(panel, request),
        "prompts": prompts_table(prompts, names, period.words),
        "pager": pager,
        "similar": None,
        "learned": (),
        "log_figures": None if found.extent is None else log_figures(found.extent),
        "gaps": gaps_table(found.gaps),
    }
    if operator:
        figures = await asyncio.to_thread(read_figures, data_folder(panel.settings, panel.environment))
        values["similar"] = similar_table(figures, panel.settings.inference.pipeline.cache.max_false_hit)
        values["learned"] = await _load_learned(panel)
    return Page("reports.html", "Reports", values)


async def _read_log_report(panel: Panel, period: Period, key: str | None, *, whole: bool) -> LogReport:
    """Return what the log tells. Its two longest questions are asked at the same time, in two threads."""

    def read_replies(log: LogReader) -> list[ReplyCacheTotal]:
        return log.reply_cache_totals(since=period.since, key=key)

    def read_rest(log: LogReader) -> LogReport:
        prompts = log.cache_totals(since=period.since, key=key)
        return LogReport(prompts, (), log.extent() if whole else None, log.gaps() if whole else ())

    replies, rest = await asyncio.gather(panel.read_log(read_replies), panel.read_log(read_rest))
    return msgspec.structs.replace(rest, replies=replies)


async def _stored_text(panel: Panel, request: PanelRequest) -> str:
    """Return what the store of replies holds, in words: of all, or of the viewer's tenant."""
    from bardo.services.pipeline.reply_cache.cache import CountReplies

    pipeline, account = panel.context.services.pipeline, request.viewer.account
    tenant = None if request.viewer.operator or account is None else account.tenant
    try:
        found = None if pipeline is None else await pipeline.effects.perform(CountReplies(tenant))
    except EffectFailed:
        return "No call of this gateway has used the response cache yet, so its store is not open."
    if found is None:
        return "The contents of the store are not available now."
    return f"The store holds {count(found[0])} entries, {size_text(found[1])}."


async def _load_learned(panel: Panel) -> tuple[Table, Table]:
    """Return what this gateway has learned, or what stands in the file where it goes by another strategy."""
    state = panel.context.services.routing.learned
    if state is None:
        path = state_path(panel.settings)
        if not await asyncio.to_thread(path.exists):
            return learned_tables(_NOTHING)
        state = (await asyncio.to_thread(open_router, panel.settings)).state
    return learned_tables(learned_record(state))
