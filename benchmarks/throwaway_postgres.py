"""A PostgreSQL server that is killed and started again, where its programs are found. What it has committed outlives its death."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.processes import cpu_of, tree

_USERS = ("postgres", "nobody")
_PATIENCE_SECONDS = 60.0


def can_run_postgres() -> bool:
    """Whether the programs are here, and a user that may run them."""
    return _programs() is not None and _as_user() is not None


class Postgres:
    """One server over one folder, which has its socket. `address` is what bardo is configured with, `libpq` what psycopg takes."""

    def __init__(self, folder: Path, programs: Path, as_user: dict[str, Any]) -> None:
        self.folder, self._programs, self._as_user = folder, programs, as_user
        self.address = f"postgresql+psycopg://bardo@/postgres?host={folder}"
        self.libpq = f"host={folder} user=bardo dbname=postgres"
        made: list[str | Path] = [
            programs / "initdb",
            "-D",
            folder / "data",
            "-U",
            "bardo",
            "--auth=trust",
            "--no-sync",
            "-E",
            "UTF8",
        ]
        subprocess.run(made, check=True, capture_output=True, cwd=folder, **as_user)
        self._server = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        # The machine does not fail here, only the processes: what is written need not reach the disk, and commits are still written first.
        options = ("fsync=off", "listen_addresses=", "max_connections=1000", f"unix_socket_directories={self.folder}")
        arguments = [part for option in options for part in ("-c", option)]
        with (self.folder / "output").open("ab") as output:
            server = subprocess.Popen(
                [self._programs / "postgres", "-D", self.folder / "data", *arguments],
                stdout=output,
                stderr=output,
                cwd=self.folder,
                **self._as_user,
            )
        self._wait(server)
        return server

    def _wait(self, server: subprocess.Popen[bytes]) -> None:
        import psycopg

        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                psycopg.connect(self.libpq).close()
                return
            except psycopg.OperationalError:
                if server.poll() is not None or time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def cpu_seconds(self) -> float:
        """Return the processor time of the server and of all its processes, those that have ended too."""
        return sum(map(cpu_of, tree(self._server.pid)))

    def kill_and_restart(self) -> None:
        """Kill the server as `kill -9` does, and start it again over the same folder."""
        self._server.send_signal(signal.SIGKILL)
        self._server.wait()
        for _ in range(100):
            try:
                self._server = self._start()
                return
            except Exception:  # noqa: BLE001 - the processes of the one that was killed still hold its memory for a moment
                time.sleep(0.1)
        self._server = self._start()

    def stop(self) -> None:
        """End it."""
        self._server.send_signal(signal.SIGQUIT)
        self._server.wait(_PATIENCE_SECONDS)


@contextmanager
def postgres() -> Iterator[Postgres]:
    """Run a server in a folder that is gone afterwards."""
    programs, as_user = _programs(), _as_user()
    assert programs is not None
    assert as_user is not None
    with tempfile.TemporaryDirectory(prefix="pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if as_user:
            os.chown(folder, as_user["user"], as_user["group"])
        server = Postgres(folder, programs, as_user)
        try:
            yield server
        finally:
            server.stop()


def _programs() -> Path | None:
    found = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: path.parent.name, reverse=True)
    every = [*([Path(found).parent] if found else []), *folders]
    return next((folder for folder in every if (folder / "initdb").exists()), None)


def _as_user() -> dict[str, Any] | None:
    """Return how to start a program as a user that PostgreSQL accepts, which refuses the administrator; None where there is none."""
    if os.geteuid() != 0:
        return {}
    for name in _USERS:
        try:
            user = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": ()}
    return None
