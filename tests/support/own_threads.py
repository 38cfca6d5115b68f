"""The threads that bardo and its simulators have started. Others of the process come and go as its other tests and libraries like."""

from __future__ import annotations

import threading

_NAMES = ("bardo-", "simulator-")


def own_threads() -> set[threading.Thread]:
    """Return the threads of this process that have bardo's names."""
    return {thread for thread in threading.enumerate() if thread.name.startswith(_NAMES)}
