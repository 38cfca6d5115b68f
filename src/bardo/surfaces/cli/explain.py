"""`bardo explain`: what would be sent for a request, and why, without sending it."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any

import typer

from bardo.adapters.config.settings import load_settings
from bardo.dialects import DEFAULT_DIALECT
from bardo.surfaces.cli.models import WithLists, providers_of
from bardo.surfaces.cli.options import AsJson, Config, policy_of, read_bytes
from bardo.surfaces.library.asking import ANY, SAMPLES, decode_body, with_intent, with_reasoning
from bardo.surfaces.library.explaining import RoutePlanner, explain_by, read_request
from bardo.surfaces.render.console import show_json, show_text
from bardo.surfaces.render.explained import explanation_json, explanation_lines
from bardo.values.errors import InvalidRequest


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
        str, typer.Option("--provider", metavar="NAME", help="The provider, by its id or a preset.")
    ] = "",
    reasoning: Annotated[
        str | None,
        typer.Option("--reasoning", "-r", metavar="HOW", help="off, auto, low, medium, high …, or a budget in tokens."),
    ] = None,
    dialect: Annotated[
        str, typer.Option("--dialect", metavar="NAME", help=f"The request's: {', '.join(SAMPLES)} ….")
    ] = DEFAULT_DIALECT,
    workload: Annotated[
        str, typer.Option("--workload", "--subsystem", metavar="NAME", help="The workload or subsystem of the call.")
    ] = "",
    intent: Annotated[
        str,
        typer.Option("--intent", metavar="NEEDS", help="What the call needs: 'quality=high; require=vision', or JSON."),
    ] = "",
    stream: Annotated[bool | None, typer.Option("--stream/--whole", help="Whether a stream is asked for.")] = None,
    lists: WithLists = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Show what would be sent for a request, and why.

    The request is not sent, and no key is needed. Printed are the candidates, the profile, the upstream request, and what differs.
    """
    body = with_reasoning(_body(request, dialect), None if reasoning is None else policy_of(reasoning))
    body = with_intent(body, workload, intent, "--intent")
    if (workload or intent) and not model and not body.get("model"):
        model = ANY
    if not model and not body.get("model"):
        raise InvalidRequest("no model is named", hint="write it as in: bardo explain --model gpt-5", param="--model")
    settings = load_settings(config)
    planner = RoutePlanner(settings, providers_of(settings, with_lists=lists))
    found = explain_by(planner, read_request(body, dialect, model or None, stream=stream), provider)
    if as_json:
        show_json(explanation_json(found))
    else:
        # Print an explanation to read, with bold headings on a terminal.
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
    return decode_body(read_bytes(name), name)
