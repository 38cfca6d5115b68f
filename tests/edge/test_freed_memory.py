"""Memory that a request has freed is there for the next one: no page of it is asked of the system again, until no request is open."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from bardo.edge.freed_memory import keep_freed_memory

# As a request with a long body does: a few megabytes in pieces of one, all freed at its end.
_REQUESTS = """
import resource, sys
if sys.argv[1] == "kept":
    from bardo.edge.freed_memory import keep_freed_memory
    assert keep_freed_memory()
def request():
    return sum(len(piece) for piece in [b"x" * size for size in (1_000_000, 1_300_000, 900_000) * 2])
request()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(20):
    request()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""
# Pages of four kilobytes that one such request touches: 6.4 MB.
_PAGES_OF_A_REQUEST = 1_562

# A server that kept memory and looks whether a request is open: prints its size in pages while one is, and when none is.
_IDLE = """
import asyncio
from bardo.edge.freed_memory import give_back_when_idle, keep_freed_memory
assert keep_freed_memory()
def size():
    return int(open("/proc/self/statm").read().split()[1])
async def serve():
    open_requests = [1]
    give_back_when_idle(lambda: not open_requests, seconds=0.02)
    pieces = [b"x" * 1_000_000 for _ in range(20)]
    del pieces
    await asyncio.sleep(0.2)
    busy = size()
    open_requests.clear()
    await asyncio.sleep(0.2)
    print(busy - size())
asyncio.run(serve())
"""

_HUGE = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_HUGE_PAGES = _HUGE.read_text() if _HUGE.is_file() else ""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")


def _printed(program: str, *arguments: str) -> int:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", program, *arguments]
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@glibc
def test_freed_memory_is_not_asked_for_again() -> None:
    assert _printed(_REQUESTS, "kept") < _PAGES_OF_A_REQUEST


@glibc
@pytest.mark.skipif("[always]" in _HUGE_PAGES, reason="one page holds what a request takes")
def test_it_would_be_without() -> None:
    assert _printed(_REQUESTS, "as it is") > 10 * _PAGES_OF_A_REQUEST


@glibc
def test_it_is_given_back_once_no_request_is_open() -> None:
    assert _printed(_IDLE) > 2 * _PAGES_OF_A_REQUEST


@pytest.mark.parametrize("name", ["GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"])
def test_what_the_operator_set_is_left_alone(name: str) -> None:
    assert not keep_freed_memory({name: "1"})


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """A library without `mallopt`."""

    monkeypatch.setattr("ctypes.CDLL", lambda name: Other())
    assert not keep_freed_memory({})
