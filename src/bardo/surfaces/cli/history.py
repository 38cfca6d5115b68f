"""`bardo history`: the conversations that `bardo ask` keeps."""

from __future__ import annotations

import time
from typing import Annotated

import msgspec
import typer

from bardo.adapters.config.settings import data_folder, load_settings
from bardo.surfaces.cli.ask_conversations import Conversation, Conversations
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.options import AsJson, Config
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.surfaces.render.wording import moment
from bardo.values.blocks import ReasoningBlock
from bardo.values.errors import InvalidRequest

Name = Annotated[str, typer.Argument(metavar="NAME", help="The conversation's name.")]


def register(app: typer.Typer) -> None:
    """Add the command and its subcommands."""
    group = typer.Typer(cls=CommandGroup, rich_markup_mode=None)
    group.callback(invoke_without_command=True, epilog="Example: bardo history")(list_all)
    group.command("show", epilog="Example: bardo history show work")(show_one)
    group.command("forget", epilog="Example: bardo history forget work")(forget)
    app.add_typer(group, name="history")


def list_all(context: typer.Context, as_json: AsJson = False, config: Config = None) -> None:
    """List, show and forget the conversations of `bardo ask`."""
    if context.invoked_subcommand:
        return
    kept = Conversations(data_folder(load_settings(config)))
    found = [kept.load(name) for name in kept.names()]
    if as_json:
        show_json([_summary(one) for one in found])
    elif not found:
        print_stderr("no conversations: `bardo ask -c NAME …` begins one")
    else:
        _show(found)


def show_one(name: Name, as_json: AsJson = False, config: Config = None) -> None:
    """Show what was asked and answered in a conversation; with --json all that is kept of it."""
    found = Conversations(data_folder(load_settings(config))).load(name)
    if not found.messages:
        raise InvalidRequest(f"there is no conversation {name!r}", hint="`bardo history` lists them")
    if as_json:
        show_json(found)
        return
    for message in found.messages:
        thought = sum(len(block.readable) for block in message.blocks if isinstance(block, ReasoningBlock))
        note = f" (after {thought:,} characters of thinking)" if thought else ""
        show_text(f"{message.role}{note}:\n{message.paragraphs}\n")


def forget(name: Name, config: Config = None) -> None:
    """Delete a conversation."""
    Conversations(data_folder(load_settings(config))).forget(name)


def _summary(one: Conversation) -> dict[str, object]:
    fields: dict[str, object] = msgspec.structs.asdict(one)
    fields["questions"] = one.questions
    return {name: value for name, value in fields.items() if name not in ("messages", "version")}


def _show(found: list[Conversation]) -> None:
    from bardo.surfaces.render.tables import Column, table

    columns = (
        Column("name", keep=True),
        Column("questions", right=True, drop=1),
        Column("model", keep=True),
        Column("last"),
    )
    now = time.time()
    rows = [(one.name, f"{one.questions:,}", one.model, moment(one.changed_at, now)) for one in found]
    show(table(columns, rows))
