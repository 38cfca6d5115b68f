"""The costs of the panel are those of the command line, to the nano-dollar, and a key sees its own alone."""

from __future__ import annotations

import csv
import io
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.stores.log import LogWriter
from bardo.adapters.stores.log.rollup import DIMENSIONS, Dimension
from bardo.surfaces.panel.cost_tables import exact_text
from bardo.surfaces.render.costs import CAUSE, cause_records, cost_records, day_text, sum_groups
from bardo.surfaces.render.wording import count, dollars
from bardo.values.usage import usd
from support.any_model import Simulator
from support.keyed_gateway import keyed_gateway, make_key
from support.panel_pages import PanelReader, SeenPage
from surfaces.panel.views.conftest import TOML, FilledGateway, call

BY = [*DIMENSIONS]


def groups(filled: FilledGateway, by: tuple[Dimension, ...], **asked: Any) -> Any:
    with filled.log() as log:
        return log.costs(by, **asked)


@pytest.mark.parametrize("by", BY)
def test_each_row_is_that_of_the_command(filled: FilledGateway, operator: PanelReader, by: Dimension) -> None:
    seen = operator.page("/costs", by=by, period="all").table("Calls by")
    records = cost_records(groups(filled, ("session", "key") if by == "session" else (by,)))
    costs = [dollars(one["cost_usd"]) for one in records]
    calls = [count(one["calls"]) for one in records]
    expected = list(zip(calls, costs, strict=True))[:: -1 if by == "day" else 1]
    assert list(zip(seen.column("calls"), seen.column("cost"), strict=True))[:-1] == expected


def test_the_sums_are_exact(filled: FilledGateway, operator: PanelReader) -> None:
    whole = sum_groups(groups(filled, ()))
    page = operator.page("/costs", period="all")
    assert whole.cost_nanos % 1_000 != 0, "this test needs digits below those that are usually shown"
    assert exact_text(whole.cost_nanos) in page.text
    assert page.table("Calls by").row("total")["cost"] == exact_text(whole.cost_nanos)
    assert f"for {count(whole.cost_known)} calls of known cost" in page.text


def test_an_unknown_cost_is_said_to_be_unknown(filled: FilledGateway, operator: PanelReader) -> None:
    page = operator.page("/costs", by="model", period="all")
    row = page.table("Calls by").row("claude")
    assert row["remarks"].startswith("cost known for ")
    assert "calls of unknown cost" in page.text
    by_cause = operator.page("/costs", by=CAUSE, period="all").table("Cost by cause")
    assert by_cause.row("unknown")["cost"] == "unknown"


def test_costs_by_cause(filled: FilledGateway, operator: PanelReader) -> None:
    records = cause_records(groups(filled, ()))
    seen = operator.page("/costs", by=CAUSE, period="all").table("Cost by cause")
    told = [exact_text(one["cost_nanos"]) for one in records if one["cost_nanos"] is not None]
    assert [cost for cost in seen.column("cost")[:-1] if cost != "unknown"] == told


@pytest.mark.parametrize("split", ["provider", "model", "key", "subsystem", CAUSE])
def test_days_divided_by_something_else_have_the_same_sums(
    filled: FilledGateway, operator: PanelReader, split: str
) -> None:
    seen = operator.page("/costs", split=split, period="all").table("Cost by day and")
    for group in groups(filled, ("day",)):
        row = seen.row(day_text(int(group.of["day"])))
        assert row["known cost"] == (dollars(usd(group.sums.cost_nanos)) if group.sums.cost_known else "unknown")
    if split in DIMENSIONS:
        one = next(one for one in groups(filled, ("day", split)) if one.sums.cost_known)
        cells = seen.row(day_text(int(one.of["day"]))).values()
        assert dollars(usd(one.sums.cost_nanos)) in cells


def test_a_period_of_ones_own(filled: FilledGateway, operator: PanelReader) -> None:
    days = sorted(int(one.of["day"]) for one in groups(filled, ("day",)))
    first, last = days[2], days[4]
    asked = {"period": "own", "from": day_text(first), "to": day_text(last)}
    seen = operator.page("/costs", **asked).table("Calls by")
    assert seen.column("day")[:-1] == [day_text(day) for day in (last, last - 1, first)]
    since, until = first * 86_400.0, (last + 1) * 86_400.0
    assert seen.row("total")["cost"] == exact_text(sum_groups(groups(filled, (), since=since, until=until)).cost_nanos)


@pytest.mark.parametrize("asked", [{"from": "yesterday"}, {"from": "2026-02-02", "to": "2026-02-01"}])
def test_a_period_that_is_none_is_refused(operator: PanelReader, asked: dict[str, str]) -> None:
    page = SeenPage(operator.get("/costs", **asked))
    assert page.status == 400
    assert "day" in page.text


def test_a_period_without_calls_says_so(operator: PanelReader) -> None:
    page = operator.page("/costs", **{"from": "1999-01-01", "to": "1999-01-02"})
    assert "No calls 1999-01-01 to 1999-01-02" in page.text
    assert page.tables == []
    assert page.tags.count("rect") == 0


