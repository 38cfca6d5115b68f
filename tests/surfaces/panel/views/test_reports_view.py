"""The reports of the panel have the figures of `bardo cache stats`, `bardo costs --cache` and `bardo routing report`."""

from __future__ import annotations

import random
import sqlite3
import time
from pathlib import Path

import httpx
import msgspec
import pytest

from bardo.adapters.stores.log import LogGap
from bardo.adapters.stores.log.store import open_store
from bardo.routing.learned.router import LearnedState
from bardo.services.facts.learned_routing import embedding_of, store_state
from bardo.services.pipeline.reply_cache.evidence import FILE, SimilarEvidence, read_figures
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.panel.views.reports import size_text
from bardo.surfaces.render.caches import GIVEN, prompt_cache_cells, reply_cache_cells
from support.any_model import Simulator
from support.keyed_gateway import keyed_gateway
from support.panel_pages import PanelReader
from support.patience import PATIENCE
from surfaces.panel.views.conftest import TOML, FilledGateway


def test_the_cache_of_replies(filled: FilledGateway, operator: PanelReader) -> None:
    with filled.log() as log:
        totals = log.reply_cache_totals()
    page = operator.page("/reports", period="all")
    calls = sum(one.calls for one in totals)
    seen = page.table("Response cache")
    for one in totals:
        did, *cells = reply_cache_cells(one, calls)
        assert seen.row(did)["calls"] == cells[0]
        assert seen.row(did)["saved"] == cells[2]
    assert exact_text(sum(one.saved_nanos or 0 for one in totals if one.cache in GIVEN)) in page.text


def test_prompt_caches(filled: FilledGateway, operator: PanelReader) -> None:
    with filled.log() as log:
        totals = log.cache_totals()
    seen = operator.page("/reports", period="all").table("Prompt caches")
    expected = [(*prompt_cache_cells(one)[3:],) for one in totals]
    assert [tuple(row[3:8]) for row in seen.rows] == expected


def test_a_key_sees_what_caches_did_for_it(filled: FilledGateway, member: PanelReader) -> None:
    page = member.page("/reports", period="all")
    with filled.log() as log:
        own = log.reply_cache_totals(key=filled.own.id)
    assert sum(int(one) for one in page.table("Response cache").column("calls")) == sum(one.calls for one in own)
    assert set(page.table("Prompt caches").column("key")) == {filled.own.id}
    assert "Log" not in [text for _, text in page.headings]
    assert filled.other.id not in page.html


def test_the_log_says_what_it_holds_and_what_is_missing(filled: FilledGateway, operator: PanelReader) -> None:
    store = open_store(filled.gateway.log, keep_content=False)
    store.note_gap(LogGap(noticed_at=time.time(), rows=3, why="the disk was full"))
    store.close()
    with filled.log() as log:
        extent = log.extent()
    page = operator.page("/reports")
    assert f"{extent.rows:,}" in page.text
    assert page.table("Rows missing").rows[0][1:] == ["3", "the disk was full"]


def test_learned_routing_that_another_gateway_left_in_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "routing.json"
    toml = f'{TOML}[routing.learned]\nfile = "{place}"\n'
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=toml) as gateway:
        from bardo.surfaces.cli.routing import fit_outcomes

        outcomes = tmp_path / "outcomes.jsonl"
        draw = random.Random(1)
        lines = [
            {
                "prompt": f"question {number % 9}",
                "model": model,
                "success": float(draw.random() < 0.8),
                "cost_usd": 0.01,
            }
            for number in range(40)
            for model in ("deepseek/m1", "deepseek/m2")
        ]
        outcomes.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
        state: LearnedState = fit_outcomes(outcomes, embedding_of(gateway.settings))
        store_state(state, place)
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        seen = reader.page("/reports").table("What routing has learned")
        reader.close()
    assert set(seen.column("model")) == {"deepseek/m1", "deepseek/m2"}
    assert seen.column("cost per call") == ["$0.010000"] * 2


def test_similar_questions_with_the_interval_of_false_hits(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=TOML) as gateway:
        folder = Path(gateway.log).parent
        ledger = SimilarEvidence(folder / FILE)
        for _ in range(50):
            ledger.count("vectors-1", "shadowed")
            ledger.compared("vectors-1", b"x", 0.99, "same")
        ledger.compared("vectors-1", b"x", 0.99, "different")
        ledger.store()
        figures = read_figures(folder)[0]
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        row = reader.page("/reports").table("Answers to similar").row("vectors-1")
        reader.close()
    low, high = figures.evidence.false_rate
    assert row["error rate (95 % interval)"] == f"{1 / 51:.1%} ({low:.1%} to {high:.1%})"
    assert (row["answers compared"], row["wrong"], row["lookups"]) == ("51", "1", "50")


CACHING = """
[inference.pipeline]
profile = "own"
[inference.pipeline.profiles.own]
layers = ["cache"]
"""


def test_what_the_store_of_replies_holds(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=TOML + CACHING) as gateway:
        key, other = gateway.key(operator=True), gateway.key(name="another tenant")
        operator = PanelReader(gateway.address, key)
        assert "The store holds 0 entries" in operator.page("/reports").text
        for text in ("one", "two"):
            body = {"model": "deepseek/m1", "messages": [{"role": "user", "content": text}]}
            headers = {"authorization": f"Bearer {key}"}
            answer = httpx.post(f"{gateway.address}/v1/chat/completions", json=body, headers=headers, timeout=PATIENCE)
            assert answer.headers["x-bardo-cache"].startswith("miss")
        member = PanelReader(gateway.address, other)
        whole, none = operator.page("/reports").text, member.page("/reports").text
        operator.close()
        member.close()
    assert "The store holds 2 entries" in whole
    assert "The store holds 0 entries" in none


def test_an_empty_gateway_says_that_there_is_nothing(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=TOML) as gateway:
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        page = reader.page("/reports")
        costs, health = reader.page("/costs"), reader.page("/health")
        reader.close()
    for said in (
        "No calls used the response cache",
        "No calls the last 7 days",
        "Nothing has been learned yet",
        "No lookups of similar questions",
    ):
        assert said in page.text
    assert "No calls the last 30 days" in costs.text
    assert "No calls in the last 24 hours" in health.text


def test_a_log_that_is_not_there_is_said(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=f"{TOML}[log]\nenabled = false\n") as gateway:
        reader = PanelReader(gateway.address, gateway.key(operator=True))
        answers = [reader.get(path) for path in ("/costs", "/reports")]
        health = reader.page("/health")
        reader.close()
    assert [one.status_code for one in answers] == [400, 400]
    assert all("keeps no log" in one.text for one in answers)
    assert "keeps no log" in health.text


@pytest.mark.parametrize(
    ("size", "words"), [(None, "unknown"), (12, "12 bytes"), (1_500, "1.5 KB"), (87_113_728, "87.1 MB")]
)
def test_sizes(size: int | None, words: str) -> None:
    assert size_text(size) == words


def test_the_size_of_the_log_is_that_of_its_files(filled: FilledGateway) -> None:
    with filled.log() as log:
        found = log.extent()
    with sqlite3.connect(filled.gateway.log) as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    assert found.bytes is not None
    assert found.bytes >= Path(filled.gateway.log).stat().st_size
    assert found.bytes >= pages * size // 2
