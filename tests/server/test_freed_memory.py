"""Memory that a request has freed is there for the next one: no page of it is asked of the system again, until no request is open."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys

import pytest

from bardo.server.serving import keep_freed_memory

pytestmark = pytest.mark.each_python

# As a request with a long body does: a few megabytes in pieces of one, all freed at its end. Prints how many bytes, as the C library counts
# them itself, the process gave back to the system after twenty such requests: a busy machine does not change that, as it does page faults.
_REQUESTS = """
import ctypes, sys
if sys.argv[1] == "kept":
    from bardo.server.serving import keep_freed_memory
    assert keep_freed_memory()
class Counts(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]
counted = ctypes.CDLL(None).mallinfo2
counted.restype = Counts
def of_the_system():
    counts = counted()
    return counts.arena + counts.hblkhd
def request():
    pieces = [b"x" * size for size in (1_000_000, 1_300_000, 900_000) * 2]
    return of_the_system()
request()
print(sum(request() - of_the_system() for _ in range(20)))
"""
_BYTES_OF_A_REQUEST = 6_400_000

# A server that kept memory and looks whether a request is open: prints how many pages it has given back, once none is.
_IDLE = """
import asyncio
from bardo.server.serving import give_back_when_idle, keep_freed_memory
assert keep_freed_memory()
def size():
    return int(open("/proc/self/statm").read().split()[1])
async def serve():
    open_requests, looks = [1], []
    def is_idle():
        looks.append(not open_requests)
        return looks[-1]
    give_back_when_idle(is_idle, seconds=0.02)
    pieces = [b"x" * 1_000_000 for _ in range(20)]
    del pieces
    while len(looks) < 5:
        await asyncio.sleep(0.01)
    busy = size()
    open_requests.clear()
    while looks.count(True) < 2:
        await asyncio.sleep(0.01)
    print((busy - size()) * 4096)
asyncio.run(serve())
"""

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")
counted = pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="a glibc before 2.33")


def _printed(program: str, *arguments: str) -> int:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", program, *arguments]
    return int(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)


@glibc
@counted
def test_freed_memory_is_not_asked_for_again() -> None:
    assert _printed(_REQUESTS, "kept") < _BYTES_OF_A_REQUEST


@glibc
@counted
def test_it_would_be_without() -> None:
    assert _printed(_REQUESTS, "as it is") > 10 * _BYTES_OF_A_REQUEST


@glibc
def test_it_is_given_back_once_no_request_is_open() -> None:
    assert _printed(_IDLE) > 2 * _BYTES_OF_A_REQUEST


@pytest.mark.parametrize("name", ["GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"])
def test_what_the_operator_set_is_left_alone(name: str) -> None:
    assert not keep_freed_memory({name: "1"})


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """A library without `mallopt`."""

    monkeypatch.setattr("ctypes.CDLL", lambda name: Other())
    assert not keep_freed_memory({})
