"""What survives of a log when its process ends: as it should, by force, over a full disk, or by forking."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bardo.adapters.stores.log import LogReader, LogWriter
from support.patience import PATIENCE, read_line

pytestmark = pytest.mark.each_python

OPEN = """
import atexit, logging, os, resource, sys, threading, time
from bardo.adapters.stores.log import LogRow, LogWriter

def row(request_id):
    return LogRow(request_id=str(request_id), started_at=time.time(), model="m" * 100)

path = sys.argv[1]
"""


def start(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", OPEN + script, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(script: str, *arguments: str | Path) -> str:
    with start(script, *arguments) as process:
        out, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, error
    return out


def logged(path: Path) -> list[str]:
    with LogReader(path) as reader:
        return [row.request_id for row in reader.recent(1_000_000)][::-1]


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(count)]


def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    script = """
writer = LogWriter(path)
for number in range(1_000_000):
    one = row(number)
    writer.write(one)
    print(number, one.started_at, flush=True)
    time.sleep(0.001)
"""
    with start(script, path) as process:
        assert process.stdout is not None
        lines = [read_line(process.stdout)]
        while when(lines[-1]) < when(lines[0]) + 2.0:
            lines.append(read_line(process.stdout))
        process.kill()
        lines += process.stdout.read().splitlines()[:-1]  # The last may be half a line.
        process.wait(PATIENCE)
    LogWriter(path).close()
    found = sorted(map(int, logged(path)))
    assert found == [*range(len(found))]
    assert len(found) >= len(lines) > 0


def when(line: str) -> float:
    return float(line.split()[1])


@pytest.mark.parametrize(
    "ending",
    [
        "writer.close()",
        "",
        "sys.exit(0)",
        "threading.Thread(target=lambda: (time.sleep(0.2), [writer.write(row(n)) for n in range(900, 1000)])).start()",
        "atexit.register(lambda: [writer.write(row(n)) for n in range(900, 1000)])",
    ],
    ids=["closed", "not closed", "exit", "a thread outlives the main one", "rows from an exit handler"],
)
def test_a_program_that_ends_normally_loses_nothing(tmp_path: Path, ending: str) -> None:
    path = tmp_path / "log.db"
    last = 900 if "900" in ending else 1000
    run(f"writer = LogWriter(path)\nfor number in range({last}): writer.write(row(number))\n{ending}", path)
    assert logged(path) == numbers(1000)


def test_an_unhandled_error_loses_nothing(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    with start(
        "writer = LogWriter(path)\nfor n in range(100): writer.write(row(n))\nraise KeyError('x')", path
    ) as process:
        _, error = process.communicate(timeout=PATIENCE)
    assert "KeyError" in error
    assert logged(path) == numbers(100)


def test_processes_that_start_at_once_share_one_log(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    script = """
print("ready", flush=True)
sys.stdin.readline()
with LogWriter(path, batch=20, flush_seconds=0.01) as writer:
    for number in range(400):
        writer.write(row(f"{sys.argv[2]}{number}"))
print(writer.dropped)
"""
    processes = [start(script, path, name) for name in "abc"]
    for process in processes:
        assert read_line(process.stdout) == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        with process:
            out, error = process.communicate(timeout=PATIENCE)
        assert (out, error) == ("0\n", "")
    found = logged(path)
    assert len(found) == 1200
    for name in "abc":
        assert [one for one in found if one.startswith(name)] == [f"{name}{number}" for number in range(400)]


@pytest.mark.skipif(sys.platform == "win32", reason="limits of file sizes are POSIX")
def test_a_full_disk_is_waited_out(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    script = """
full = threading.Event()
class Watch(logging.Handler):
    def emit(self, record):
        if record.getMessage().startswith("the inference log at"):
            print(record.levelname, record.getMessage())
            full.set()
logging.getLogger("bardo.log").addHandler(Watch())
writer = LogWriter(path)
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
for number in range(2000):
    writer.write(row(number))
assert full.wait(%g)
assert writer.waiting > 0
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.close()
print(writer.dropped)
"""
    said = run(script % PATIENCE, path).splitlines()
    assert said[0].startswith(f"ERROR the inference log at {path} cannot be written")
    assert said[1:] == [f"WARNING the inference log at {path} is written again", "0"]
    assert logged(path) == numbers(2000)


@pytest.mark.skipif(sys.platform == "win32", reason="forking is POSIX")
def test_a_forked_child_does_not_write_its_parents_rows(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    script = """
writer = LogWriter(path, flush_seconds=60)
for number in range(50):
    writer.write(row(number))
child = os.fork()
if not child:
    writer.write(row("child"))
    sys.exit(7 if writer.dropped == 1 else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert run(script, path) == "7\n"
    assert logged(path) == numbers(50)


def test_a_log_in_a_file_is_created_and_written_without_sqlalchemy(tmp_path: Path) -> None:
    script = """
def loaded(name):
    return name in sys.modules
print(loaded("sqlalchemy"), loaded("alembic"))
for _ in range(2):
    with LogWriter(path) as writer:
        writer.write(row("r1"))
print(loaded("sqlalchemy"), loaded("alembic"))
"""
    assert run(script, tmp_path / "log.db") == "False False\nFalse False\n"
