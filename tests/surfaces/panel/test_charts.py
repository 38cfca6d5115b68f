"""Charts of the panel: what they draw is what their numbers say, whatever the numbers are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.surfaces.panel.charts import HEIGHT, WIDTH, Chart, Column, column_chart, row_chart, sparkline
from bardo.surfaces.render.wording import dollars

AMOUNTS = st.one_of(st.just(0.0), st.floats(1e-9, 1e9))


def inside(chart: Chart) -> bool:
    """Whether all bars are within the drawing."""
    return all(
        bar.x >= 0
        and bar.y >= -0.1
        and bar.x + bar.width <= chart.width + 0.1
        and bar.y + bar.height <= chart.height + 0.1
        for bar in chart.bars
    )


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), max_size=40))
def test_columns_keep_to_the_drawing_and_taller_ones_are_more(rows: list[tuple[float, ...]]) -> None:
    columns = [Column(str(place), amounts) for place, amounts in enumerate(rows)]
    chart = column_chart("c", "title", columns, ["a", "b", "c"], dollars)
    assert inside(chart)
    assert len(chart.bars) == sum(amount > 0 for row in rows for amount in row)
    assert (chart.width, chart.height) == (WIDTH, HEIGHT)


def test_parts_of_a_column_stand_on_each_other() -> None:
    chart = column_chart("c", "title", [Column("day", (1.0, 3.0))], ["a", "b"], dollars)
    lower, upper = chart.bars
    assert lower.y == pytest.approx(upper.y + upper.height, abs=0.2)
    assert upper.height == pytest.approx(3 * lower.height, abs=0.5)
    assert [bar.title for bar in chart.bars] == ["day, a: $1.00", "day, b: $3.00"]
    assert chart.series == ("a", "b")


def test_what_is_unknown_is_no_bar_and_is_said() -> None:
    chart = column_chart("c", "title", [Column("one", (0.0,), 3), Column("two", (2.0,))], [""], dollars)
    assert len(chart.bars) == 1
    assert [label.text for label in chart.unknown] == ["one: 3 calls of unknown cost"]
    assert "3 more calls have an unknown cost" in chart.description


@given(st.lists(AMOUNTS, max_size=60))
def test_rows_keep_to_the_drawing_and_none_is_lost(amounts: list[float]) -> None:
    chart = row_chart("c", "title", [Column(f"row {place}", (one,)) for place, one in enumerate(amounts)], dollars)
    assert inside(chart)
    shown = len(chart.labels)
    assert shown <= 16
    if len(amounts) > 16:
        assert chart.labels[-1].text == f"{len(amounts) - shown + 1} others"
    else:
        assert shown == len(amounts)


def test_a_row_of_unknown_cost_alone_says_unknown() -> None:
    chart = row_chart("c", "title", [Column("m", (0.0,), 2), Column("n", (1.0,))], dollars)
    assert [label.text for label in chart.values] == ["$1.00", "unknown"]


def test_a_line_has_gaps_where_nothing_is_known() -> None:
    line = sparkline("title", [1.0, 2.0, None, 3.0, None, 1.0, 1.0])
    assert len(line.parts) == 2
    assert len(line.dots) == 1
    assert sparkline("title", [None, None]).parts == ()


@pytest.mark.parametrize("amount", [1e-9, 0.004, 1.0, 999.0, 1e9])
def test_the_scale_ends_at_a_round_number_above_the_largest(amount: float) -> None:
    chart = column_chart("c", "title", [Column("x", (amount,))], [""], dollars)
    assert 2 <= len(chart.ticks) <= 6
    assert chart.bars[0].height > (HEIGHT - 44) / 2
