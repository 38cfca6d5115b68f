"""Where bardo keeps its data: the log, the state beside it, and the folder of both."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from bardo.edge.named_paths import named_path
from bardo.edge.settings import Settings, default_log_path
from bardo.values.errors import ConfigError


def log_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where the inference log stands: a file, or the address of a database. Raises ConfigError for a variable that is not set."""
    log = settings.log
    named = _address(log.url_env, environment) or log.url or log.path
    if "://" in named:
        return named
    return named_path(named) if named else default_log_path(environment)


def state_path(settings: Settings, environment: Mapping[str, str] | None = None) -> Path | str:
    """Return where keys, payments and batches are kept, as `log_path` does."""
    named = _address(settings.state.url_env, environment) or settings.state.url
    if "://" in named:
        return named
    if named:
        return named_path(named)
    log = log_path(settings, environment)
    return log.with_name("state.db") if isinstance(log, Path) else log


def _address(variable: str, environment: Mapping[str, str] | None) -> str:
    """Return what a variable holds; nothing where none is named."""
    if not variable:
        return ""
    found = (os.environ if environment is None else environment).get(variable, "")
    if not found:
        raise ConfigError(f"{variable}, which holds the address of a database, is not set", hint=f"set {variable}")
    return found


def data_folder(settings: Settings, environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder in which bardo keeps its data: that of its log."""
    log = log_path(settings, environment)
    return log.parent if isinstance(log, Path) else default_log_path(environment).parent
