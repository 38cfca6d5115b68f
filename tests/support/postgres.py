"""A throw-away PostgreSQL server for tests, where its programs are found; tests that need one are skipped elsewhere.

`BARDO_TEST_POSTGRES` may name a server to use instead. Each test has a database of its own, which is gone after it.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, NullPool, create_engine, make_url, text

from support.patience import PATIENCE

_USERS = ("postgres", "nobody")
# Nothing of it outlives the tests, so nothing needs to reach the disk.
_OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "listen_addresses=", "max_connections=60")

# Who is still connected holds locks that the rest would wait for.
_EMPTYING = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()",
    "DROP SCHEMA public CASCADE",
    "CREATE SCHEMA public",
)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """Return the address of a server where databases can be made."""
    named = os.environ.get("BARDO_TEST_POSTGRES", "")
    if named:
        yield named
        return
    programs = _programs()
    if programs is None:
        pytest.skip("no programs of PostgreSQL are found")
    with _running(programs) as server:
        yield server.address


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """Return a server of this test alone, which it may stop and start."""
    programs = _programs()
    if programs is None:
        pytest.skip("no programs of PostgreSQL are found")
    with _running(programs) as server:
        yield server


@pytest.fixture(scope="session")
def postgres_database(postgres_server: str) -> Iterator[Engine]:
    """Return the database of this process's tests: making one takes a third of a second, and emptying one a twentieth."""
    name = f"bardo_{uuid.uuid4().hex}"
    server = create_engine(postgres_server, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    database = create_engine(
        make_url(postgres_server).set(database=name), isolation_level="AUTOCOMMIT", poolclass=NullPool
    )
    yield database
    with server.connect() as connection:
        connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    server.dispose()


@pytest.fixture
def postgres_url(postgres_database: Engine) -> Iterator[str]:
    """Return the address of an empty database."""
    yield postgres_database.url.render_as_string(hide_password=False)
    with postgres_database.connect() as connection:
        for statement in _EMPTYING:
            connection.execute(text(statement))


def _programs() -> Path | None:
    """Return the folder of `initdb` and `postgres`, of the newest version there is."""
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    all_of_them = [*([Path(found).parent] if found else []), *folders]
    return next((folder for folder in all_of_them if (folder / "initdb").exists()), None)


@contextmanager
def _running(programs: Path) -> Iterator[PostgresServer]:
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        as_user = _unprivileged(folder)
        data = folder / "data"
        made: list[str | Path] = [
            programs / "initdb",
            "-D",
            data,
            "-U",
            "bardo",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
            "--locale=C",
        ]
        subprocess.run(made, check=True, capture_output=True, cwd=folder, **as_user)
        server = PostgresServer(programs, folder, as_user)
        server.start()
        try:
            yield server
        finally:
            server.stop()


class PostgresServer:
    """A server whose files are in a folder, which may be stopped and started again."""

    def __init__(self, programs: Path, folder: Path, as_user: dict[str, Any]) -> None:
        self.address = f"postgresql+psycopg://bardo@/postgres?host={folder}"
        self._programs, self._folder, self._as_user = programs, folder, as_user
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [part for option in (*_OPTIONS, f"unix_socket_directories={self._folder}") for part in ("-c", option)]
        command: list[str | Path] = [self._programs / "postgres", "-D", self._folder / "data", *options]
        with (self._folder / "output").open("wb") as output:
            process: subprocess.Popen[bytes] = subprocess.Popen(
                command, stdout=output, stderr=output, cwd=self._folder, **self._as_user
            )
        self._process = process
        try:
            _wait_for(self.address, process, self._folder / "output")
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it at once: open connections are closed."""
        if self._process is not None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(PATIENCE)
            self._process = None


def _unprivileged(folder: Path) -> dict[str, Any]:
    """Return how to start a program as a user that PostgreSQL accepts: it refuses the administrator."""
    if os.geteuid() != 0:
        return {}
    for name in _USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        os.chown(folder, user.pw_uid, user.pw_gid)
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
    pytest.skip("there is no user that may run PostgreSQL")


def _wait_for(address: str, server: subprocess.Popen[bytes], output: Path) -> None:
    engine = create_engine(address)
    until = time.monotonic() + PATIENCE
    while True:
        try:
            engine.connect().close()
            break
        except Exception as problem:
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"PostgreSQL does not start: {output.read_text()}") from problem
            time.sleep(0.02)
    engine.dispose()
