"""What the C library does with memory that a server process has freed."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping

# Parameters of glibc's `mallopt`, from its <malloc.h>.
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
# How many free bytes the end of the heap keeps, and from which size on memory is mapped, and unmapped once it is freed.
_KEPT_BYTES = 32 * 1024 * 1024
_MAPPED_BYTES = 4 * 1024 * 1024
_LOOK_SECONDS = 5.0
_OPERATORS = ("GLIBC_TUNABLES", "MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_")


def keep_freed_memory(environment: Mapping[str, str] | None = None) -> bool:
    """Have freed memory kept for the next requests, up to 32 MiB, until `give_back_when_idle`, and return whether that is done.

    A request with a body of a megabyte takes several megabytes and frees them at its end. glibc gives them back to the system at once, and
    the next request waits for its pages again: a quarter of its processor time (`python -m benchmarks growth`). Other C libraries are left
    alone, and so is glibc where the environment, by default this process's, sets the same.
    """
    if any(name in (os.environ if environment is None else environment) for name in _OPERATORS):
        return False
    import ctypes

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):  # Only glibc has it; Windows has no library of this name at all.
        return False
    return bool(mallopt(_TRIM_THRESHOLD, _KEPT_BYTES) and mallopt(_MMAP_THRESHOLD, _MAPPED_BYTES))


def give_back_when_idle(is_idle: Callable[[], bool], *, seconds: float = _LOOK_SECONDS) -> None:
    """Look every few `seconds` whether no request is open, and give the system back what is kept then. Call inside the loop."""
    import ctypes

    trim = ctypes.CDLL(None).malloc_trim
    loop = asyncio.get_running_loop()

    def look() -> None:
        if is_idle():
            trim(0)
        loop.call_later(seconds, look)

    loop.call_later(seconds, look)
