"""`bardo catalog`: the rows bardo knows the world by."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from bardo.adapters.config.formats import known_formats
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.reasoning.formats import ReasoningFormat, example_of
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.render.console import as_plain, print_stderr, show, show_json
from bardo.surfaces.render.wording import NOT_REPORTED, one_line
from bardo.values.errors import InvalidRequest

EXAMPLE_WIDTH = 64
_SHOW_HINT = "write it as in: bardo catalog show claude-sonnet-5"


class Rows(StrEnum):
    """What the catalog holds."""

    PROVIDERS = "providers"
    FORMATS = "formats"
    SHOW = "show"
    REFRESH = "refresh"
    DIFF = "diff"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("catalog", epilog="Example: bardo catalog show qwen/qwen3-32b --provider openrouter")(catalog)


def catalog(
    which: Annotated[Rows, typer.Argument(help="Which rows; show one model; or refresh lists.")] = Rows.PROVIDERS,
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME...", help="With show: a model. With refresh and diff: providers."),
    ] = None,
    provider: Annotated[
        str, typer.Option("--provider", metavar="NAME", help="With show: the provider, by its id or a preset.")
    ] = "",
    offline: Annotated[bool, typer.Option("--offline", help="With show: ask no server.")] = False,
    accept: Annotated[bool, typer.Option("--accept", help="With refresh: accept implausible changes too.")] = False,
    config: Config = None,
    as_json: AsJson = False,
) -> None:
    """Show facts about providers and models, or refresh them.

    Providers are the presets of bardo.toml; formats are how models mark their thinking in text. Of a model every fact is shown with who
    says so and as of when. refresh asks providers for their lists of models, prices included, and keeps them; diff shows what that would
    change. A list that lost half of its models, or whose prices moved tenfold, is kept out.
    """
    _check(which, names or [], accept=accept)
    if which is Rows.SHOW:
        from bardo.surfaces.cli.catalog_show import show_model

        show_model((names or [""])[0], provider, config, live=not offline, as_json=as_json)
    elif which in (Rows.REFRESH, Rows.DIFF):
        from bardo.surfaces.cli.catalog_refresh import refresh_lists

        refresh_lists(names or [], config, accept=accept, dry=which is Rows.DIFF, as_json=as_json)
    elif which is Rows.PROVIDERS:
        _providers(as_json)
    else:
        _formats(config, as_json)


def _check(which: Rows, names: Sequence[str], *, accept: bool) -> None:
    """Raise InvalidRequest for names or an option that go with something else."""
    wanted = {Rows.SHOW: len(names) == 1, Rows.PROVIDERS: not names, Rows.FORMATS: not names}
    if not wanted.get(which, True):
        message = "show takes a model, refresh and diff take providers, and nothing else takes a name"
        raise InvalidRequest(message, hint=_SHOW_HINT, param="NAME")
    if accept and which is not Rows.REFRESH:
        raise InvalidRequest("only refresh accepts", hint="bardo catalog refresh --accept", param="--accept")


def _providers(as_json: bool) -> None:
    rows = builtin().providers
    if as_json:
        show_json(rows)
        return
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("preset", keep=True), Column("dialect"), Column("key"), Column("address", cut=True))
    show(table(columns, (_provider(row) for row in rows)))


def _provider(row: ProviderRow) -> tuple[str, ...]:
    return row.id, row.dialect, next(iter(row.key_variables), NOT_REPORTED), row.base_url or "your own: base_url"


def _formats(config: Path | None, as_json: bool) -> None:
    rows = list(known_formats(config).rows.values())
    if as_json:
        show_json([_format_fields(row) for row in rows])
        return
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("format", keep=True), Column("example"), Column("models", cut=True))
    show(table(columns, (_format(row) for row in rows)))
    print_stderr("An example without a beginning: the prompt holds it. --json prints whole rows.")


def _format_fields(row: ReasoningFormat) -> dict[str, Any]:
    return {**msgspec.to_builtins(row, enc_hook=as_plain), "example": example_of(row)}


def _format(row: ReasoningFormat) -> tuple[str, ...]:
    models = ", ".join(row.families or row.patterns)
    return row.name, _on_one_line(example_of(row)) or NOT_REPORTED, models


def _on_one_line(example: str) -> str:
    shown = one_line(example)
    return shown if len(shown) <= EXAMPLE_WIDTH else f"{shown[: EXAMPLE_WIDTH - 1]}…"
