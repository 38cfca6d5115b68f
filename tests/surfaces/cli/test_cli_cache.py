"""`bardo cache`: what the cache did is told from the log, and entries of its store are removed by what they are known by."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import data_folder, load_settings, log_path
from bardo.adapters.stores.log import LogRow, LogWriter
from bardo.context.cache.entries import CacheEntry
from bardo.services.pipeline.reply_cache.evidence import FILE, SimilarEvidence
from bardo.services.pipeline.reply_cache.sql import SqlReplies
from surfaces.cli.support import bardo


def entry(name: str, tenant: str = "t", **fields: Any) -> CacheEntry:
    return CacheEntry(tenant=tenant, identity=name.encode(), value=b"reply", expires=time.time() + 600, **fields)


@pytest.fixture
def filled(folder: Path) -> Path:
    """A configuration with a store of three entries, and a log of calls."""
    (folder / "bardo.toml").write_text('[inference.pipeline.cache]\nstore = "replies.db"\n')
    store = SqlReplies(folder / "replies.db")
    store.put(entry("a", tags=("news",), model="fast", answered_by="openai/gpt-5"), now=0)
    store.put(entry("b", tags=("news", "eu")), now=0)
    store.put(entry("c", tenant="u"), now=0)
    store.close()
    log = LogWriter(log_path(load_settings(None)))
    words = {"1": "hit", "2": "hit", "3": "miss", "4": "refused:multi_turn", "5": None}
    for name, word in words.items():
        saved = 2_000_000_000 if name == "1" else None
        log.write(LogRow(request_id=name, started_at=time.time(), cache=word, reply_saved_nanos=saved))
    log.close()
    return folder


@pytest.mark.usefixtures("filled")
def test_the_log_tells_what_the_cache_did_and_the_store_what_it_holds() -> None:
    found = bardo("cache", "stats", "--json").json
    assert found["calls"] == {"hit": 2, "miss": 1, "refused:multi_turn": 1}
    assert (found["saved_usd"], found["unknown_savings"]) == (2.0, 1)
    assert found["store"]["entries"] == 3
    assert bardo("cache", "stats", "--tenant", "u", "--json").json["store"]["entries"] == 1
    shown = bardo("cache", "stats")
    assert "refused: multi_turn" in shown.out
    assert "50.0%" in shown.out
    assert "$2" in shown.out
    assert "3 entries" in shown.err


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("arguments", "removed"),
    [
        (["--tag", "news"], 2),
        (["--tag", "eu", "--tenant", "u"], 0),
        (["--model", "gpt-5"], 1),
        (["--tenant", "t"], 2),
        (["--all"], 3),
    ],
)
def test_entries_are_removed(arguments: list[str], removed: int) -> None:
    assert bardo("cache", "purge", *arguments, "--json").json == {"removed": removed}
    assert bardo("cache", "stats", "--json").json["store"]["entries"] == 3 - removed


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize("arguments", [["purge"], ["purge", "--all", "--tag", "x"], ["stats", "--tag", "x"], ["clear"]])
def test_what_is_meant_must_be_said(arguments: list[str]) -> None:
    assert bardo("cache", *arguments).code == 2


def test_the_memory_of_a_gateway_is_out_of_reach(folder: Path) -> None:
    (folder / "bardo.toml").write_text("")
    ran = bardo("cache", "purge", "--all")
    assert ran.code == 2
    assert "store =" in ran.err


@pytest.mark.parametrize("store", ["", "mysql://host/x", "http://host"])
def test_a_store_of_an_unknown_kind_is_told_with_its_line(folder: Path, store: str) -> None:
    (folder / "bardo.toml").write_text(f'[inference.pipeline.cache]\nstore = "{store}"\n')
    ran = bardo("cache", "stats")
    assert ran.code == 2
    assert "line 2" in ran.err


def test_the_variable_with_the_address_must_be_set(folder: Path) -> None:
    (folder / "bardo.toml").write_text('[inference.pipeline.cache]\nstore_env = "NO_SUCH_VARIABLE"\n')
    ran = bardo("cache", "purge", "--all")
    assert ran.code == 2
    assert "NO_SUCH_VARIABLE" in ran.err


@pytest.mark.usefixtures("filled")
def test_similar_questions_are_shown_with_the_rate_of_wrong_answers_and_its_interval() -> None:
    assert bardo("cache", "stats", "--json").json["similar"] == []
    evidence = SimilarEvidence(data_folder(load_settings(None)) / FILE)
    evidence.count("table-1", "shadowed")
    evidence.count("table-1", "refused")
    evidence.store()
    assert "no answers were compared yet; 381" in bardo("cache", "stats").err
    for number in range(50):
        evidence.compared("table-1", b"e", 0.9, "different" if number == 0 else "same")
    evidence.store()
    (found,) = bardo("cache", "stats", "--json").json["similar"]
    assert (found["embedding"], found["lookups"], found["shadowed"]) == ("table-1", 2, 1)
    assert found["compared"] == {"same": 49, "different": 1, "undecided": 0}
    assert found["false_hits"] == 0.02
    low, high = found["false_hits_interval"]
    assert 0 < low < 0.02 < high < 0.11
    assert "50 answers compared: 1 wrong, 2.0% (0.4% to 10.5%); budget 1.0%" in bardo("cache", "stats").err
