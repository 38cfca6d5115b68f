"""Bring a database to the form this version of bardo writes.

A new database is created in that form, an older one is migrated, a newer one is refused. Alembic loads only for the
last two. Loads SQLAlchemy: import it where a log is opened, and nowhere above.
"""

from __future__ import annotations

from sqlalchemy import URL, Connection, Engine, insert, inspect, select
from sqlalchemy.exc import SQLAlchemyError

from bardo.edge.log.database import open_for_writing, shown, unusable
from bardo.edge.log.problems import LogMissing, LogNewer
from bardo.edge.log.schema import CURRENT_REVISION, VERSION_TABLE, inference_log_version, metadata

MIGRATIONS = "bardo.edge.log:migrations"


def bring_to_current(engine: Engine, *, migrations: str = MIGRATIONS, current: str = CURRENT_REVISION) -> None:
    """Create or migrate in one transaction; two processes that start at once take turns.

    Raises LogNewer, and LogUnusable where the database cannot be used.
    """
    try:
        with engine.begin() as connection:
            stored = stored_revision(connection)
            if stored is None:
                _create(connection)
            elif stored != current:
                _migrate(connection, stored, migrations)
    except SQLAlchemyError as error:
        raise unusable(engine.url, error) from error


def check_readable(
    engine: Engine, address: URL, *, migrations: str = MIGRATIONS, current: str = CURRENT_REVISION
) -> None:
    """Make sure `engine` can read the log, migrating an older one first.

    Raises LogMissing where the database holds no log, LogNewer, and LogUnusable.
    """
    try:
        with engine.connect() as connection:
            stored = stored_revision(connection)
    except SQLAlchemyError as error:
        raise unusable(address, error) from error
    if stored is None:
        raise LogMissing(
            f"{shown(address)} holds no inference log", hint="name the log that your gateway writes, and check the path"
        )
    if stored != current:
        _bring_forward(address, migrations, current)


def stored_revision(connection: Connection) -> str | None:
    """Return the revision a database is at, `None` where it holds no log."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(select(inference_log_version.c.version_num))


def _bring_forward(address: URL, migrations: str, current: str) -> None:
    engine = open_for_writing(address)
    try:
        bring_to_current(engine, migrations=migrations, current=current)
    finally:
        engine.dispose()


def _create(connection: Connection) -> None:
    metadata.create_all(connection)
    inference_log_version.create(connection)
    connection.execute(insert(inference_log_version).values(version_num=CURRENT_REVISION))


def _migrate(connection: Connection, stored: str, migrations: str) -> None:
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", migrations)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if stored not in known:
        raise LogNewer(
            f"the inference log at {shown(connection.engine.url)} was written by a newer bardo (its form is {stored})",
            hint="upgrade bardo, or give this one a log of its own at another path",
        )
    command.upgrade(config, "head")
