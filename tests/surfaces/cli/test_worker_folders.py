"""Folders that workers share: the folder of a killed gateway is removed by the next one, and nothing else is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bardo.surfaces.cli.serve import own_folder, remove_abandoned
from support.patience import PATIENCE

pytest.importorskip("fcntl")
PROGRAM = """
import sys, time
from pathlib import Path
from bardo.surfaces.cli.serve import own_folder
with own_folder(Path(sys.argv[1])) as folder:
    (folder / "stores").mkdir()
    print(folder, flush=True)
    time.sleep(3600)
"""


def test_the_folder_of_a_killed_gateway_is_removed_and_that_of_a_running_one_stays(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        folder = Path(gateway.stdout.readline().strip())
        try:
            remove_abandoned(tmp_path)
            assert (folder / "stores").is_dir()
        finally:
            gateway.kill()
            gateway.wait(PATIENCE)
    assert folder.is_dir()
    remove_abandoned(tmp_path)
    assert not folder.exists()


def test_a_folder_is_gone_when_its_gateway_ends(tmp_path: Path) -> None:
    with own_folder(tmp_path) as folder:
        assert folder.stat().st_mode & 0o077 == 0
        remove_abandoned(tmp_path)
        assert folder.is_dir()
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_known_to_be_of_a_gateway_stays(tmp_path: Path) -> None:
    place, elsewhere = tmp_path / "tmp", tmp_path / "elsewhere"
    for folder in (place / "bardo-notes", place / "other", elsewhere):
        folder.mkdir(parents=True)
    (place / "bardo-file").write_text("mine")
    (elsewhere / "lock").touch()
    (place / "other" / "lock").touch()
    (place / "bardo-link").symlink_to(elsewhere)
    (place / "bardo-linked").mkdir()
    (place / "bardo-linked" / "lock").symlink_to(elsewhere / "lock")
    remove_abandoned(place)
    left = sorted(one.name for one in place.iterdir())
    assert left == ["bardo-file", "bardo-link", "bardo-linked", "bardo-notes", "other"]
    assert (elsewhere / "lock").exists()
