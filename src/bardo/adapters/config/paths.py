"""Paths that a configuration names, where `~` is the home of a user of this machine."""

from __future__ import annotations

import stat
from pathlib import Path

from bardo.values.errors import ConfigError


def named_path(named: str) -> Path:
    """Return a path with the home that it begins with. Raises ConfigError for a user who is not there."""
    try:
        return Path(named).expanduser()
    except RuntimeError as problem:
        user = Path(named).parts[0]
        raise ConfigError(
            f"{named[:200]!r}: this machine has no home folder for {user[:100]!r}", hint="write the whole path"
        ) from problem


def is_folder(path: Path) -> bool:
    """Whether a path is that of a folder. One that the system cannot have, such as one that is too long, is that of none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def is_file(path: Path) -> bool:
    """Whether a path is that of a file. One that the system cannot have is of none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def what_is_no_file(path: Path) -> str:
    """Return what stands at a path in the place of a file, in words; nothing for a file, and where there is nothing.

    Reading a named pipe or a device may wait without end, and opening a socket tells of a wrong address only.
    """
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return ""
    if stat.S_ISREG(mode):
        return ""
    return next((words for is_one, words in _NO_FILES if is_one(mode)), "no file")


_NO_FILES = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
