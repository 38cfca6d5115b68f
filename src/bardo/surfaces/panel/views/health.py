"""How providers, their models, keys and caches are now, and how long calls took lately."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.log.row import CallTimes
from bardo.routing.candidates import Health
from bardo.services.facts.health_report import HealthReport, health_report
from bardo.surfaces.panel.health_tables import (
    caches_table,
    keys_table,
    lessons_table,
    models_of,
    plain_states_table,
    states_table,
)
from bardo.surfaces.panel.latencies import MOST_CALLS, SPANS, histories, latency_table
from bardo.surfaces.panel.pages import Page, PanelRequest, Redirect
from bardo.values.errors import Forbidden, Unsupported

if TYPE_CHECKING:
    from bardo.surfaces.panel.panel import Panel

_USUAL = "24h"


async def show(panel: Panel, request: PanelRequest) -> Page | Redirect:
    """Return the page, or forget a lesson. A key that is no operator's sees the states alone, and the times of its own calls."""
    operator = request.viewer.operator
    if request.method == "POST":
        if not operator:
            raise Forbidden("lessons are forgotten by operators", hint="ask whoever runs this gateway")
        name = request.form.get("lesson", "")
        panel.context.runner.facts.lessons.forget("" if name == "all" else name or "none")
        return Redirect("/panel/health")
    report = health_report(panel.context.runner)
    chosen = request.query.get("span", "")
    span = chosen if chosen in SPANS else _USUAL
    words, seconds = SPANS[span]
    now = panel.context.runner.clock()
    times = await _times(panel, now - seconds, request.viewer.key_id)
    cut = times is not None and len(times) == MOST_CALLS
    begin = times[-1].started_at if cut and times else now - seconds
    values = {
        "span": span,
        "spans": [(name, words.removeprefix("the last ").removeprefix("the ")) for name, (words, _) in SPANS.items()],
        "figures": _figures(report, models=operator),
        "states": states_table(report)
        if operator
        else plain_states_table(report, {(one.provider, one.model) for one in times or ()}),
        "lesson_choices": [
            ("all", "all lessons"),
            *((one.id, f"{one.what} at {one.provider} {one.model}") for one in report.lessons if operator),
        ],
        "lessons_table": lessons_table(report) if operator else None,
        "further": (keys_table(report), caches_table(report)) if operator else (),
        "latencies": None if times is None else latency_table(histories(times, begin, now), words),
        "cut": cut,
        "begin": begin,
        "most": MOST_CALLS,
        "at": report.at,
    }
    return Page("health.html", "Health", values)


async def _times(panel: Panel, since: float, key: str | None) -> list[CallTimes] | None:
    """Return the newest calls; None where no log is kept."""

    def read(log: LogReader) -> list[CallTimes]:
        return log.call_times(MOST_CALLS, since=since, key=key)

    try:
        return await panel.read_log(read)
    except Unsupported:
        return None


def _figures(report: HealthReport, *, models: bool) -> list[tuple[str, str, str]]:
    states = Counter(provider.connection.state for provider in report.providers)
    found = [("Providers", str(len(report.providers)), _counts_text(states))]
    if models:
        called = [model for provider in report.providers for model in models_of(provider)]
        found.append(("Models called recently", str(len(called)), _counts_text(Counter(one.state for one in called))))
    return found


def _counts_text(states: Mapping[Health, int]) -> str:
    return ", ".join(f"{number} {state}" for state, number in sorted(states.items(), key=lambda one: -one[1]))
