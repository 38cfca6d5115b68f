"""What is forgotten is gone: rows, words, vectors, the content of the calls, and every trace in the files."""

from __future__ import annotations

from hashlib import blake2b
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.memory.episodes import EpisodeSelection, EpisodeVectors
from support.episodes import NOW, Kept, draft

DAY = 86_400.0
FILLER = "some words of a usual length that fill pages of the file, so that rows are moved and pages are split "


def secret(number: int) -> str:
    """Return a word that no other episode has. It begins at random: an index leaves out what words begin with in common."""
    return blake2b(str(number).encode(), digest_size=10).hexdigest()


def told(number: int, **fields: object) -> object:
    """Return an episode with a word of its own."""
    words = f"{secret(number)} " * 3 + FILLER * (number % 40)
    return draft(f"req_{number:03}", f"q {words}", f"t {words}", f"a {words}", **fields)  # type: ignore[arg-type]


def traces(folder: Path, number: int) -> list[str]:
    """Return the files in which the word of an episode stands, in whatever case."""
    needle = secret(number)[4:].encode()
    return [file.name for file in sorted(folder.rglob("*")) if file.is_file() and needle in file.read_bytes().lower()]


def test_nothing_of_what_was_forgotten_is_left_in_any_file(tmp_path: Path) -> None:
    with Kept(str(tmp_path / "log.db"), folder="") as kept:
        kept.add(*(told(number) for number in range(100, 400)))  # type: ignore[arg-type]
        assert traces(tmp_path, 123)
        kept.memory.search("usual length")  # A reader with an open database is no hindrance.
        erased = kept.memory.forget(EpisodeSelection(id="ep_123"))
        assert (erased.episodes, erased.calls, erased.file_clean) == (1, 1, True)
        assert traces(tmp_path, 123) == []
        assert kept.ids(secret(123), by="words") == []
        assert kept.ids(secret(124), by="words") == ["req_124"]
        assert kept.memory.forget(EpisodeSelection()).episodes == 299
        assert [traces(tmp_path, number) for number in range(100, 400)] == [[]] * 300
        kept.add(told(500))  # type: ignore[arg-type]
        assert kept.ids(secret(500), by="words") == ["req_500"]


def test_a_client_erases_without_the_file_written_anew_and_the_index_is_at_the_end(tmp_path: Path) -> None:
    kept = Kept(str(tmp_path / "log.db"))
    kept.memory._writer = kept.writer
    with kept:
        kept.add(*(told(number) for number in range(100, 140)))  # type: ignore[arg-type]
        erased = kept.memory.forget(EpisodeSelection(id="req_123"), thorough=False)
        assert (erased.episodes, erased.file_clean) == (1, False)
        assert kept.ids(secret(123)) == []
    assert traces(tmp_path, 123) == []


def test_the_rows_of_calls_stay_without_their_content(kept: Kept) -> None:
    kept.add(draft("req_1", "secret", "hm", "secret", cost_nanos=7), draft("req_2", "other", "hm", "other"))
    kept.memory.forget(EpisodeSelection(id="ep_1"))
    with LogReader(kept.place) as log:
        first, second = log.get("req_1"), log.get("req_2")
    assert first is not None
    assert second is not None
    assert (first.request_content, first.reply_content, first.cost_nanos) == (None, None, 7)
    assert (second.request_content, second.reply_content) == ("other", "other")


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        ({"tenant": "a"}, ["req_3"]),
        ({"tenant": "a", "key": "k2"}, ["req_1", "req_3"]),
        ({"session": "s1"}, ["req_3"]),
        ({"before": NOW - 5}, ["req_2", "req_3"]),
        ({"id": "nobody"}, ["req_1", "req_2", "req_3"]),
        ({"tenant": ""}, ["req_1", "req_2", "req_3"]),
        ({}, []),
    ],
    ids=str,
)
def test_only_what_is_selected_is_forgotten(kept: Kept, selection: dict[str, object], left: list[str]) -> None:
    kept.add(
        draft("req_1", "word", "t", tenant="a", key_id="k1", session="s1", started_at=NOW - 10),
        draft("req_2", "word", "t", tenant="a", key_id="k2", session="s1"),
        draft("req_3", "word", "t", tenant="b", key_id="k3", session="s2"),
    )
    chosen = EpisodeSelection(**selection)  # type: ignore[arg-type]
    assert kept.memory.count(chosen) == 3 - len(left)
    assert kept.memory.forget(chosen).episodes == 3 - len(left)
    assert sorted(kept.ids("word")) == left


