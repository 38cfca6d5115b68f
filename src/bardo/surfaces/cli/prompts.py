"""`bardo prompts`: the named prompts that `bardo ask -t` fills in."""

from __future__ import annotations

from typing import Annotated

import typer

from bardo.surfaces.cli.ask_templates import Templates
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.options import AsJson
from bardo.surfaces.render.console import print_stderr, show, show_json
from bardo.surfaces.render.wording import excerpt

_BEGINNING = 60


def register(app: typer.Typer) -> None:
    """Add the command and its subcommand."""
    group = typer.Typer(cls=CommandGroup, rich_markup_mode=None)
    group.callback(invoke_without_command=True, epilog="Example: bardo prompts")(list_all)
    group.command("show", epilog="Example: bardo prompts show review")(show_one)
    app.add_typer(group, name="prompts")


def list_all(context: typer.Context, as_json: AsJson = False) -> None:
    """List the templates that `bardo ask -t` fills in."""
    if context.invoked_subcommand:
        return
    kept = Templates()
    found = {name: kept.load(name) for name in kept.names()}
    if as_json:
        show_json(found)
        return
    if not found:
        print_stderr(f"no templates: write one as {kept.folder / 'NAME.toml'}")
        return
    from bardo.surfaces.render.tables import Column, table

    columns = (Column("name", keep=True), Column("variables", wrap=True), Column("about", cut=True))
    rows = [
        (name, ", ".join(one.names) or "none", excerpt(one.about or one.prompt, _BEGINNING))
        for name, one in found.items()
    ]
    show(table(columns, rows))


def show_one(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The template's name.")], as_json: AsJson = False
) -> None:
    """Show a template: its prompt, its variables with their defaults, and what else it sets."""
    found = Templates().load(name)
    if as_json:
        show_json(found)
        return
    from bardo.surfaces.render.tables import facts

    defaults = {one: found.variables.get(one, "(has to be given)") for one in found.names}
    pairs = [
        ("about", found.about),
        ("model", found.model),
        ("reasoning", "" if found.reasoning is None else str(found.reasoning)),
        *((f"{{{{{one}}}}}", value) for one, value in defaults.items()),
        ("system", found.system),
        ("prompt", found.prompt.strip("\n")),
    ]
    show(facts((what, value) for what, value in pairs if value))
