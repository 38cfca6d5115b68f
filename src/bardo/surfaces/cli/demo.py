"""`bardo demo`: every provider's thinking in one form, in a few seconds, without a key."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from bardo.surfaces.cli.demonstration import QUESTION, Row, demonstrate
from bardo.surfaces.cli.options import AsJson
from bardo.surfaces.cli.simulate import known_presets
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.surfaces.render.thinking_sign import THINKING, ThinkingSign
from bardo.surfaces.render.wording import count, excerpt

_COLUMNS = (
    Column("provider", keep=True),
    Column("dialect", drop=1),
    Column("client dialect", drop=2),
    Column("reply"),
    Column("visibility"),
    Column("thinking", right=True),
    Column("answer", cut=True),
)


_LEGEND = """
dialect     what the provider speaks; the client asked in a dialect of its own
visibility  visible: the thinking came back in full; summarized: as a summary;
            opaque: there was some, and nobody may read it
thinking    its tokens; ~ where bardo estimates them from the text"""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("demo", epilog="Example: bardo demo anthropic gemini vllm")(demo)


def demo(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="PRESET...", help="The simulated providers; by default all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """See every provider's thinking in one form.

    Asks simulated providers one question through a gateway, in every client dialect, and compares what comes back. Needs no key and no
    network, and leaves nothing behind.
    """
    rows = _ask(known_presets(names or ()))
    failed = [row for row in rows if row.problem]
    if as_json:
        show_json({"question": QUESTION, "ok": not failed, "rows": rows})
    else:
        _show(rows, failed)
    if failed:
        raise typer.Exit(1)


def _ask(names: list[str]) -> list[Row]:
    sign = ThinkingSign(shown=sys.stderr.isatty())
    sign.show(THINKING)
    try:
        return demonstrate(names)
    finally:
        sign.hide()


def _show(rows: list[Row], failed: list[Row]) -> None:
    show_text(f"{len(rows)} simulated providers were asked “{QUESTION}” through a bardo gateway.\n")
    show(table(_COLUMNS, (_cells(row) for row in rows)))
    show_text(_LEGEND)
    for row in failed:
        print_stderr(f"bardo: {row.provider}: {excerpt(row.problem, 300)}")


def _cells(row: Row) -> tuple[str, ...]:
    return (
        row.provider,
        row.dialect,
        row.client_dialect,
        "stream" if row.streamed else "whole",
        row.visibility or "failed",
        count(row.reasoning_tokens, estimated=row.tokens_approx),
        excerpt(row.answer, 40) or "failed",
    )
