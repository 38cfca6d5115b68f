"""`bardo explain`: what would be sent for a request, and why, without sending it."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import msgspec
import typer

from bardo.dialects.intents import read_intent_header
from bardo.edge.settings import load_settings
from bardo.engine.workload_requests import ANY_MODEL
from bardo.routing.workloads import PREFIX
from bardo.surfaces.cli.model_lists import WithLists, providers_of
from bardo.surfaces.cli.options import AsJson, Config, policy_of, read_bytes
from bardo.surfaces.library.explaining import explain_by, read_request
from bardo.surfaces.library.planned_routes import RoutePlanner
from bardo.surfaces.render.console import show_json, show_text
from bardo.surfaces.render.explained import explanation_json, explanation_lines
from bardo.values.errors import InvalidRequest

ANY = PREFIX + ANY_MODEL
_SAID = "What is 27 * 43?"
# What is asked where no request is given, in each dialect that clients speak.
SAMPLES: dict[str, dict[str, Any]] = {
    "openai_chat": {"messages": [{"role": "user", "content": _SAID}]},
    "openai_responses": {"input": _SAID},
    "anthropic_messages": {"max_tokens": 4096, "messages": [{"role": "user", "content": _SAID}]},
    "gemini": {"contents": [{"role": "user", "parts": [{"text": _SAID}]}]},
}


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "explain", epilog="Example: bardo explain --model claude-opus-4-8 --provider anthropic --reasoning low"
    )(explain)


def explain(
    request: Annotated[
        str | None,
        typer.Argument(metavar="REQUEST", help="A client's request as a JSON file, or - for stdin; else a small one."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="A model's id, or provider/model; by default the request's.")
    ] = "",
    provider: Annotated[
        str, typer.Option("--provider", metavar="NAME", help="Whom to ask, by its id or a preset.")
    ] = "",
    reasoning: Annotated[
        str | None,
        typer.Option("--reasoning", "-r", metavar="HOW", help="off, auto, low, medium, high …, or a budget in tokens."),
    ] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", metavar="NAME", help=f"The request's: {', '.join(SAMPLES)} ….")
    ] = "openai_chat",
    workload: Annotated[
        str,
        typer.Option("--workload", "--subsystem", metavar="NAME", help="The workload or subsystem that the call is."),
    ] = "",
    intent: Annotated[
        str,
        typer.Option("--intent", metavar="NEEDS", help="What the call needs: 'quality=high; require=vision', or JSON."),
    ] = "",
    lists: WithLists = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show what would be sent for a request, and why.

    The request is not sent, and no key is needed. Printed are the candidates, the profile, the upstream request, and what differs.
    """
    body = _with_reasoning(_body(request, dialect), reasoning)
    body = with_intent(body, workload, intent)
    if (workload or intent) and not model and not body.get("model"):
        model = ANY
    if not model and not body.get("model"):
        raise InvalidRequest("no model is named", hint="write it as in: bardo explain --model gpt-5", param="--model")
    settings = load_settings(config)
    planner = RoutePlanner(settings, providers_of(settings, with_lists=lists))
    found = explain_by(planner, read_request(body, dialect, model or None), provider)
    if as_json:
        show_json(explanation_json(found))
        return
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    for heading, lines in explanation_lines(found):
        print(f"\x1b[1m{heading}\x1b[0m" if bold else heading)
        show_text("\n".join([*lines, ""]))
    show_text("Nothing was sent.")


def _body(name: str | None, dialect: str) -> dict[str, Any]:
    if name is None:
        if dialect not in SAMPLES:
            hint = f"give a request, or a dialect that clients speak: {', '.join(SAMPLES)}"
            raise InvalidRequest(f"there is no request in {dialect!r} at hand", hint=hint, param="REQUEST")
        return dict(SAMPLES[dialect])
    try:
        body = msgspec.json.decode(read_bytes(name))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as problem:
        raise InvalidRequest(
            f"{name} is not valid JSON: {problem}", hint="give the body of a client's request"
        ) from problem
    if not isinstance(body, dict):
        raise InvalidRequest(f"{name} is no JSON object", hint="give the body of a client's request")
    return body


def with_intent(body: dict[str, Any], workload: str, intent: str) -> dict[str, Any]:
    """Return the request with the needs that the options give, which go before its own. Raises InvalidRequest."""
    said = read_intent_header(intent, "--intent")
    if workload:
        said["subsystem"] = workload.removeprefix(PREFIX)
    if not said:
        return body
    own = body.get("bardo")
    own = own if isinstance(own, dict) else {}
    before = own.get("intent")
    needs = {**(before if isinstance(before, dict) else {}), **said}
    return {**body, "bardo": {**own, "intent": needs}}


def _with_reasoning(body: dict[str, Any], asked: str | None) -> dict[str, Any]:
    """Return the request with a policy that goes before its own."""
    if asked is None:
        return body
    own = body.get("bardo")
    policy = policy_of(asked)
    return {**body, "bardo": {**(own if isinstance(own, dict) else {}), "reasoning": policy}}
