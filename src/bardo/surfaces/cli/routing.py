"""`bardo routing`: what learned routing knows, whether it pays, and how it is taught from outcomes in a file."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Annotated

import msgspec
import typer
from rich.table import Table

from bardo.adapters.config.settings import load_settings
from bardo.routing.learned.clusters import Embedding, fit_clusters
from bardo.routing.learned.outcomes import Outcome, OutcomeTable
from bardo.routing.learned.router import LearnedState
from bardo.services.facts.learned_routing import embedding_of, load_state, open_router, state_path, store_state
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.surfaces.render.facts import learned_record, model_cells, route_cells
from bardo.values.errors import InvalidRequest

_SEED = 14


class Action(StrEnum):
    """What is done."""

    REPORT = "report"
    FIT = "fit"
    RESET = "reset"


class OutcomeLine(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a file of outcomes. `at` is Unix time; without it an outcome counts as new."""

    prompt: str
    model: Annotated[str, msgspec.Meta(min_length=1)]
    success: Annotated[float, msgspec.Meta(ge=0, le=1)]
    cost_usd: Annotated[float, msgspec.Meta(ge=0)] | None = None
    at: float | None = None


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("routing", epilog="Example: bardo routing report")(routing)


def routing(
    action: Annotated[Action, typer.Argument(help="report, fit: learn from a file, reset: re-enable a route.")],
    name: Annotated[str, typer.Argument(metavar="FILE|ROUTE", help="With fit: JSON lines. With reset: a route.")] = "",
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show what routing has learned and if it pays off, or train it.

    Whether it pays is measured beside the best single model, by route.

    Each line of a file is an object with `prompt`, `model` (provider/model), `success` from 0 to 1, and if known `cost_usd` and `at`.
    """
    if (action is Action.REPORT) is bool(name):
        hint = "write it as in: bardo routing fit outcomes.jsonl"
        raise InvalidRequest(
            f"{action} takes {'no name' if name else 'a FILE or ROUTE'}", hint=hint, param="FILE|ROUTE"
        )
    settings = load_settings(config)
    path = state_path(settings)
    if action is Action.FIT:
        state = fit_outcomes(Path(name), embedding_of(settings))
        store_state(state, path)
        print_stderr(
            f"learned from {name}: {len(state.rows)} models, {len(state.clusters.centroids)} clusters, kept in {path}"
        )
        return
    if action is Action.RESET:
        store_state(_without_route(load_state(path, embedding_of(settings)), name), path)
        print_stderr(f"the route {name!r} begins anew")
        return
    state = open_router(settings).state
    if as_json:
        show_json(learned_record(state))
        return
    _report(state)


def fit_outcomes(path: Path, embedding: Embedding) -> LearnedState:
    """Return what the outcomes of a file teach, their prompts embedded so. Raises InvalidRequest naming the line that cannot be read."""
    lines = list(_lines(path))
    if not lines:
        raise InvalidRequest(f"{path} has no outcomes", hint="write one JSON object a line", param="FILE|ROUTE")
    prompts = list(dict.fromkeys(line.prompt for line in lines))
    table = OutcomeTable(fit_clusters(prompts, embedding, Random(_SEED)))
    shares = {prompt: table.clusters.shares(prompt, embedding) for prompt in prompts}
    newest = max((line.at for line in lines if line.at is not None), default=0.0)
    for line in sorted(lines, key=lambda one: newest if one.at is None else one.at):
        at = newest if line.at is None else line.at
        table.add(
            Outcome(shares=shares[line.prompt], model=line.model, success=line.success, cost=line.cost_usd, at=at)
        )
    return LearnedState(clusters=table.clusters, rows=table.rows)


def _lines(path: Path) -> Iterator[OutcomeLine]:
    decoder = msgspec.json.Decoder(OutcomeLine)
    try:
        content = path.read_bytes()
    except OSError as problem:
        raise InvalidRequest(
            f"{path} cannot be read: {problem}", hint="name a file of JSON lines", param="FILE|ROUTE"
        ) from problem
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            yield decoder.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError) as problem:
            hint = 'a line is {"prompt": "…", "model": "provider/model", "success": 1}'
            raise InvalidRequest(f"{path}, line {number}: {problem}", hint=hint, param="FILE|ROUTE") from problem


def _without_route(state: LearnedState | None, route: str) -> LearnedState:
    if state is None or route not in state.routes:
        known = ", ".join(sorted(state.routes)) if state and state.routes else "none"
        raise InvalidRequest(
            f"no route is called {route!r}", hint=f"routes that have learned: {known}", param="FILE|ROUTE"
        )
    return msgspec.structs.replace(state, routes={name: one for name, one in state.routes.items() if name != route})


def _report(state: LearnedState) -> None:
    if not state.rows:
        print_stderr('nothing is learned yet: set strategy = "learned" in [routing], or run bardo routing fit FILE')
        return
    found = learned_record(state)
    models = Table("model", "outcomes", "success", "cost of a call")
    for one in found["models"]:
        models.add_row(*model_cells(one))
    show(models)
    routes = Table("route", "verdict", "gain", "95 % interval", "routed", "best single", "regret")
    for route in found["routes"]:
        routes.add_row(*route_cells(route))
    if found["routes"]:
        show(routes)