def test_the_file_is_what_the_command_prints(filled: FilledGateway, operator: PanelReader) -> None:
    answer = operator.get("/costs.csv", by="model", period="all")
    assert answer.headers["content-type"].startswith("text/csv")
    assert answer.headers["content-disposition"] == 'attachment; filename="bardo-costs-model.csv"'
    found = {one["model"]: one for one in csv.DictReader(io.StringIO(answer.text))}
    for one in cost_records(groups(filled, ("model",))):
        nanos = one["cost_nanos"]
        assert found[one["model"]]["cost_nanos"] == ("" if nanos is None else str(nanos))


def test_a_key_sees_its_own_calls_alone(filled: FilledGateway, member: PanelReader) -> None:
    own = sum_groups(groups(filled, (), key=filled.own.id))
    page = member.page("/costs", period="all")
    assert page.table("Calls by").row("total")["calls"] == count(own.calls)
    assert page.table("Calls by").row("total")["cost"] == exact_text(own.cost_nanos)
    by_key = member.page("/costs", by="key", period="all")
    assert filled.other.id not in by_key.html
    assert "Calls by day" in by_key.text
    lines = member.get("/costs.csv", by="key", period="all").text
    assert filled.other.id not in lines


def test_the_chart_says_what_it_shows(operator: PanelReader, filled: FilledGateway) -> None:
    page = operator.page("/costs", split="provider", period="30d")
    assert {"svg", "title", "desc", "pattern"} <= set(page.tags)
    assert 'role="img"' in page.html
    day = next(one for one in groups(filled, ("day", "provider")) if one.sums.cost_nanos)
    said = f"{day_text(int(day.of['day']))[5:]}, {day.of['provider']}: {dollars(usd(day.sums.cost_nanos))}"
    assert said in page.text


_BAD: list[Callable[[], dict[str, str]]] = [
    lambda: {"by": "nonsense"},
    lambda: {"by": "day", "split": "nonsense"},
    lambda: {"period": "nonsense"},
    lambda: {"page": "-3"},
    lambda: {"page": "99999999999999999999"},
]


@pytest.mark.parametrize("asked", _BAD)
def test_a_question_that_nobody_asks_is_answered_as_the_usual_one(
    operator: PanelReader, asked: Callable[[], dict[str, str]]
) -> None:
    assert operator.page("/costs", **asked()).table("Calls by day").rows


def test_sums_that_hold_estimates_are_marked_and_the_mark_is_explained(tmp_path: Path) -> None:
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=TOML) as gateway:
        with LogWriter(gateway.log) as writer:
            counted = {"provider": "p", "model": "whole", "output_tokens": 7, "cost_nanos": 5_000_000}
            left = {**counted, "model": "left", "tokens_approx": True, "outcome": "cancelled"}
            writer.write(call(1, time.time(), **counted, cost_parts={"answer": 5_000_000}))
            writer.write(call(2, time.time(), **left, cost_parts={"answer": 5_000_000}))
        with closing(PanelReader(gateway.address, gateway.key(name="the operator", operator=True))) as reader:
            by_model = reader.page("/costs", by="model")
            seen = by_model.table("Calls by model")
            assert (seen.row("left")["output"], seen.row("left")["cost"]) == ("~7", "~$0.0050")
            assert (seen.row("whole")["output"], seen.row("whole")["cost"]) == ("7", "$0.0050")
            assert (seen.row("total")["output"], seen.row("total")["cost"]) == ("~14", "~$0.01")
            assert (
                "~ holds estimates: of replies that did not come to their end (1 call, $0.0050 of the cost)"
                in by_model.text
            )
            by_cause = reader.page("/costs", by=CAUSE).table("Cost by cause")
            assert (by_cause.row("answer")["cost"], by_cause.row("total")["cost"]) == ("~$0.01", "~$0.01")
            (day,) = reader.page("/costs", split="model").table("Cost by day and").rows
            assert sorted(cell for cell in day if "$" in cell) == ["$0.0050", "~$0.0050", "~$0.010"]


def test_the_operator_sees_the_agents_day_beside_what_was_projected(tmp_path: Path) -> None:
    toml = f'{TOML}[golem]\nenabled = true\nroutes = "full_stack"\ndaily_budget_usd = 2.0\n'
    with keyed_gateway(tmp_path, [Simulator("deepseek")], toml=toml) as gateway:
        operator_key = gateway.key(name="the operator", operator=True)
        _, own_key = make_key(gateway.state, name="own")
        with LogWriter(gateway.log) as writer:
            for number, name in enumerate(("heartbeat_t0", "heartbeat_t0", "dream_rem")):
                cost = 30_000_000 if name == "dream_rem" else 0
                writer.write(call(number, time.time(), provider="p", model="m", subsystem=name, cost_nanos=cost))
        with closing(PanelReader(gateway.address, operator_key)) as reader:
            page = reader.page("/costs")
            row = page.table("The agent's budget").row("dream")
            assert (row["calls"], row["spent"], row["budget"]) == ("1", "$0.030", "$0.30")
            assert "$1.50" in page.text
            assert "T0 100 %" in page.text
        with closing(PanelReader(gateway.address, own_key)) as reader:
            assert "The agent's budget" not in reader.page("/costs").text