def test_a_call_that_is_removed_from_the_log_takes_its_episode_with_it(kept: Kept) -> None:
    kept.add(draft("req_1", "word", "t"), draft("req_2", "word", "t"))
    address = kept.place if "://" in kept.place else f"sqlite:///{kept.place}"
    engine = create_engine(address)
    with engine.begin() as connection:
        connection.execute(text("DELETE FROM inference_log WHERE request_id = 'req_1'"))
    engine.dispose()
    assert kept.ids("word") == ["req_2"]
    assert kept.memory.show("req_1") is None


def test_the_vectors_of_what_was_forgotten_are_gone(kept: Kept) -> None:
    vectors = EpisodeVectors("")
    store = kept.writer._store
    store._vectors = vectors  # type: ignore[attr-defined]
    kept.memory._vectors = vectors
    kept.add(draft("req_1", "why the sea rises twice a day", "the moon"))
    assert kept.ids("what makes the ocean go up two times daily", by="meaning") == ["req_1"]
    kept.memory.forget(EpisodeSelection())
    assert kept.ids("what makes the ocean go up two times daily", by="meaning") == []
    assert kept.memory.stats().vectors == {}


def test_what_is_too_old_is_not_found_and_is_removed(place: str) -> None:
    settings = {"retention_days": 30.0, "retention_days_of": {"short": 1.0, "ever": 0.0}}
    with Kept(place, **settings) as kept:  # type: ignore[arg-type]
        store = kept.writer._store
        store._swept_at = store._watch()  # type: ignore[attr-defined]
        kept.add(
            draft("req_1", "word", "t", started_at=NOW - 31 * DAY),
            draft("req_2", "word", "t", started_at=NOW - 29 * DAY),
            draft("req_3", "word", "t", tenant="short", started_at=NOW - 2 * DAY),
            draft("req_4", "word", "t", tenant="ever", started_at=NOW - 999 * DAY),
        )
        assert sorted(kept.ids("word")) == ["req_2", "req_4"]
        assert kept.memory.count(EpisodeSelection()) == 4
        store._swept_at = 0.0  # type: ignore[attr-defined]
        kept.add(draft("req_5", "word", "t"))
        assert kept.memory.count(EpisodeSelection()) == 3


def test_what_became_too_old_while_nothing_ran_is_removed_at_the_start(place: str) -> None:
    with Kept(place, retention_days=30.0) as kept:
        kept.add(draft("req_1", "word", "t"), draft("req_2", "word", "t", started_at=NOW + DAY))
    with Kept(place, retention_days=30.0, now=NOW + 30.5 * DAY) as later:
        later.writer.close()
        assert later.memory.count(EpisodeSelection()) == 1
        assert later.ids("word") == ["req_2"]


def test_the_oldest_of_those_with_the_most_go_first(place: str) -> None:
    with Kept(place, max_episodes=6) as kept:
        store = kept.writer._store
        store._swept_at = store._watch()  # type: ignore[attr-defined]
        many = [draft(f"req_a{number}", "word", "t", tenant="a", started_at=NOW + number) for number in range(9)]
        few = [draft(f"req_b{number}", "word", "t", tenant="b", started_at=NOW - number) for number in range(2)]
        kept.add(*many, *few)
        store._swept_at = 0.0  # type: ignore[attr-defined]
        kept.add(draft("req_c", "word", "t", tenant="c"))
        assert sorted(kept.ids("word", limit=20)) == ["req_a6", "req_a7", "req_a8", "req_b0", "req_b1", "req_c"]
