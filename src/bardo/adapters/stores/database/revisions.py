"""Bring the tables of a store to the form this version of bardo uses.

New tables are created in that form, older ones are migrated, newer ones are refused. Loads SQLAlchemy: import it where a database is
opened.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING

from sqlalchemy import URL, Column, Connection, Engine, MetaData, String, Table, event, insert, inspect, select, update
from sqlalchemy.exc import DBAPIError, OperationalError, SQLAlchemyError

from bardo.adapters.stores.database.engines import open_for_writing, shown, unusable
from bardo.adapters.stores.database.problems import STATE, DatabaseProblem, DatabaseUse
from bardo.adapters.stores.migrations import VERSIONS, Branch

if TYPE_CHECKING:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

_LOCK = int.from_bytes(b"bardorev")
_INSUFFICIENT_PRIVILEGE = "42501"

_log = logging.getLogger("bardo")


def open_current(
    address: URL,
    branch: Branch,
    *,
    metadata: MetaData | None = None,
    use: DatabaseUse = STATE,
    prepare: Callable[[Engine], object] | None = None,
    may_be_away: bool = False,
) -> Engine:
    """Return an engine for writing to the tables of a store, which are created or migrated as `migrate` does.

    `prepare` gets the engine before it connects. With `may_be_away`, the tables of a server that is away are made or migrated with the
    first connection once it is back. Raises what `use` raises; nothing is left open then.
    """
    engine = open_for_writing(address, use)
    try:
        if prepare is not None:
            prepare(engine)
        migrate(engine, branch, metadata=metadata, use=use)
    except DatabaseProblem as problem:
        if not (may_be_away and problem.away):
            engine.dispose()
            raise
        _log.error("%s; it is used as soon as it is back", problem.message)
        _migrate_later(engine, branch, metadata, use)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _migrate_later(engine: Engine, branch: Branch, metadata: MetaData | None, use: DatabaseUse) -> None:
    current = False

    def migrate_first(connection: Connection) -> None:
        nonlocal current
        if current:
            return
        try:
            with connection.begin():
                _migrate(connection, branch, metadata, use)
        except BaseException as problem:
            connection.close()
            if isinstance(problem, DatabaseProblem):
                # Whoever asked for a connection expects the errors of a database.
                raise OperationalError(None, None, problem) from problem
            raise
        current = True

    event.listen(engine, "engine_connect", migrate_first)


def migrate(engine: Engine, branch: Branch, *, metadata: MetaData | None = None, use: DatabaseUse = STATE) -> None:
    """Create or migrate the tables of a store in one transaction; processes that start at once take turns.

    With `metadata`, new tables are made from it, without loading Alembic. Raises DatabaseNewer, and DatabaseUnusable where the database
    cannot be used.
    """
    try:
        with engine.begin() as connection:
            _migrate(connection, branch, metadata, use)
    except SQLAlchemyError as error:
        raise unusable(engine.url, error, use) from error


def _migrate(connection: Connection, branch: Branch, metadata: MetaData | None, use: DatabaseUse) -> None:
    if _recorded(connection, branch) == branch.newest:
        return
    if connection.dialect.name == "postgresql":
        # Stores have locks of their own, and share the table of revisions.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
    stored = stored_revision(connection, branch)
    if stored not in (None, branch.newest) and stored not in {
        script.revision for script in _scripts(connection, branch)[1].walk_revisions()
    }:
        form = stored.removeprefix(f"{branch.name}_")
        raise use.newer(
            f"the {use.name} at {shown(connection.engine.url)} was written by a newer bardo (its form is {form})",
            hint=use.how_to_part,
        )
    if stored is None:
        versions(VERSIONS).create(connection, checkfirst=True)
        if metadata is not None:
            metadata.create_all(connection)
            _record(connection, branch, branch.newest)
            return
    elif _recorded(connection, branch) is None and not _take_over(connection, branch, stored):
        return
    if stored != branch.newest:
        _upgrade(connection, branch)


def stored_revision(connection: Connection, branch: Branch) -> str | None:
    """Return the form that the tables of a store have, `None` where the database has none of them."""
    return _recorded(connection, branch) or _earlier(connection, branch)


@cache
def versions(table: str) -> Table:
    """Return a table of revisions in Alembic's form."""
    return Table(table, MetaData(), Column("version_num", String(32), primary_key=True))


def _recorded(connection: Connection, branch: Branch) -> str | None:
    if not inspect(connection).has_table(VERSIONS):
        return None
    return max(filter(branch.owns, connection.scalars(select(versions(VERSIONS)))), default=None)


def _earlier(connection: Connection, branch: Branch) -> str | None:
    """Return the form that a bardo wrote which had a table of revisions for each store."""
    if not inspect(connection).has_table(branch.earlier_table):
        return None
    number = connection.scalar(select(versions(branch.earlier_table)))
    return None if number is None else f"{branch.name}_{number}"


def _take_over(connection: Connection, branch: Branch, stored: str) -> bool:
    """Record the form that an earlier bardo noted. False where this is forbidden and nothing needs to be migrated."""
    try:
        with connection.begin_nested():
            versions(VERSIONS).create(connection, checkfirst=True)
            _record(connection, branch, stored)
    except DBAPIError as error:
        # A role that may change rows and make no tables goes on with what the earlier table says, as reading does.
        if stored != branch.newest or getattr(error.orig, "sqlstate", None) != _INSUFFICIENT_PRIVILEGE:
            raise
        text = "the table %s cannot be made at %s: %s is used instead until a role opens it that may"
        _log.warning(text, VERSIONS, shown(connection.engine.url), branch.earlier_table)
        return False
    return True


def _record(connection: Connection, branch: Branch, revision: str) -> None:
    connection.execute(insert(versions(VERSIONS)).values(version_num=revision))
    if inspect(connection).has_table(branch.earlier_table):
        # A bardo that knows only this table does not know this revision, and refuses the database as one of a newer bardo.
        connection.execute(update(versions(branch.earlier_table)).values(version_num=VERSIONS))


def _upgrade(connection: Connection, branch: Branch) -> None:
    from alembic.runtime.environment import EnvironmentContext
    from alembic.runtime.migration import MigrationStep

    config, scripts = _scripts(connection, branch)

    def steps(heads: Iterable[str], _context: object) -> list[MigrationStep]:
        # Other stores of the database may have revisions of a newer bardo, which `alembic.command.upgrade` would stumble over.
        own = next(filter(branch.owns, heads), "base")
        ahead = reversed(list(scripts.iterate_revisions(branch.newest, own)))
        return [MigrationStep.upgrade_from_script(scripts.revision_map, script) for script in ahead]

    with EnvironmentContext(config, scripts, fn=steps):
        scripts.run_env()


def _scripts(connection: Connection, branch: Branch) -> tuple[Config, ScriptDirectory]:
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config(attributes={"connection": connection})
    config.set_main_option("script_location", branch.tree)
    return config, ScriptDirectory.from_config(config)
