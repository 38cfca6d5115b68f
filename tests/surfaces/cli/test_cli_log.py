"""`bardo log` and `bardo costs`: what was asked, and what nobody reported."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from bardo.adapters.config.settings import Settings, log_path
from bardo.adapters.stores.log import Feedback, LogReader, LogRow, LogWriter
from bardo.adapters.stores.log.feedback import FeedbackStore
from bardo.reasoning.control import Verdict
from bardo.surfaces.cli.log import OperationName, VerdictName
from bardo.surfaces.cli.options import since_time
from bardo.surfaces.render.calls import VERDICTS
from bardo.values.errors import InvalidRequest
from bardo.values.request import Operation
from surfaces.cli.support import Ran, bardo, ended, line_with, running, write_log

NOW = time.time()
DAY = 86_400.0
CALLS = (
    LogRow(
        request_id="req_aaa111",
        started_at=NOW - 9 * DAY,
        seconds=1.5,
        client_dialect="openai_chat",
        provider="lab",
        provider_dialect="anthropic_messages",
        model_asked="claude",
        model="claude",
        streamed=True,
        finish_reason="stop",
        finish_raw="end_turn",
        visibility="visible",
        input_tokens=1200,
        output_tokens=40,
        reasoning_tokens=29,
        tokens_approx=True,
        cost_usd=0.25,
        cost_nanos=250_000_000,
        degraded=({"what": "reasoning_effort", "asked": "high", "sent": "medium", "why": "highest"},),
        receipt={
            "intent": "high",
            "emitted": {"output_config": {"effort": "medium"}},
            "layer": "L1",
            "reason": "nearest level",
            "observed": {"reasoning_tokens": 29, "approx": True, "text_seen": True, "visibility": "visible"},
            "verdict": "clamped",
            "forwarded": False,
        },
        reasoning_intent="high",
        reasoning_emitted="medium",
        reasoning_layer="L1",
        reasoning_verdict="clamped",
    ),
    LogRow(
        request_id="req_aab222",
        started_at=NOW - 3 * DAY,
        client_dialect="gemini",
        model_asked="nix",
        outcome="error",
        status=404,
        error_class="UnknownModel",
        error_message="no provider here serves 'nix'",
    ),
    LogRow(
        request_id="req_ccc333",
        started_at=NOW - 60,
        client_dialect="gemini",
        provider="box",
        provider_dialect="gemini",
        model_asked="m",
        model="m",
        reasoning_tokens=7,
    ),
)


@pytest.fixture(autouse=True)
def log(folder: Path) -> None:
    write_log(CALLS)


def ids(ran: Ran) -> list[Any]:
    return [row["request_id"] for row in ran.json]


def test_calls_are_a_line_each_newest_last() -> None:
    head, *lines = bardo("log").out.splitlines()
    assert head.split() == ["time", "id", "dialects", "model", "in", "out", "thinking", "took", "outcome"]
    assert lines[0].split()[-9:] == [
        "req_aaa111",
        "chat→messages",
        "lab/claude",
        "1,200",
        "40",
        "~29",
        "1.50",
        "s",
        "ok",
    ]
    assert lines[1].split()[-10:] == ["req_aab222", "gemini", "nix", "–", "–", "–", "0.00", "s", "error", "404"]
    assert lines[2].split()[-9:] == ["req_ccc333", "gemini", "box/m", "–", "–", "7", "0.00", "s", "ok"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["req_aaa111", "req_aab222", "req_ccc333"]),
        (["--limit", "1"], ["req_ccc333"]),
        (["--provider", "lab"], ["req_aaa111"]),
        (["--model", "m"], ["req_ccc333"]),
        (["--outcome", "error"], ["req_aab222"]),
        (["--verdict", "clamped"], ["req_aaa111"]),
        (["--verdict", "contradicted"], []),
        (["--operation", "generate"], ["req_aaa111", "req_aab222", "req_ccc333"]),
        (["--operation", "embed"], []),
        (["--since", "1w"], ["req_aab222", "req_ccc333"]),
        (["--since", "2d"], ["req_ccc333"]),
        (["--provider", "none"], []),
    ],
)
def test_calls_are_chosen(arguments: list[str], expected: list[str]) -> None:
    assert ids(bardo("log", "--json", *arguments)) == expected


def test_json_holds_the_whole_row_and_null_is_not_zero() -> None:
    row = bardo("log", "--json", "--provider", "box").json[0]
    assert msgspec.convert(row, LogRow) == CALLS[2]
    assert row["input_tokens"] is None


def test_one_call_in_full() -> None:
    ran = bardo("log", "show", "req_aaa")
    assert "claude in openai_chat, streamed" in ran.out
    assert "~29 tokens, estimated from its text" in ran.out
    assert "stop (end_turn)" in ran.out
    assert "reasoning_effort: asked high, sent medium (highest)" in ran.out
    assert "$0.25" in ran.out
    failed = bardo("log", "show", "req_aab222").out
    assert "UnknownModel: no provider here serves 'nix'" in failed
    assert "served by   nobody" in failed
    assert bardo("log", "show", "req_ccc333", "--json").json["provider"] == "box"


def test_the_route_the_workload_and_the_feedback_of_a_call_are_told() -> None:
    route = {
        "workload": "dream_nrem",
        "vitality": 0.2,
        "strategy": "order",
        "candidates": [
            {"provider": "lab", "model": "m", "degraded": ["privacy"], "estimated_cost_usd": 0.25},
            {"provider": "box", "model": "n\x1b[31m"},
        ],
        "refused": [{"provider": "old", "model": "o", "reasons": ["lacks:vision", "latency:900"]}],
        "more_refused": 2,
    }
    write_log([LogRow(request_id="req_ddd444", started_at=NOW, provider="lab", model="m", route=route, tenant="t")])
    store = FeedbackStore(log_path(Settings()))
    for score, comment in ((0.25, "too short"), (1, None)):
        given = Feedback(request_id="req_ddd444", given_at=NOW, score=score, comment=comment)
        assert store.add(given, "t")
    store.close()
    ran = bardo("log", "show", "req_ddd")
    lines = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert "workload dream_nrem" in lines
    assert "vitality 0.2" in lines
    assert "\x1b" not in ran.out
    said = " ".join(lines)
    assert "route by order: lab/m (lacks privacy; about $0.25), then box/n" in said
    assert "not asked old/o (lacks:vision, latency:900); and 2 more" in said
    assert [line.rpartition(": ")[2] for line in lines if line.startswith("feedback 0.25 of 1")] == ["too short"]
    assert any(line.startswith("feedback 1 of 1") for line in lines)
    assert [one["score"] for one in bardo("log", "show", "req_ddd", "--json").json["feedback"]] == [0.25, 1]
    assert "feedback" not in bardo("log", "show", "req_ccc").out
    with LogReader(log_path(Settings())) as reader:
        assert [one.comment for one in reader.feedback("req_ddd444")] == ["too short", None]
        assert reader.feedback("req_ddd") == []


def test_the_receipt_of_a_call_is_told_in_words() -> None:
    lines = [" ".join(line.split()) for line in bardo("log", "show", "req_aaa").out.splitlines()]
    assert "thinking asked high" in lines
    assert 'thinking sent medium as {"output_config":{"effort":"medium"}}' in lines
    assert "decided by L1, the server itself: nearest level (the nearest level the model offers)" in lines
    assert "seen 29 tokens estimated, its text (visible)" in lines
    assert "verdict clamped: another amount was sent than asked for" in lines
    assert "verdict" not in bardo("log", "show", "req_ccc").out


def test_a_verdict_there_is_not_is_refused() -> None:
    ran = bardo("log", "--verdict", "nice")
    assert ran.code == 2
    assert "contradicted" in ran.err


def test_the_verdicts_to_choose_from_are_all_there_are() -> None:
    assert [one.value for one in VerdictName] == list(get_args(Verdict)) == list(VERDICTS)


def test_the_operations_to_choose_from_are_all_there_are() -> None:
    assert [one.value for one in OperationName] == list(get_args(Operation))


def test_an_id_that_fits_none_or_several_is_said() -> None:
    assert bardo("log", "show", "nix").code == 2
    ran = bardo("log", "show", "req_aa")
    assert ran.code == 2
    assert "several requests begin with" in ran.err


def test_nothing_that_matches_is_said_and_is_no_error() -> None:
    ran = bardo("log", "--provider", "none")
    assert (ran.code, ran.out, ran.err) == (0, "", "no calls that match\n")


def test_no_log_is_said_with_its_path(folder: Path) -> None:
    (folder / "bardo.toml").write_text('[log]\npath = "elsewhere.db"\n')
    ran = bardo("log")
    assert ran.code == 2
    assert "elsewhere.db" in ran.err


def test_new_calls_are_followed_until_interrupted() -> None:
    with running("log", "--follow", "--limit", "1", "--outcome", "ok", "--json") as process:
        assert '"req_ccc333"' in line_with(process.stdout, "request_id")
        with LogWriter(log_path(Settings())) as log:
            log.write(LogRow(request_id="req_bad", started_at=NOW, outcome="broken"))
            log.write(LogRow(request_id="req_new", started_at=NOW))
        assert '"req_new"' in line_with(process.stdout, "request_id")
        assert ended(process, signal.SIGINT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_costs_are_by_provider_and_model_and_unknown_is_not_zero() -> None:
    ran = bardo("costs")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["lab", "claude", "1", "0", "1,200", "40", "~29", "$0.25", "–"] in lines
    assert ["nobody", "–", "1", "1", "–", "–", "–", "unknown", "–"] in lines
    assert "3 calls, cost $0.25 for the 1 whose cost is known\n" in ran.out


def test_costs_as_json_and_since() -> None:
    found = bardo("costs", "--json").json
    assert (found["calls"], found["cost_usd"], found["cost_known"]) == (3, 0.25, 1)
    recent = bardo("costs", "--json", "--since", "1w").json
    assert (recent["calls"], recent["cost_usd"]) == (2, None)
    assert "cost unknown" in bardo("costs", "--since", "1w").out


def test_costs_of_caches_say_what_was_saved_and_which_prompts_are_never_cached() -> None:
    why = "the system prompt differs in every call from about character 0 on"
    usual: dict[str, Any] = {"provider": "lab", "model": "claude", "input_tokens": 1000, "cached_input_tokens": 400}
    with LogWriter(log_path(Settings())) as log:
        for number in range(3):
            lost = ({"what": "prompt_cache", "why": why},) if number else ()
            saved = {"cache_saved_nanos": 250_000_000, "key_id": "team", "degraded": lost}
            log.write(LogRow(request_id=f"req_c{number}", started_at=NOW, **usual, **saved))  # type: ignore[arg-type]
    ran = bardo("costs", "--cache")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ["lab", "claude", "team", "3", "3,000", "1,200", "(40%)", "–", "$0.75"] in lines
    assert f"lab/claude, key team: 2 calls whose prompt begins anew: {why}" in ran.out
    found = {(one["model"], one["key_id"]): one for one in bardo("costs", "--cache", "--json").json["totals"]}
    team = found["claude", "team"]
    assert (team["saved_nanos"], team["changing"], team["why"]) == (750_000_000, 2, why)
    assert found["claude", None]["saved_nanos"] is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [("90s", 9910.0), ("2m", 9880.0), ("1.5h", 4600.0), ("2 M", 9880.0), ("1d", -76400.0), (None, None)],
)
def test_since_counts_back(written: str | None, expected: float | None) -> None:
    assert since_time(written, 10_000.0) == expected


def test_since_takes_a_date_and_refuses_what_it_does_not_understand() -> None:
    assert since_time("2026-01-31T18:00:00+00:00", 0.0) == 1769882400.0
    with pytest.raises(InvalidRequest, match="does not understand 'yesterday'"):
        since_time("yesterday", 0.0)


HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b1m\u202egpt\r\nreq_forged  now"


@pytest.mark.parametrize(
    "command",
    ["log", "log --json", "log show req_1", "log show req_1 --json", "costs", "costs --json", "log show nobody"],
)
def test_no_name_or_message_in_the_log_plays_with_the_terminal(command: str) -> None:
    write_log(
        [
            LogRow(
                request_id="req_1",
                started_at=1.0,
                outcome="error",
                model=HOSTILE,
                model_asked=HOSTILE,
                provider=HOSTILE,
                client_dialect=HOSTILE,
                provider_dialect=HOSTILE,
                error_class=HOSTILE,
                error_message=HOSTILE,
                finish_raw=HOSTILE,
                finish_reason=HOSTILE,
                visibility=HOSTILE,
                request_content=HOSTILE,
                reply_content=HOSTILE,
            )
        ]
    )
    ran = bardo(*command.split())
    shown = ran.out + ran.err
    assert all(letter.isprintable() or letter in "\n\t" for letter in shown)
    if "--json" in command:
        assert HOSTILE in texts(ran.json), "for a program nothing is changed"
    elif command in ("log", "costs"):
        assert not any(line.startswith("req_forged") for line in shown.splitlines())


def texts(value: Any) -> list[str]:
    """Return every text of a JSON value."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    return [value] if isinstance(value, str) else []
