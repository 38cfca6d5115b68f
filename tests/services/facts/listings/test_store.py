"""Lists on disk: whole or not at all, and never a reason for a start to fail."""

from __future__ import annotations

import json
import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from bardo.catalog.load import builtin
from bardo.planning.route import Provider
from bardo.services.facts.introspect import LiveFacts
from bardo.services.facts.listings import ListedModel, ListedPrice, Listing, ListingStore, listing_sources
from bardo.services.facts.listings.store import file_name

pytestmark = pytest.mark.each_python

LISTING = Listing(
    source="venice",
    at=1_790_000_000.0,
    models={
        "m": ListedModel(
            facts=LiveFacts(control=("effort",), efforts=("low",), context=5, features=(("vision", True),)),
            price=ListedPrice(input=1, output=2),
        )
    },
)


def test_what_is_written_reads_back(tmp_path: Path) -> None:
    store = ListingStore(tmp_path / "new" / "folder")
    assert store.load("venice.json") is None
    assert store.save("venice.json", LISTING)
    assert store.load("venice.json") == LISTING
    assert [file.name for file in store.folder.iterdir()] == ["venice.json"]


WRONG = {
    "empty": b"",
    "cut off": msgspec.json.encode(LISTING)[:-20],
    "no list": b'{"a": 1}',
    "bytes": b"\xff\xfe\x00",
    "another version": json.dumps({**msgspec.to_builtins(LISTING), "format": 99}).encode(),
    "a field that nobody wrote": json.dumps({**msgspec.to_builtins(LISTING), "more": 1}).encode(),
    "nested too deeply": b"[" * 200_000,
    "a time beyond every clock": json.dumps({**msgspec.to_builtins(LISTING), "at": 1e300}).encode(),
    "a price below zero": b'{"source": "venice", "at": 1.0, "models": {"m": {"price": {"input": -1}}}}',
    "a price beyond every price": b'{"source": "venice", "at": 1.0, "models": {"m": {"price": {"input": 100000000000000}}}}',
}


@pytest.mark.parametrize("content", WRONG.values(), ids=WRONG.keys())
def test_a_file_that_holds_no_list_counts_as_none_with_a_warning(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = ListingStore(tmp_path)
    (tmp_path / "venice.json").write_bytes(content)
    with caplog.at_level(logging.WARNING, logger="bardo.catalog"):
        assert store.load("venice.json") is None
    assert "venice.json" in caplog.text
    assert store.save("venice.json", LISTING)
    assert store.load("venice.json") == LISTING


def test_a_folder_in_the_place_of_the_file_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "venice.json").mkdir()
    store = ListingStore(tmp_path)
    assert store.load("venice.json") is None
    assert not store.save("venice.json", LISTING)
    assert "venice.json" in caplog.text
    assert [file.name for file in tmp_path.iterdir()] == ["venice.json"]


def test_a_folder_that_cannot_be_made_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("")
    assert not ListingStore(tmp_path / "file" / "catalog").save("venice.json", LISTING)
    assert "cannot be written" in caplog.text


def test_an_older_list_does_not_replace_a_newer_one(tmp_path: Path) -> None:
    store = ListingStore(tmp_path)
    store.save("venice.json", LISTING)
    assert store.save("venice.json", msgspec.structs.replace(LISTING, at=LISTING.at - 1, models={}))
    assert store.load("venice.json") == LISTING


def test_a_list_from_the_future_was_dated_by_a_wrong_clock_and_is_replaced(tmp_path: Path) -> None:
    store = ListingStore(tmp_path)
    store.save("venice.json", msgspec.structs.replace(LISTING, at=LISTING.at + 10 * 86_400))
    assert store.save("venice.json", LISTING)
    assert store.load("venice.json") == LISTING


_WRITER = """
import sys
from pathlib import Path
import msgspec
from bardo.services.facts.listings import ListedModel, Listing, ListingStore
store, who = ListingStore(Path(sys.argv[1])), sys.argv[2]
models = {f"{who}-{place}": ListedModel() for place in range(2000)}
print("ready", flush=True)
at = 0.0
while True:
    at += 1
    store.save("venice.json", Listing(source="venice", at=at, models=models))
"""


def test_two_processes_that_write_and_are_killed_leave_one_whole_list(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = ListingStore(tmp_path)
    for _ in range(3):
        writers = [
            subprocess.Popen([sys.executable, "-c", _WRITER, str(tmp_path), who], stdout=subprocess.PIPE)
            for who in ("a", "b")
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        seen: set[str] = set()
        while len(seen) < 200:
            listing = store.load("venice.json")
            if listing is None:
                continue
            assert len({name.partition("-")[0] for name in listing.models}) == 1
            assert len(listing.models) == 2000
            seen.add(f"{len(seen)}")
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
            writer.communicate()
        assert store.load("venice.json") is not None
        (tmp_path / "venice.json").unlink()
    assert caplog.records == []


def test_another_address_has_a_file_of_its_own_that_does_not_tell_it() -> None:
    row = builtin().provider("venice")
    assert row is not None
    source = listing_sources()["venice"]
    usual = Provider(id="venice", row=row, base_url=row.base_url + "/")
    other = Provider(id="v", row=row, base_url="https://user:secret@relay.example/v1")
    assert file_name(source, usual) == "venice.json"
    named = file_name(source, other)
    assert named.startswith("venice-")
    assert not any(part in named for part in ("secret", "relay", "user"))
