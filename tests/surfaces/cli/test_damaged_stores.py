"""`bardo serve` over damaged files: what can be made anew is set aside, and a ledger ends the start and is left as it is."""

from __future__ import annotations

import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bardo.adapters.config.settings import ResponseSettings
from bardo.adapters.stores.log import LogWriter
from bardo.adapters.stores.response_store import open_responses
from support.any_model import Simulator
from support.damage import (
    DAMAGES,
    LEDGER_DAMAGES,
    NO_FILES,
    replace_by_pipe,
    replace_by_socket,
    write_newer_number,
    write_prose,
)
from support.keyed_gateway import make_key
from support.talk import ask
from surfaces.cli.support import ended, line_with, program, running

pytestmark = pytest.mark.each_python
_LEDGERS = ("log.db", "state.db", "responses.db")
_CONFIGURATION = """
[log]
path = "log.db"
[responses]
store = "responses.db"
[replay]
store = "replay.db"
[health]
store = "health.db"
[routing]
strategy = "learned"
[routing.learned]
file = "routing.json"
[inference.pipeline]
profile = "mine"
[inference.pipeline.profiles.mine]
layers = ["cache"]
[inference.pipeline.cache]
store = "replies.db"
"""


def make_ledgers(folder: Path) -> None:
    LogWriter(folder / "log.db").close()
    make_key(folder / "state.db", name="one")
    store = open_responses(ResponseSettings(store=str(folder / "responses.db")))
    assert store is not None
    store.close()


_AIDS = ("replay.db", "health.db", "routing.json", "replies.db", "cache_similarity.sqlite3")


def served_over(folder: Path) -> str:
    """Serve a few calls over the files of a folder, and return what was said."""
    with Simulator("vllm", models=("m1",)).running() as server:
        provider = f'[[providers]]\nid = "p"\npreset = "vllm"\nbase_url = "{server.base_url}"\nmodels = ["m1"]\n'
        (folder / "bardo.toml").write_text(_CONFIGURATION + provider)
        with running("serve", "--port", "0") as gateway:
            address = line_with(gateway.stderr, "bardo listens on").split()[3]
            line_with(gateway.stderr, "watch it in a browser")
            for _ in range(2):
                assert ask(address, "openai_chat", "p/m1").status == 200
            assert ended(gateway, signal.SIGTERM) == 0
            assert gateway.stderr is not None
            said = gateway.stderr.read().decode()
    assert "Traceback" not in said
    return said


def test_it_serves_over_damaged_files_that_can_be_made_anew(folder: Path) -> None:
    for name in _AIDS:
        write_prose(folder / name)
    said = served_over(folder)
    for name in _AIDS:
        assert (folder / f"{name}.corrupt").exists(), (name, said)


@pytest.mark.parametrize(
    "newer",
    [("replay.db", "replies.db"), pytest.param(("health.db", "cache_similarity.sqlite3"), marks=pytest.mark.nightly)],
)
def test_it_serves_over_files_of_a_newer_bardo_and_over_what_is_no_file(newer: tuple[str, ...], folder: Path) -> None:
    others = [name for name in _AIDS if name not in newer]
    for name in newer:
        write_newer_number(folder / name)
    for place, name in enumerate(others):
        (replace_by_socket if place == 0 else replace_by_pipe)(folder / name)
    said = served_over(folder)
    for name in newer:
        assert (folder / f"{name}.corrupt").exists(), (name, said)
        assert "it is of version 999, and this bardo writes version" in said
    for name in others:
        assert not (folder / name).is_file(), "what is no file is left where it stands"
        assert not list(folder.glob(f"{name}.corrupt*"))


@pytest.mark.parametrize("damage", [*DAMAGES, *LEDGER_DAMAGES])
@pytest.mark.parametrize("name", _LEDGERS)
def test_a_damaged_ledger_ends_the_start_before_anybody_is_told_that_it_listens(
    name: str, damage: str, folder: Path
) -> None:
    (folder / "bardo.toml").write_text('[log]\npath = "log.db"\n[responses]\nstore = "responses.db"\n')
    make_ledgers(folder)
    {**DAMAGES, **LEDGER_DAMAGES}[damage](folder / name)
    before = (folder / name).read_bytes() if (folder / name).is_file() else b""
    ran = program("serve", "--port", "0")
    assert ran.code == 2
    assert "listens" not in ran.err
    assert name in ran.err
    assert "Traceback" not in ran.err
    assert len(ran.err.splitlines()) == 2, ran.err
    if damage not in ("folder", "foreign tables", *LEDGER_DAMAGES):
        assert ".recover" in ran.err
    if damage != "folder" and (folder / name).exists():
        assert (folder / name).read_bytes() == before
    assert not list(folder.glob("*.corrupt*"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("what", [*NO_FILES, "a newer bardo"])
@pytest.mark.parametrize("name", _LEDGERS)
def test_what_is_no_ledger_of_this_bardo_ends_the_start(name: str, what: str, folder: Path) -> None:
    (folder / "bardo.toml").write_text('[log]\npath = "log.db"\n[responses]\nstore = "responses.db"\n')
    make_ledgers(folder)
    {**NO_FILES, "a newer bardo": write_newer_number}[what](folder / name)
    ran = program("serve", "--port", "0")
    assert ran.code == 2
    assert "listens" not in ran.err
    assert name in ran.err
    assert what in ran.err
    assert len(ran.err.splitlines()) == 2, ran.err
    assert (folder / name).exists()


def test_a_log_that_cannot_be_written_ends_the_start(folder: Path) -> None:
    LogWriter(folder / "log.db").close()
    (folder / "bardo.toml").write_text('[log]\npath = "log.db"\n')
    # Its tables can be read and no page of them written, as where the disk has room for SQLite's index of the journal and no more.
    with closing(sqlite3.connect(folder / "log.db")) as rows:
        rows.execute(
            "CREATE TRIGGER full BEFORE UPDATE ON bardo_revisions BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
        )
        rows.commit()
    ran = program("serve", "--port", "0")
    assert ran.code == 2
    assert "listens" not in ran.err
    assert "disk is full" in ran.err
    assert "log.db" in ran.err
