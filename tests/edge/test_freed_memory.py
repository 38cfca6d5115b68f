"""Memory that a request has freed is there for the next one: no page of it is asked of the system again."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

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

glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library")


def _page_faults(mode: str) -> int:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    said = subprocess.run(
        [sys.executable, "-c", _REQUESTS, mode], env=environment, capture_output=True, text=True, check=True
    )
    return int(said.stdout)


@glibc
def test_freed_memory_is_not_asked_for_again() -> None:
    assert _page_faults("kept") < _PAGES_OF_A_REQUEST
    assert _page_faults("as it is") > 10 * _PAGES_OF_A_REQUEST


@pytest.mark.parametrize("name", ["GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"])
def test_what_the_operator_set_is_left_alone(name: str) -> None:
    assert not keep_freed_memory({name: "1"})


def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """A library without `mallopt`."""

    monkeypatch.setattr("ctypes.CDLL", lambda name: Other())
    assert not keep_freed_memory({})
