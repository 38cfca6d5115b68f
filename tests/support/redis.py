"""A throw-away Redis server for tests, where its program is found; tests that need one are skipped elsewhere.

`BARDO_TEST_REDIS` may name a server to use instead, whose keys of bardo are removed. Each test has the server without keys.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.patience import PATIENCE

_PROGRAMS = ("redis-server", "valkey-server")


@pytest.fixture(scope="session")
def redis_server() -> Iterator[str]:
    """Return the address of a server."""
    pytest.importorskip("redis")
    named = os.environ.get("BARDO_TEST_REDIS", "")
    if named:
        yield named
        return
    with _running(_program()) as address:
        yield address


@pytest.fixture(scope="session")
def redis_program() -> str:
    """Return the program of a server, for tests that start and stop one."""
    pytest.importorskip("redis")
    return _program()


@pytest.fixture
def redis_url(redis_server: str) -> Iterator[str]:
    """Return the address of a server without keys of bardo."""
    yield redis_server
    import redis

    with redis.Redis.from_url(redis_server) as server:
        for key in server.scan_iter("bardo:*"):
            server.delete(key)


def _program() -> str:
    program = next((found for name in _PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.skip("no program of Redis or Valkey is found")
    return program


def run_redis(program: str, folder: Path) -> subprocess.Popen[bytes]:
    """Start a server that listens at `socket` in a folder, and return it when it does."""
    place = folder / "socket"
    # No port, so that tests that run side by side share nothing; nothing of it outlives the tests.
    options = ["--port", "0", "--unixsocket", str(place), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    with (folder / "output").open("wb") as output:
        server = subprocess.Popen([program, *options], stdout=output, stderr=output)
    until = time.monotonic() + PATIENCE
    while not _answers(place):
        if server.poll() is not None or time.monotonic() > until:
            server.kill()
            raise RuntimeError(f"{program} does not start: {(folder / 'output').read_text()}")
        time.sleep(0.01)
    return server


def _answers(place: Path) -> bool:
    # The file is there a moment before anyone listens.
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(place)) == 0


@contextmanager
def _running(program: str) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="redis-", ignore_cleanup_errors=True) as name:
        server = run_redis(program, Path(name))
        try:
            yield f"unix://{name}/socket"
        finally:
            server.terminate()
            server.wait(PATIENCE)
