"""What caches saved, what routing has learned, and how the log is."""

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
from bardo.services.pipeline.reply_cache.evidence import read_figures
from bardo.surfaces.panel.cost_tables import names_of
from bardo.surfaces.panel.pages import Page, PanelRequest
from bardo.surfaces.panel.periods import CHOICES, OWN, Period, read_period
from bardo.surfaces.panel.report_tables import (
    gaps_table,
    learned_tables,
    log_figures,
    prompts_table,
    replies_table,
    reply_figures,
    similar_table,
    size_text,
)
from bardo.surfaces.panel.tables import Table, paged
from bardo.surfaces.render.learned import learned_record
from bardo.surfaces.render.wording import count

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

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
    period = read_period({"period": chosen if chosen in CHOICES else _USUAL}, panel.context.runner.clock())
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
        values |= {"similar": await _similar(panel), "learned": await _load_learned(panel)}
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

    pipeline, account = panel.context.runner.pipeline, request.viewer.account
    tenant = None if request.viewer.operator or account is None else account.tenant
    try:
        found = None if pipeline is None else await pipeline.effects.perform(CountReplies(tenant))
    except EffectFailed:
        return "No call of this gateway has used the response cache yet, so its store is not open."
    if found is None:
        return "The contents of the store are not available now."
    return f"The store holds {count(found[0])} entries, {size_text(found[1])}."


async def _similar(panel: Panel) -> Table:
    folder = data_folder(panel.settings, panel.environment)
    found = await asyncio.to_thread(read_figures, folder)
    return similar_table(found, panel.settings.inference.pipeline.cache.max_false_hit)


async def _load_learned(panel: Panel) -> tuple[Table, Table]:
    """Return what this gateway has learned, or what stands in the file where it goes by another strategy."""
    state = panel.context.runner.routing.learned
    if state is None:
        path = state_path(panel.settings)
        if not await asyncio.to_thread(path.exists):
            return learned_tables(_NOTHING)
        state = (await asyncio.to_thread(open_router, panel.settings)).state
    return learned_tables(learned_record(state))
