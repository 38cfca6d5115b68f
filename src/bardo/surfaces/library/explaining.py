"""`bardo.explain`: what would be sent for a request, and why, without sending it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from bardo.adapters.config.settings import Settings, load_settings
from bardo.dialects import DEFAULT_DIALECT, DIALECTS
from bardo.dialects import dialect as dialect_named
from bardo.planning.explaining import explain as explain_route
from bardo.planning.explanation import Explanation
from bardo.planning.route import Target
from bardo.surfaces.library.planned_routes import PlannedRoute, RoutePlanner
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request
from bardo.values.wire import Arrival

T = TypeVar("T")
Config = str | Path | Settings | None


def explain(
    request: Mapping[str, Any],
    dialect: str = DEFAULT_DIALECT,
    provider: str = "",
    *,
    model: str | None = None,
    stream: bool | None = None,
    config: Config = None,
) -> Explanation:
    """Return what would be sent for a client's request: the exact upstream body, the route, and every difference. Nothing is sent.

    `request` is the body in the client's `dialect`. `provider` is one that is configured, or a row of the catalog, which needs no
    configuration; without it the model's name is routed as by the gateway: it may be an alias or a workload, and the `bardo` object may
    hold an intent. Where nobody is configured for a model, the catalog's provider of such names is meant.
    `model` goes before the body's. `stream` says whether the reply is asked for as a stream, which Gemini's and Bedrock's clients say in
    the path; None: as the body says. `config` is a bardo.toml, its Settings, or None for what is found.
    Raises InvalidRequest, UnknownModel, ConfigError, and Unsupported where the request cannot be put to anybody.
    """
    settings = config if isinstance(config, Settings) else load_settings(config)
    return explain_by(RoutePlanner(settings), read_request(request, dialect, model, stream=stream), provider)


def explain_by(planner: RoutePlanner, request: Request, provider: str = "") -> Explanation:
    """Return what would be sent for a request by a planner's configuration. Raises as `explain` does."""
    if planner.may_have_layers(request):
        return _explain_with_layers(planner, request, provider)
    return _explain(planner.plan(request, provider))


def _explain(planned: PlannedRoute) -> Explanation:
    return explain_route(
        planned.request, planned.targets, why=planned.why, knowledge=planned.knowledge, routed=planned.routed
    )


def _explain_with_layers(planner: RoutePlanner, request: Request, provider: str) -> Explanation:
    """Return what would be sent for a request once its layers have worked on it, with their receipts."""
    from bardo.surfaces.library.dry_run import run_layers

    plans: list[PlannedRoute] = []

    def plan(changed: Request, found: Mapping[str, Any], every_server: bool) -> tuple[Request, Sequence[Target]]:
        plans.append(planner.plan(changed, provider, found, every_server=every_server))
        return plans[0].request, plans[0].targets

    ran = _run(run_layers(planner.settings, request, plan))
    if ran is None:
        return _explain(planner.plan(request, provider))
    planned = msgspec.structs.replace(plans[0], request=ran.request, targets=ran.targets)
    found = _explain(planned)
    forwarded = found.forwarded and not ran.call.changes_reply
    return msgspec.structs.replace(found, pipeline=ran.call.fields(), forwarded=forwarded)


def _run(work: Coroutine[Any, Any, T]) -> T:
    """Return what a coroutine returns, also where an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def read_request(
    request: Mapping[str, Any], dialect: str, model: str | None = None, *, stream: bool | None = None
) -> Request:
    """Return a client's body as a Request; `stream` goes before what the body says. Raises InvalidRequest."""
    if dialect not in DIALECTS:
        near = get_close_matches(dialect, DIALECTS, n=2)
        hint = f"did you mean {' or '.join(near)}?" if near else f"use one of {', '.join(DIALECTS)}"
        raise InvalidRequest(f"no dialect is called {dialect!r}", hint=hint, param="dialect")
    fields = dict(request)
    named = model or fields.get("model")
    if dialect_named(dialect).model_in_path:
        fields.pop("model", None)
    else:
        fields |= {"model": named} if named is not None else {}
        fields |= {"stream": stream} if stream is not None else {}
    try:
        body = msgspec.json.encode(fields)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidRequest(f"the request cannot be written as JSON: {str(problem)[:200]}") from problem
    return dialect_named(dialect).decode_request(
        body, Arrival(model=named if isinstance(named, str) else "", stream=stream)
    )
