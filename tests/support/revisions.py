"""Alembic's own commands over the tree of revisions, and databases as earlier versions of bardo left them."""

from __future__ import annotations

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from bardo.adapters.stores.migrations import LOG_BRANCH

EARLIER = Path(__file__).parents[1] / "fixtures" / "earlier_databases"
"""What earlier versions ran to make and migrate their tables, in a file for each store and engine."""


def upgrade(connection: Connection, revision: str) -> None:
    """Bring a database to a revision."""
    command.upgrade(configuration(connection), revision)


def downgrade(connection: Connection, revision: str) -> None:
    """Bring a database back to a revision."""
    command.downgrade(configuration(connection), revision)


def configuration(connection: Connection | None = None) -> Config:
    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", LOG_BRANCH.tree)
    return config


def scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(configuration())


def earlier_forms(store: str) -> list[str]:
    """Return the numbers of the forms that a store had before there was one tree."""
    text = (EARLIER / f"{store}.sqlite.sql").read_text()
    return [line.removeprefix("-- form ") for line in text.splitlines() if line.startswith("-- form ")]


def make_earlier(connection: Connection, store: str, form: str) -> None:
    """Make the tables of a store in a form that an earlier version wrote, with its own table of that form."""
    text = (EARLIER / f"{store}.{connection.dialect.name}.sql").read_text()
    for number, section in zip(earlier_forms(store), text.split("-- form ")[1:], strict=True):
        if number <= form:
            for statement in section.partition("\n")[2].split("-- end\n"):
                if statement.strip():
                    connection.exec_driver_sql(statement)
