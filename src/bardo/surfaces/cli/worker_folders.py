"""Temporary folders that the workers of a gateway share. One whose gateway was killed is removed when a later gateway starts.

A folder belongs to a running gateway as long as `lock` in it is locked. The system releases the lock when the process of the gateway ends,
however it ends. Workers do not hold it: they end soon after their gateway.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, where no lock tells whether a gateway runs: folders of killed gateways stay.
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

_PREFIX = "bardo-"
_LOCK = "lock"


@contextmanager
def own_folder(place: Path) -> Iterator[Path]:
    """Make a folder below `place` that only this user can read, and remove it at the end."""
    with tempfile.TemporaryDirectory(prefix=_PREFIX, dir=place) as name:
        # O_CLOEXEC: programs that this process starts do not keep the lock.
        new = Path(name, "new-lock")
        lock = os.open(new, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            if _HAS_LOCKS:
                # It gets its name when it is locked: a gateway that starts at this moment never finds it free.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                new.rename(Path(name, _LOCK))
            yield Path(name)
        finally:
            os.close(lock)


def remove_abandoned(place: Path) -> None:
    """Remove the folders below `place` of gateways of this user that were killed. What cannot be removed stays."""
    if not _HAS_LOCKS:
        return
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Return whether a folder is this user's and has a lock that nobody holds. A folder without one may be of another program."""
    if folder.is_symlink() or folder.stat().st_uid != os.geteuid():
        return False
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
