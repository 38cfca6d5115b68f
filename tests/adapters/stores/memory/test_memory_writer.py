"""Keeping thinking never costs a call more than a moment, and nothing where it is off."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import LogSettings, MemorySettings, Settings
from bardo.adapters.stores.database.problems import StoreUnavailable
from bardo.adapters.stores.log import LogRow, LogWriter
from bardo.adapters.stores.memory.episodes import EpisodeVectors, cosine, differing_bits, packed, signature_of
from bardo.adapters.stores.memory.store import EpisodeStore, MemoryWriter, open_writer
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.wiring import assemble
from support.episodes import Kept, draft
from support.patience import PATIENCE

ROW = LogRow(request_id="req_1", started_at=1.0)


def test_a_gateway_loads_nothing_of_it_before_it_is_turned_on() -> None:
    code = "import json, sys, bardo.surfaces.gateway.main, bardo.surfaces.library.client; print(json.dumps([*sys.modules]))"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=PATIENCE)
    loaded = [name for name in json.loads(printed.stdout) if name.startswith("bardo.adapters.stores.memory")]
    assert loaded == []


def test_a_call_that_cannot_be_kept_is_noted_and_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    LogWriter(tmp_path / "log.db").close()
    with open_writer(tmp_path / "log.db", MemorySettings(enabled=True), None) as writer:
        broken: Any = object()
        writer.keep(ROW, Request(model="m", messages=()), broken, asked=Request(model="m", messages=()))
    assert "the thinking of req_1 is not kept: AttributeError" in caplog.text


def test_a_reply_without_thinking_is_not_queued(tmp_path: Path) -> None:
    LogWriter(tmp_path / "log.db").close()
    with open_writer(tmp_path / "log.db", MemorySettings(enabled=True), None) as writer:
        request = Request(model="m", messages=())
        writer.keep(ROW, request, Response(), asked=request)
        assert writer.waiting == 0


def test_episodes_that_wait_are_bounded_and_the_rest_is_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bardo.adapters.stores.log.batch_writer.FIRST_REST_SECONDS", 0.01)
    LogWriter(tmp_path / "log.db").close()
    store = EpisodeStore(tmp_path / "log.db", MemorySettings(enabled=True), None)

    def fail(rows: object) -> None:
        raise StoreUnavailable("the disk is full")

    monkeypatch.setattr(store, "append", fail)
    with caplog.at_level(logging.WARNING), MemoryWriter(store) as writer:
        for number in range(1_010):
            writer.write(draft(f"req_{number}", "q", "t"))
        assert writer.dropped == 10
    assert writer.dropped == 1_010
    assert "10 rows are missing in the inference memory" in caplog.text


def test_a_model_that_cannot_be_loaded_leaves_search_by_words(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Kept(str(tmp_path / "log.db"), folder=str(tmp_path / "nowhere")) as kept:
        kept.add(draft("req_1", "tides", "moon"), draft("req_2", "tides", "sun"))
        assert sorted(kept.ids("tides", by="words")) == ["req_1", "req_2"]
        assert kept.memory.stats().vectors == {}
    assert caplog.text.count("episodes get no vectors") == 1


def test_vectors_of_another_embedding_are_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Kept(str(tmp_path / "log.db"), folder="") as kept:
        kept.add(draft("req_1", "Which river is the longest?", "hm"))
        assert kept.ids("name the world's longest river", by="meaning") == ["req_1"]
        assert kept.ids("how to bake banana bread", by="meaning") == []
        found = kept.memory._vectors
        assert found is not None
        made = found.of_text("name the world's longest river")
        assert made is not None
        monkeypatch.setattr(found, "of_text", lambda _: ("another", made[1]))
        assert kept.ids("name the world's longest river", by="meaning") == []
        assert kept.ids("longest river") == ["req_1"]


def test_small_vectors_say_nearly_the_same_as_large_ones() -> None:
    vectors = EpisodeVectors("")
    texts = ("Which river is the longest?", "name the world's longest river", "how to bake banana bread")
    one, two, three = [made[1] for text in texts if (made := vectors.of_text(text)) is not None]
    for other in (two, three):
        exact = sum(left * right for left, right in zip(one, other, strict=True))
        assert cosine(one, packed(other)) == pytest.approx(exact, abs=0.01)
    asked = int.from_bytes(signature_of(one), "little")
    assert differing_bits(signature_of(one), asked) == 0
    assert differing_bits(signature_of(two), asked) < differing_bits(signature_of(three), asked)
    assert cosine(one, b"\1") == 0.0
    assert vectors.of_text("") is None


def test_a_later_configuration_takes_the_memory_over_turns_it_on_and_off(tmp_path: Path) -> None:
    log = LogSettings(path=str(tmp_path / "log.db"), content=True)
    off, on = (
        Settings(log=log),
        Settings(log=log, memory=MemorySettings(enabled=True, embedding="none", retention_days=0)),
    )

    async def work() -> None:
        first = assemble(off, environment={})
        assert (first.memory, first.services.episodes) == (None, None)
        second = assemble(on, environment={}, before=first)
        third = assemble(on, environment={}, before=second)
        assert third.lasting.episodes is second.lasting.episodes is second.services.episodes
        for one in (second, third):
            one.lasting.commit()
        await first.close()
        await second.close()
        assert third.lasting.episodes is not None
        third.lasting.episodes.write(draft("req_1", "tides", "moon"))
        assert third.memory is not None
        assert [one.request_id for one in third.memory.search("tides")] == ["req_1"]
        last = assemble(off, environment={}, before=third)
        last.lasting.commit()
        await third.close()
        assert last.services.episodes is None
        await last.close()

    asyncio.run(work())
