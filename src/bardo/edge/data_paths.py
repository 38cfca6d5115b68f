"""Where bardo keeps its data: the log, the state beside it, and the folder of both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from bardo.edge.settings import Settings, default_log_path


def log_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where the inference log stands: a file, or the address of a database."""
    named = settings.log.path
    if "://" in named:
        return named
    return Path(named).expanduser() if named else default_log_path(environment)


def state_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where keys, payments and batches are kept: a file, or the address of a database."""
    named = settings.state.url
    if "://" in named:
        return named
    if named:
        return Path(named).expanduser()
    log = log_path(settings, environment)
    return log.with_name("state.db") if isinstance(log, Path) else log


def data_folder(settings: Settings, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder in which bardo keeps its data: that of its log."""
    log = log_path(settings, environment)
    return log.parent if isinstance(log, Path) else default_log_path(environment).parent
