"""Bring a database to the form this version of bardo uses.

A new database is created in that form, an older one is migrated, a newer one is refused. Each owner of tables has migrations and a
table of the form's version of its own, so that several share one database. Loads SQLAlchemy: import it where a database is opened.
"""

from __future__ import annotations

from functools import cache

from sqlalchemy import Column, Connection, Engine, MetaData, String, Table, insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from bardo.adapters.stores.database.engines import shown, unusable
from bardo.adapters.stores.database.problems import STATE, DatabaseUse


def migrate(
    engine: Engine,
    migrations: str,
    version_table: str,
    target: str,
    *,
    metadata: MetaData | None = None,
    use: DatabaseUse = STATE,
) -> None:
    """Create or migrate tables in one transaction; two processes that start at once take turns.

    `migrations` is a folder of Alembic's, or `package:folder`, which leads to the form `target`. With `metadata`, new tables are made
    from it, without loading Alembic. Raises DatabaseNewer, and DatabaseUnusable where the database cannot be used.
    """
    try:
        with engine.begin() as connection:
            stored = stored_revision(connection, version_table)
            if stored is None and metadata is not None:
                _create(connection, metadata, version_table, target)
            elif stored != target:
                _upgrade(connection, stored, migrations, use)
    except SQLAlchemyError as error:
        raise unusable(engine.url, error, use) from error


def stored_revision(connection: Connection, version_table: str) -> str | None:
    """Return the form that the tables of a database have, `None` where it has none."""
    if not inspect(connection).has_table(version_table):
        return None
    return connection.scalar(select(versions(version_table).c.version_num))


@cache
def versions(version_table: str) -> Table:
    """Return Alembic's own table, under a name of ours: a fleet's PostgreSQL may hold another program's `alembic_version`."""
    return Table(version_table, MetaData(), Column("version_num", String(32), primary_key=True))


def _create(connection: Connection, metadata: MetaData, version_table: str, target: str) -> None:
    metadata.create_all(connection)
    table = versions(version_table)
    table.create(connection)
    connection.execute(insert(table).values(version_num=target))


def _upgrade(connection: Connection, stored: str | None, migrations: str, use: DatabaseUse) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", migrations)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if stored is not None and stored not in known:
        raise use.newer(
            f"the {use.name} at {shown(connection.engine.url)} was written by a newer bardo (its form is {stored})",
            hint=use.how_to_part,
        )
    command.upgrade(config, "head")
