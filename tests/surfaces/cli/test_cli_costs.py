"""`bardo costs`: what calls cost, by what they have in common and by cause; what nobody knows stays unknown."""

from __future__ import annotations

import csv
import io
from typing import Any

import pytest

from bardo.adapters.stores.log import LogRow
from surfaces.cli.support import bardo, write_log

DAY = 86_400.0
NOON = 20_000.5 * DAY  # 2024-10-04
CALLS = [
    LogRow(
        request_id="req_a", started_at=NOON, provider="lab", model="big", key_id="k1", subsystem="chat", input_tokens=10,
        cost_nanos=1_500, cost_parts={"input": 100, "answer": 1_000, "thinking": 400}, reported_cost_nanos=1_500,
        computed_cost_nanos=1_400,
    ),
    LogRow(
        request_id="req_b", started_at=NOON + DAY, provider="lab", model="big", key_id="k2", attempts=2,
        cost_nanos=1_000_000_000, cost_parts={"answer": 999_999_999, "retry": 1},
    ),
    LogRow(request_id="req_c", started_at=NOON + DAY, provider="box", model="small", outcome="broken", cost_parts={"input": 7}),
    LogRow(request_id="req_d", started_at=NOON + DAY, provider="box", model="v", operation="embed", cost_nanos=250_000_000),
]  # fmt: skip


@pytest.fixture(autouse=True)
def _calls() -> None:
    write_log(CALLS)


def test_costs_by_day_are_in_the_order_of_days() -> None:
    found = bardo("costs", "--by", "day", "--json").json
    assert [(one["day"], one["calls"], one["cost_nanos"]) for one in found["totals"]] == [
        ("2024-10-04", 1, 1_500),
        ("2024-10-05", 3, 1_250_000_000),
    ]
    assert (found["by"], found["cost_known"], found["cost_unknown"]) == (["day"], 3, 1)


@pytest.mark.parametrize(
    ("by", "expected"),
    [
        ("key", {"k1": 1_500, "k2": 1_000_000_000, "": 250_000_000}),
        ("subsystem", {"chat": 1_500, "": 1_250_000_000}),
        ("operation", {"generate": 1_000_001_500, "embed": 250_000_000}),
        ("provider", {"lab": 1_000_001_500, "box": 250_000_000}),
        ("model", {"big": 1_000_001_500, "v": 250_000_000, "small": None}),
    ],
)
def test_costs_by_one_thing(by: str, expected: dict[str, int | None]) -> None:
    found = bardo("costs", "--by", by, "--json").json
    assert {one[by]: one["cost_nanos"] for one in found["totals"]} == expected


def test_costs_by_cause_add_up_and_name_what_is_not_known() -> None:
    found = bardo("costs", "--by", "cause", "--json").json
    causes = {one["cause"]: one["cost_nanos"] for one in found["totals"]}
    assert causes == {
        "answer": 1_000_000_999, "thinking": 400, "input": 100, "retry": 1, "not split": 250_000_000, "unknown": None
    }  # fmt: skip
    assert sum(nanos for nanos in causes.values() if nanos) == found["cost_nanos"]
    lines = [line.split() for line in bardo("costs", "--by", "cause").out.splitlines()]
    assert ["unknown", "unknown", "1", "calls"] in lines


def test_several_dimensions_may_be_asked_for_with_commas_or_one_by_one() -> None:
    together = bardo("costs", "--by", "day,provider,cause", "--json").json
    apart = bardo("costs", "--by", "day", "--by", "provider", "--by", "cause", "--json").json
    assert together == apart
    assert together["totals"][0] == {
        "day": "2024-10-04", "provider": "lab", "cause": "answer", "cost_usd": 1e-06, "cost_nanos": 1_000, "calls": None,
        "estimated": False,
    }  # fmt: skip


def test_what_providers_report_above_the_prices_is_the_difference() -> None:
    (big,) = [one for one in bardo("costs", "--json").json["totals"] if one["model"] == "big"]
    assert (big["difference_usd"], big["compared"]) == (1e-07, 1)
    assert "$0.00000010" in bardo("costs").out


def test_costs_as_csv() -> None:
    ran = bardo("costs", "--csv", "--by", "provider")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    box, lab = sorted(rows, key=lambda row: row["provider"])
    assert (lab["provider"], lab["calls"], lab["cost_nanos"], lab["input_tokens"]) == ("lab", "2", "1000001500", "10")
    assert (box["cost_usd"], box["cost_unknown"], box["output_tokens"]) == ("0.25", "1", "")
    assert bardo("costs", "--csv", "--by", "cause").out.startswith(
        "cause,cost_usd,cost_nanos,calls,estimated\nanswer,1.000000999,1000000999,,False\n"
    )


def test_a_range_of_time() -> None:
    before = bardo("costs", "--until", "2024-10-04T13:00:00+00:00", "--json").json
    after = bardo("costs", "--since", "2024-10-04T13:00:00+00:00", "--json").json
    assert (before["calls"], after["calls"]) == (1, 3)
    assert bardo("costs", "--since", "2024-11-01").err.strip() == "no calls"


