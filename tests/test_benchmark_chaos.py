"""The rules that chaos and the soak judge by find each mistake, and a gateway whose worker and provider are killed keeps them."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from xml.etree import ElementTree

import pytest
from benchmarks.ledger import read_ledger
from benchmarks.mixed_client import KINDS, MixedJob, end_of
from benchmarks.mixed_place import mixed_place
from benchmarks.plot import Line, plot
from benchmarks.soak_mixed import ask, rise

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmarks read /proc")


def made_log(folder: Path, rows: list[tuple[str, int, str]], sums: tuple[int, int]) -> Path:
    """Return a log with these calls, their costs and parts, and a table of sums."""
    path = folder / "log.db"
    with closing(sqlite3.connect(path)) as log, log:
        log.execute("create table inference_log (request_id, outcome, error_class, cost_nanos, cost_parts)")
        log.executemany("insert into inference_log values (?, 'ok', null, ?, ?)", rows)
        log.execute("create table inference_rollup (calls, cost_nanos)")
        log.execute("insert into inference_rollup values (?, ?)", sums)
    return path


RIGHT = [("a", 3, '{"input": 1, "output": 2}'), ("b", 0, "{}")]


def test_a_right_log_has_no_mistakes(tmp_path: Path) -> None:
    assert read_ledger(made_log(tmp_path, RIGHT, (2, 3))).mistakes(["a"], []) == []


@pytest.mark.parametrize(
    ("rows", "sums", "answered", "journals", "mistake"),
    [
        (RIGHT, (2, 3), ["a", "c"], [], "1 answered calls have no row"),
        ([*RIGHT, RIGHT[1]], (3, 3), [], [], "1 calls have two rows"),
        ([("a", 4, '{"input": 1, "output": 2}')], (1, 4), [], [], "1 costs are not the sum of their parts"),
        (RIGHT, (3, 3), [], [], "the sums (3, 3) are not those of 2 rows"),
        (RIGHT, (2, 3), [], ["1-a.journal"], "1 journals are left"),
    ],
    ids=["missing row", "row twice", "cost", "sums", "journal"],
)
def test_each_mistake_of_a_log_is_found(
    tmp_path: Path,
    rows: list[tuple[str, int, str]],
    sums: tuple[int, int],
    answered: list[str],
    journals: list[str],
    mistake: str,
) -> None:
    (found,) = read_ledger(made_log(tmp_path, rows, sums)).mistakes(answered, journals)
    assert found.startswith(mistake)


WHOLE = b'{"choices": [{"finish_reason": "stop", "message": {"content": "Ebb"}}]}'
CHUNK = b'data: {"choices": [{"delta": {}, "finish_reason": "stop"}]}\n\n'


@pytest.mark.parametrize(
    ("kind", "status", "body", "end"),
    [
        ("whole", 200, WHOLE, "whole"),
        ("whole", 200, WHOLE[:-3], "quietly cut"),
        ("whole", 200, b'{"choices": [{"message": {"content": "Eb"}}]}', "quietly cut"),
        ("whole", 502, b'{"error": {"message": "no"}}', "error"),
        ("whole", 502, b"", "quietly cut"),
        ("stream", 200, CHUNK + b"data: [DONE]\n\n", "whole"),
        ("stream", 200, CHUNK, "quietly cut"),
        ("stream", 200, b"data: [DONE]\n\n", "quietly cut"),
        ("stream", 200, b'data: {"error": {}}\n\n', "error"),
        ("translated stream", 200, b"event: message_start\n\n", "quietly cut"),
        ("translated stream", 200, b"event: message_stop\n\n", "whole"),
        ("translated stream", 200, b"event: error\n\n", "error"),
        ("translated", 200, b'{"stop_reason": "end_turn"}', "whole"),
    ],
)
def test_a_reply_is_whole_or_an_error_or_quietly_cut(kind: str, status: int, body: bytes, end: str) -> None:
    assert end_of(kind, status, body) == end


def test_a_line_that_rises_is_told_from_one_that_varies() -> None:
    assert rise(range(20), [50.0] * 10 + [100.0, 101.0] * 5) == pytest.approx(0.27, abs=0.01)
    assert rise(range(20), [float(value) for value in range(20)]) == pytest.approx(9)
    assert rise([0, 100, 900, 1000, 1001], [0.0, 5.0, 7.0, 8.0, 8.0]) == pytest.approx(1.0, abs=0.02), (
        "by requests, not by samples"
    )


def test_a_plot_is_svg_with_a_line_for_each_worker() -> None:
    lines = [Line(name=name, points=((1, 2), (2, 3))) for name in ("worker 1", "<worker 2>")]
    drawn = ElementTree.fromstring(plot("Held", "requests", {"memory, MB": lines}))
    assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == 2
    assert "<worker 2>" in [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.nightly
@linux
def test_a_log_is_right_after_a_worker_and_the_provider_were_killed(tmp_path: Path) -> None:
    each = 2 * len(KINDS)
    with mixed_place(tmp_path, workers=2) as place:

        def load(seed: int) -> tuple[list[str], list[str]]:
            found = ask(place, MixedJob(port=place.port, requests=each, concurrency=6, seed=seed, keep_ids=True))
            assert found.sent == each
            return [*found.answered], [*found.quiet]

        parts = [load(1)]
        before = place.workers()
        place.kill_worker(0)
        parts.append(load(2))
        place.kill_simulator()
        parts.append(load(3))
        place.restart_simulator()
        parts.append(load(4))
        place.stop_gateway()
        place.start_gateway()
        place.stop_gateway()
        ledger, journals = read_ledger(tmp_path / "log.db"), place.journals()
    assert len(before) == 2
    answered = [name for names, _ in parts for name in names]
    assert len(answered) > each
    assert ledger.mistakes(answered, journals) == []
    assert [quiet for _, lines in parts for quiet in lines] == []
    assert ledger.outcomes["ok"] > 0
