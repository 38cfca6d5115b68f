"""Clients are installed once by whoever comes first, and a failure is remembered, so that the others do not try for minutes again."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clients.installed import NpmPackages, program

PACKAGES = NpmPackages("thing", ("@scope/thing@1.2.3",))
NPM = '#!/bin/sh\necho "$@" >> "$CALLS"\necho \'no such package\' >&2\nexit {code}\n'


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that tells how npm was called; npm is a script of the tests."""
    if sys.platform == "win32":
        pytest.skip("the script wants a shell")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"), prepend=":")
    monkeypatch.setenv("BARDO_TEST_INSTALL", "yes")
    monkeypatch.delenv("BARDO_TEST_CLIENTS", raising=False)
    write_npm(tmp_path, code=0)
    return tmp_path / "calls"


def write_npm(folder: Path, *, code: int) -> None:
    (folder / "bin").mkdir(exist_ok=True)
    for name in ("npm", "node"):
        file = folder / "bin" / name
        file.write_text(NPM.format(code=code))
        file.chmod(0o755)


def test_one_of_many_installs(calls: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(lambda _: PACKAGES.install(), range(8))) == [""] * 8
    [line] = calls.read_text().splitlines()
    assert line.endswith("@scope/thing@1.2.3")
    assert PACKAGES.folder.name == "thing-1.2.3"


def test_a_failure_is_told_and_not_tried_again(calls: Path, tmp_path: Path) -> None:
    write_npm(tmp_path, code=1)
    for _ in range(3):
        assert "no such package" in PACKAGES.install()
    assert len(calls.read_text().splitlines()) == 1


@pytest.mark.parametrize("wanted", ["no", ""], ids=["told not to", "told nothing"])
def test_nothing_is_installed_where_that_is_not_wanted(
    calls: Path, monkeypatch: pytest.MonkeyPatch, wanted: str
) -> None:
    monkeypatch.setenv("BARDO_TEST_INSTALL", wanted)
    assert PACKAGES.install() != ""
    with pytest.raises(pytest.skip.Exception):
        program("claude")
    assert not calls.exists()


def test_without_npm_there_is_nothing(calls: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert PACKAGES.install() == "node is not here"