def test_what_is_known_of_unknown_costs_is_said() -> None:
    assert bardo("costs").out.endswith(
        "4 calls, cost $1.25 for the 3 whose cost is known; of the others $0.0000000070 at least\n"
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--by", "colour"], "--by does not understand 'colour'"),
        (["--json", "--csv"], "exclude each other"),
        (["--until", "tomorrow"], "--until does not understand 'tomorrow'"),
    ],
)
def test_mistakes_are_named(options: list[str], words: str) -> None:
    ran = bardo("costs", *options)
    assert ran.code == 2
    assert words in ran.err


ESTIMATED = LogRow(
    request_id="req_e", started_at=NOON + 2 * DAY, provider="lab", model="left", outcome="cancelled", tokens_approx=True, input_tokens=5,
    output_tokens=1_200, reasoning_tokens=300, cost_nanos=30_000_000, cost_parts={"answer": 30_000_000},
)  # fmt: skip
HIDDEN = LogRow(
    request_id="req_f", started_at=NOON + 2 * DAY, provider="lab", model="think", tokens_approx=True, output_tokens=500,
    reasoning_tokens=200, cost_nanos=10_000_000, cost_parts={"answer": 10_000_000},
)  # fmt: skip


def test_sums_that_hold_estimates_are_marked_and_the_mark_is_explained() -> None:
    write_log([ESTIMATED, HIDDEN])
    shown = bardo("costs").out
    lines = {line.split()[1]: line.split() for line in shown.splitlines() if line.startswith(("lab", "box"))}
    assert lines["left"][4:8] == ["~5", "~1,200", "~300", "~$0.030"]
    assert lines["think"][5:8] == ["500", "~200", "$0.010"]
    assert not any("~" in cell for cell in (*lines["big"], *lines["v"]))
    assert "6 calls, cost ~$1.29" in shown
    assert shown.splitlines()[-1] == (
        "~ holds estimates: of replies that did not come to their end (1 call, $0.030 of the cost) and of thinking that was not counted "
        "apart from the answer (1 call)"
    )
    assert "~" not in bardo("costs", "--until", "2024-10-06").out


def test_programs_read_what_is_estimated() -> None:
    write_log([ESTIMATED, HIDDEN])
    found = bardo("costs", "--json").json
    told = {
        one["model"]: (one["estimated_calls"], one["estimated_usd"], one["thinking_estimated_calls"])
        for one in found["totals"]
    }
    assert told == {"big": (0, 0, 0), "small": (0, 0, 0), "v": (0, 0, 0), "left": (1, 0.03, 1), "think": (0, 0, 1)}
    assert (found["estimated_calls"], found["estimated_usd"], found["thinking_estimated_calls"]) == (1, 0.03, 2)
    rows = {one["model"]: one for one in csv.DictReader(io.StringIO(bardo("costs", "--csv").out))}
    assert (rows["left"]["estimated_calls"], rows["left"]["estimated_usd"]) == ("1", "0.03")
    causes = bardo("costs", "--by", "model,cause", "--json").json["totals"]
    assert {one["model"] for one in causes if one["estimated"]} == {"left"}
    assert "~$0.030" in bardo("costs", "--by", "model,cause").out


def test_costs_by_what_clients_name() -> None:
    said: dict[str, Any] = {"started_at": NOON, "provider": "lab", "model": "big", "input_tokens": 100}
    write_log(
        [
            LogRow(request_id="s1", key_id="k1", session="x", agent="codex", repository="r", cost_nanos=5, cached_input_tokens=90,
                   cache_saved_nanos=2_000_000_000, **said),
            LogRow(request_id="s2", key_id="k1", session="x", agent="codex", cost_nanos=7, **said),
            LogRow(request_id="s3", key_id="k2", session="x", agent="claude-code", cost_nanos=11, **said),
        ]
    )  # fmt: skip
    found = bardo("costs", "--by", "session", "--json").json
    assert found["by"] == ["key", "session"]
    assert {(one["key"], one["session"]): one["cost_nanos"] for one in found["totals"]} == {
        ("k1", "x"): 12, ("k2", "x"): 11, ("k1", ""): 1_500, ("k2", ""): 1_000_000_000, ("", ""): 250_000_000,
    }  # fmt: skip
    for by, expected in (("agent", {"codex": 12, "claude-code": 11}), ("repository", {"r": 5})):
        sums = {one[by]: one["cost_nanos"] for one in bardo("costs", "--by", by, "--json").json["totals"] if one[by]}
        assert sums == expected
    shown = bardo("costs", "--by", "agent").out
    head, line = (one.split() for one in shown.splitlines() if "agent" in one or "codex" in one)
    cells = dict(zip(head, line, strict=False))
    assert (cells["calls"], cells["in"], cells["cached"], cells["saved"]) == ("2", "200", "90", "$2.00")
    assert bardo("costs", "--by", "agent", "--since", "2024-10-05", "--json").json["totals"][0]["agent"] == ""
    for by in ("agent", "session"):
        head, line, *_ = (one.split() for one in bardo("costs", "--cache", "--by", by).out.splitlines())
        assert head[-5:] == ["calls", "in", "cached", "written", "saved"]
        assert line[-5:] == ["2", "200", "90", "–", "$2.00"], "where most was saved stands first"
        assert bardo("costs", "--cache", "--by", by, "--json").json["by"] == (["key", by] if by == "session" else [by])
    assert "no costs by cause" in bardo("costs", "--cache", "--by", "cause").err
