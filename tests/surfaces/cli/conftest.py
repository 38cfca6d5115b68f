"""Every command runs in a folder of its own, with no configuration and no key of whoever runs the tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bardo.catalog.load import builtin


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    keys = {variable for row in builtin().providers for variable in row.key_variables}
    for variable in keys | {name for name in os.environ if name.startswith("BARDO_")}:
        monkeypatch.delenv(variable, raising=False)
    for variable in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(variable, raising=False)
    # Set before it is taken away, so that what a command sets is taken away again.
    monkeypatch.setenv("BARDO_CONFIG", "none")
    monkeypatch.delenv("BARDO_CONFIG")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.chdir(tmp_path)
    return tmp_path
