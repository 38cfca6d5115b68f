"""Paths that a configuration names, where `~` is the home of a user of this machine."""

from __future__ import annotations

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
