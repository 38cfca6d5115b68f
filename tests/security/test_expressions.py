"""No expression of the program or of its rows can be made to work longer than in proportion to the text, whoever wrote that."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import expressions
from support.patience import PATIENCE
from support.sampling import NIGHTLY, rank

WORKER = Path(expressions.__file__)


@pytest.mark.timeout(3_600 if NIGHTLY else 300)
def test_the_time_of_each_expression_grows_with_its_text_and_no_faster() -> None:
    # Each day with the same texts, so that no day comes upon what no night has seen.
    seed = int.from_bytes(rank("expressions", "")[:4]) if NIGHTLY else 0
    assert list(slow_ones(seed)) == []


@pytest.mark.parametrize(("expression", "is_slow"), [(r"(\s*)x", True), (r"\w+@\w", True), (r"[ab]+", False)])
def test_the_check_finds_what_is_exponential_or_quadratic(expression: str, is_slow: bool) -> None:
    assert bool(list(slow_ones(1, expression))) == is_slow


def test_an_expression_that_does_not_come_back_is_named() -> None:
    (found,) = slow_ones(1, r"(?<!\w)(?:\w[ _]{1,3}){3,400}\w(?!\w)", patience=1.0)
    assert found.endswith("does not come back")


def slow_ones(seed: int, *only: str, patience: float = PATIENCE) -> Iterator[str]:
    """Try all expressions, or one, in a process that is killed where one of them does not come back, and yield what is wrong."""
    worker = subprocess.Popen([sys.executable, str(WORKER), str(seed), *only], stdout=subprocess.PIPE)
    assert worker.stdout is not None
    tried: dict[str, object] = {}
    seen = b""
    with worker, selectors.DefaultSelector() as selector:
        selector.register(worker.stdout, selectors.EVENT_READ)
        until = time.monotonic() + PATIENCE
        while selector.select(max(0.0, until - time.monotonic())):
            piece = os.read(worker.stdout.fileno(), 1 << 16)
            *lines, seen = (seen + piece).split(b"\n")
            until = time.monotonic() + patience if lines else until
            for line in map(json.loads, lines):
                if "slow" in line:
                    yield f"{line['place']}: {line['slow']} takes {line['growth']} times as long for {line['unit']!r}"
                tried = line
            if not piece:
                break
        else:
            worker.kill()
            yield f"{tried['place']}: {tried['tries']} does not come back"
            return
    assert tried == {"done": True}, tried
