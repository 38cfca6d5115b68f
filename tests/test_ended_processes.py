"""Processes that tests start end with the test, at its deadline, and with a pytest that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.patience import PATIENCE, read_line
from support.processes import Watcher, living

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system shows no environments")

# A program that has started another one in a session of its own, as another user where it may, writes over its own environment as Redis
# does, and waits for the other.
STARTING = """
import ctypes, os, subprocess, sys
user = {"user": "nobody"} if os.geteuid() == 0 else {}
started = subprocess.Popen(["sleep", "3600"], start_new_session=True, stdout=subprocess.DEVNULL, **user)
first, last = map(int, open("/proc/self/stat").read().rpartition(") ")[2].split()[47:49])
ctypes.memset(first, 0, last - first)
print(os.getpid(), started.pid, flush=True)
started.wait()
"""
TESTS = f"""
import os, signal, subprocess, sys
import pytest

def starting(**options):
    return subprocess.Popen([sys.executable, "-c", {STARTING!r}], stdout=subprocess.PIPE, text=True, **options)

@pytest.fixture(scope="session")
def server():
    with starting() as process:
        yield process.stdout.readline()
        assert process.poll() is None
        process.kill()

def test_deadline(server):
    with starting() as first, starting(env={{"PATH": os.environ["PATH"]}}) as second:
        print(server, first.stdout.readline(), second.stdout.readline(), file=open("processes", "w"))
        signal.raise_signal(signal.SIGALRM)

def test_left(server):
    print(starting(start_new_session=True).stdout.readline(), file=open("processes", "a"))

def test_server(server):
    for number in server.split():
        os.kill(int(number), 0)

def test_killed():
    with starting() as process:
        print(os.getpid(), process.stdout.readline(), file=open(os.environ["SAID"], "w"), flush=True)
"""


@pytest.fixture
def nested(tmp_path: Path) -> list[str]:
    """Return the command that runs one of `TESTS` in this test's folder."""
    (tmp_path / "test_nested.py").write_text(TESTS, encoding="utf-8")
    options = ["-q", "--timeout=300", "-p", "support.ended_processes", "-p", "no:cacheprovider", "--rootdir=."]
    return [sys.executable, "-m", "pytest", *options, "test_nested.py"]


@contextmanager
def running(command: list[str], folder: Path, **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run a pytest of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), **variables}
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def wait_until_gone(processes: set[int]) -> None:
    """Wait until none of some processes is alive."""
    until = time.monotonic() + PATIENCE
    while left := processes & {one.number for one in living()}:
        assert time.monotonic() < until, left
        time.sleep(0.02)


def test_what_a_test_starts_ends_at_its_deadline_and_after_it_and_a_shared_server_lives_on(
    nested: list[str], tmp_path: Path
) -> None:
    with running([*nested, "-k", "not killed"], tmp_path) as pytest_itself:
        said = pytest_itself.communicate(timeout=PATIENCE)[0]
    assert "1 failed, 2 passed" in said
    assert "Failed: Timeout" in said
    assert "processes that tests left, and that were killed" in said
    assert said.count("test_nested.py::test_deadline: sleep 3600") == 2
    assert said.count("test_nested.py::test_left: sleep 3600") == 1
    processes = {int(number) for number in (tmp_path / "processes").read_text().split()}
    assert len(processes) == 8
    wait_until_gone(processes)


@pytest.mark.parametrize(
    ("workers", "number"), [("0", signal.SIGKILL), ("0", signal.SIGTERM), ("0", signal.SIGINT), ("1", signal.SIGKILL)]
)
def test_what_a_test_starts_ends_with_a_pytest_that_is_killed(
    nested: list[str], tmp_path: Path, workers: str, number: signal.Signals
) -> None:
    os.mkfifo(tmp_path / "said")
    command = [*nested, "-n", workers, "-k", "killed"]
    with running(command, tmp_path, SAID=str(tmp_path / "said")) as pytest_itself, (tmp_path / "said").open() as said:
        processes = {int(one) for one in read_line(said).split()}
        pytest_itself.send_signal(number)
        pytest_itself.wait(PATIENCE)
        wait_until_gone(processes)
    assert len(processes) == 3


def test_what_a_test_starts_ends_with_a_killed_worker(nested: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "said")
    command = [*nested, "-n", "1", "-k", "killed"]
    with running(command, tmp_path, SAID=str(tmp_path / "said")) as pytest_itself, (tmp_path / "said").open() as said:
        worker, *processes = (int(one) for one in read_line(said).split())
        os.kill(worker, signal.SIGKILL)
        assert "worker 'gw0' crashed" in pytest_itself.communicate(timeout=PATIENCE)[0]
        wait_until_gone({worker, *processes})
    assert len(processes) == 2


def test_a_watcher_that_is_stopped_ends_nothing() -> None:
    with subprocess.Popen(["sleep", "3600"], env={**os.environ, "BARDO_TEST_RUN": "mine/1"}) as process:
        watcher = Watcher("mine")
        watcher.stop()
        assert process.poll() is None
        process.kill()
    assert process.returncode == -signal.SIGKILL
