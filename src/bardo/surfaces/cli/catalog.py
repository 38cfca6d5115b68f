"""`bardo catalog`: the rows bardo knows the world by."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.reasoning.formats import ReasoningFormat, formats
from bardo.surfaces.cli.options import AsJson
from bardo.surfaces.render.console import show, show_json
from bardo.surfaces.render.words import NOT_REPORTED, excerpt


class Rows(StrEnum):
    """What the catalog holds."""

    PROVIDERS = "providers"
    FORMATS = "formats"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("catalog", epilog="Example: bardo catalog formats --json")(catalog)


def catalog(
    which: Annotated[Rows, typer.Argument(help="Which rows.")] = Rows.PROVIDERS, as_json: AsJson = False
) -> None:
    """List known providers, or formats of thinking.

    Providers are the presets of bardo.toml; formats are how models mark their thinking in text.
    """
    if which is Rows.PROVIDERS:
        _providers(as_json)
    else:
        _formats(as_json)


def _providers(as_json: bool) -> None:
    rows = builtin().providers
    if as_json:
        show_json(rows)
        return
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("preset"), Column("dialect"), Column("key"), Column("address", cut=True))
    show(table(columns, (_provider(row) for row in rows)))


def _provider(row: ProviderRow) -> tuple[str, ...]:
    return row.id, row.dialect, next(iter(row.key_variables), NOT_REPORTED), row.base_url or "your own: base_url"


def _formats(as_json: bool) -> None:
    rows = list(formats().values())
    if as_json:
        show_json(rows)
        return
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("format"), Column("begins"), Column("ends"), Column("models", cut=True))
    show(table(columns, (_format(row) for row in rows)))


def _format(row: ReasoningFormat) -> tuple[str, ...]:
    inside = " (implied)" if row.starts_inside is True else ""
    return row.name, _spelled(row.starts) + inside, _spelled(row.ends), ", ".join(row.families)


def _spelled(delimiters: tuple[str, ...]) -> str:
    """Return the first spelling, and whether there are others."""
    further = " …" if len(delimiters) > 1 else ""
    return excerpt(delimiters[0], 22) + further if delimiters else NOT_REPORTED
