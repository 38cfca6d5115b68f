"""Numbers and texts as words."""

from __future__ import annotations

import pytest

from bardo.surfaces.render import wording
from bardo.values.degradation import Degradation


@pytest.mark.parametrize(
    ("number", "estimated", "written"), [(None, False, "–"), (0, False, "0"), (1161, False, "1,161"), (29, True, "~29")]
)
def test_counts(number: int | None, estimated: bool, written: str) -> None:
    assert wording.count(number, estimated=estimated) == written


@pytest.mark.parametrize(
    ("amount", "written"),
    [
        (None, "unknown"),
        (0.0, "$0.00"),
        (0.000012, "$0.000012"),
        (0.25, "$0.25"),
        (12.5, "$12.50"),
        (1e-9, "$0.0000000010"),
        (1234.5, "$1,234.50"),
    ],
)
def test_dollars(amount: float | None, written: str) -> None:
    assert wording.dollars(amount) == written


@pytest.mark.parametrize(
    ("duration", "written"),
    [(0.004, "0.00 s"), (9.99, "9.99 s"), (12.34, "12.3 s"), (125.0, "2m 05s"), (59.96, "1m 00s")],
)
def test_seconds(duration: float, written: str) -> None:
    assert wording.seconds(duration) == written


def test_a_moment_of_another_day_has_its_date() -> None:
    noon = 1_769_860_800.0
    assert wording.moment(noon, noon + 1).count(":") == 2
    assert wording.moment(noon, noon + 3 * 86_400).startswith("2026-01-3")


def test_no_text_moves_the_cursor() -> None:
    assert wording.printable("a\x1b[2J\x07b\tc\nd\x9b1m\u202e") == "a�[2J�b\tc\nd�1m�"
    assert wording.excerpt("a\n\n  b\x1b" + "c" * 100, 8) == "a b�ccc…"
    assert wording.excerpt("short", 8) == "short"


@pytest.mark.parametrize(
    ("degradation", "written"),
    [
        (Degradation("seed"), "seed"),
        (Degradation("seed", why="not offered"), "seed: not offered"),
        (Degradation("effort", asked="high", sent="low", why="highest"), "effort: asked high, sent low (highest)"),
        (Degradation("effort", asked="high"), "effort: asked high"),
    ],
)
def test_differences(degradation: Degradation, written: str) -> None:
    assert wording.difference(degradation) == written
