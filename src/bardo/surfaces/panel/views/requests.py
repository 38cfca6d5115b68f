"""The requests of the log: a list in pages, with filters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from bardo.adapters.stores.database.problems import LogMissing
from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import CallFilter, CallPage, LogRow
from bardo.surfaces.panel.pages import Page, PanelRequest, query_text
from bardo.surfaces.panel.tables import Cell, Head, Table
from bardo.surfaces.render.calls import dialects, model_cell, outcome
from bardo.surfaces.render.wording import count, dollars, excerpt, moment, seconds

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

ROWS = 50
OUTCOMES = ("ok", "error", "broken", "cancelled")
_BADGES = {"ok": "ok", "cancelled": "warn"}
_SPANS: Mapping[str, tuple[str, float]] = {
    "1h": ("the last hour", 3600.0),
    "24h": ("the last 24 hours", 86_400.0),
    "7d": ("the last 7 days", 7 * 86_400.0),
    "30d": ("the last 30 days", 30 * 86_400.0),
}
_FIELDS = ("model", "provider", "outcome", "key", "span", "id")
_LONGEST = 200
_SHORT_ID = 16


async def show(panel: Panel, request: PanelRequest) -> Page:
    """Return a page of calls. A key that is no operator's sees its own alone."""
    query = {name: request.query[name].strip()[:_LONGEST] for name in _FIELDS if request.query.get(name, "").strip()}
    now = panel.context.services.clock()
    written = request.query.get("before", "")
    row_number = int(written) if written.isascii() and written.isdecimal() and len(written) < 16 else None
    wanted, before = _filter(query, request, now), row_number

    def read(log: LogReader) -> CallPage:
        return log.calls_before(wanted, before, limit=ROWS)

    try:
        page = await panel.read_log(read)
    except LogMissing:
        page = CallPage(rows=(), before=None)
    shown_keys = request.viewer.operator and panel.context.accounts is not None
    values = {
        "table": _table(page.rows, now, _key_names(panel) if shown_keys else None, filtered=bool(query)),
        "older": f"/panel/requests?{query_text(query, before=page.before)}" if page.before else "",
        "newest": f"/panel/requests?{query_text(query)}" if before is not None else "",
        "complete": len(page.rows) == ROWS or page.before is None,
        **_form(panel, query),
        "keys": _key_choices(panel) if shown_keys else None,
    }
    return Page("requests.html", "Requests", values)


def _filter(query: Mapping[str, str], request: PanelRequest, now: float) -> CallFilter:
    span, own = _SPANS.get(query.get("span", "")), request.viewer.key_id
    return CallFilter(
        provider=query.get("provider"),
        model=query.get("model"),
        outcome=query["outcome"] if query.get("outcome") in OUTCOMES else None,
        key_id=own if own is not None else query.get("key"),
        since=None if span is None else now - span[1],
        id_part=query.get("id", ""),
    )


def _form(panel: Panel, query: Mapping[str, str]) -> dict[str, Any]:
    """Return what the fields of the filters hold and offer."""
    return {
        "query": {name: query.get(name, "") for name in _FIELDS},
        "providers": [("", "any"), *((one.id, one.id) for one in panel.context.services.directory.providers)],
        "outcomes": [("", "any"), *((one, one) for one in OUTCOMES)],
        "spans": [("", "any time"), *((name, words) for name, (words, _) in _SPANS.items())],
    }


def _key_names(panel: Panel) -> dict[str, str]:
    accounts = panel.context.accounts
    return {} if accounts is None else {one.id: one.name or one.id for one in accounts.known}


def _key_choices(panel: Panel) -> list[tuple[str, str]]:
    named = sorted(_key_names(panel).items(), key=lambda pair: pair[1])
    return [("", "any"), *((own, name if name == own else f"{name} ({own})") for own, name in named)]


def _table(rows: tuple[LogRow, ...], now: float, keys: Mapping[str, str] | None, *, filtered: bool) -> Table:
    heads = (
        Head("Time"),
        Head("Id"),
        Head("Model", wrap=True),
        Head("Outcome"),
        Head("Duration", number=True),
        Head("In", number=True),
        Head("Out", number=True),
        Head("Reasoning", number=True),
        Head("Cost", number=True),
        Head("Dialects"),
        *([] if keys is None else [Head("Key")]),
    )
    return Table(
        name="requests",
        caption="Requests, newest first",
        heads=heads,
        rows=tuple(_row(row, now, keys) for row in rows),
        empty="No request matches these filters." if filtered else "The log has no requests yet.",
    )


def _row(row: LogRow, now: float, keys: Mapping[str, str] | None) -> tuple[Cell | str, ...]:
    verdict = row.reasoning_verdict if row.reasoning_verdict not in (None, "unknown", "honoured") else ""
    cells: tuple[Cell | str, ...] = (
        moment(row.started_at, now),
        Cell(row.request_id[:_SHORT_ID] or "–", href=f"/panel/requests/{quote(row.request_id, safe='')}"),
        Cell(excerpt(model_cell(row), 80), below=row.error_class or ""),
        Cell(outcome(row), badge=_BADGES.get(row.outcome, "bad")),
        seconds(row.seconds),
        count(row.input_tokens),
        count(row.output_tokens, estimated=row.tokens_approx and row.outcome != "ok"),
        Cell(count(row.reasoning_tokens, estimated=row.tokens_approx), below=verdict or ""),
        dollars(row.cost_usd),
        dialects(row),
    )
    return cells if keys is None else (*cells, keys.get(row.key_id or "", row.key_id or "–"))
