"""A gateway that is killed with SIGKILL leaves a row for every call it had sent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from bardo.accounting.limits import day_number
from bardo.adapters.stores.log import CallSums, LogReader, LogRow, LogWriter
from bardo.services.accounts.usage import LogSpend
from bardo.simulators import Running, Script, Turn
from bardo.simulators.turns import Usage
from support.any_model import Simulator
from support.patience import PATIENCE, read_line
from support.talk import Answer, Caller, ask, body_for, path_for
from surfaces.cli.support import bardo

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL is POSIX")
OPEN_CALLS = 3
DONE_CALLS = 5


@dataclass
class Served:
    """A gateway in a process of its own."""

    process: subprocess.Popen[bytes]
    address: str

    def kill(self) -> None:
        """Kill it as `kill -9` does."""
        self.process.send_signal(signal.SIGKILL)
        assert self.process.wait(PATIENCE) == -signal.SIGKILL


@contextmanager
def serving(folder: Path, server: Running, further: str = "", **variables: str) -> Iterator[Served]:
    """Run `bardo serve` over one simulated provider, with its log in `folder`."""
    config = folder / "bardo.toml"
    config.write_text(
        f'[log]\npath = "{folder / "log.db"}"\n\n'
        f'[[providers]]\nid = "p"\npreset = "openai-compatible"\nbase_url = "{server.base_url}"\nmodels = ["m1"]\n\n{further}',
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "bardo", "serve", "--port", "0", "--config", str(config)]
    environment = {**os.environ, **variables}
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
    ) as process:
        try:
            yield Served(process, _address(process))
        finally:
            process.kill()


def _address(process: subprocess.Popen[bytes]) -> str:
    while line := read_line(process.stderr):
        if "listens on" in line:
            return line.split("listens on ")[1].split()[0]
    raise AssertionError("the gateway did not start")


def rows_after_the_next_start(folder: Path) -> list[LogRow]:
    """Return the rows of the log once another process has opened it."""
    LogWriter(folder / "log.db").close()
    with LogReader(folder / "log.db") as reader:
        rows = reader.recent(1_000)[::-1]
        summed = CallSums()
        for group in reader.costs():
            summed.add(group.sums)
    of_rows = CallSums()
    for row in rows:
        of_rows.take(row)
    assert (summed.calls, summed.failed, summed.output_tokens) == (len(rows), of_rows.failed, of_rows.output_tokens)
    assert (summed.cost_nanos, summed.cost_known, summed.parts) == (
        of_rows.cost_nanos,
        of_rows.cost_known,
        of_rows.parts,
    )
    return rows


def test_a_gateway_killed_again_and_again_counts_each_call_once(tmp_path: Path) -> None:
    random, asked = Random(7), 0
    price = '[[prices]]\nmatch = ["m1"]\ninput = 3.0\noutput = 15.0\nfrom = 2026-01-01\n'
    for _ in range(5):
        with Simulator("vllm", models=("m1",)).running() as server, serving(tmp_path, server, price) as gateway:
            for _ in range(random.randrange(1, 12)):
                assert ask(gateway.address, "openai_chat", "p/m1", stream=random.random() < 0.5).status == 200
                asked += 1
            gateway.kill()
    rows = rows_after_the_next_start(tmp_path)
    assert len(rows) == asked == len({row.request_id for row in rows})
    answered = [row for row in rows if row.outcome == "ok"]
    assert answered
    assert all(row.cost_nanos and sum((row.cost_parts or {}).values()) == row.cost_nanos for row in answered)


@pytest.mark.nightly
def test_a_gateway_killed_in_mid_stream_has_a_row_for_every_stream(tmp_path: Path) -> None:
    simulator = Simulator("vllm", models=("m1",))
    with simulator.running() as server, serving(tmp_path, server) as gateway:
        for _ in range(DONE_CALLS):
            assert ask(gateway.address, "openai_chat", "p/m1", stream=True).status == 200
        gate = simulator.hold(after=3)
        with ExitStack() as stack:
            for number in range(OPEN_CALLS):
                client = ("openai_chat", "anthropic_messages", "gemini")[number]
                path, body = path_for(client, "p/m1", stream=True), body_for(client, "p/m1", stream=True)
                caller = stack.enter_context(Caller(gateway.address, path, body))
                caller.hear(b"data: ")
            gateway.kill()
        gate.release()
    rows = rows_after_the_next_start(tmp_path)
    assert [row.outcome for row in rows].count("ok") == DONE_CALLS
    lost = [row for row in rows if row.error_class == "ProcessEnded"]
    assert sorted(row.client_dialect for row in lost) == ["anthropic_messages", "gemini", "openai_chat"]
    assert len(rows) == DONE_CALLS + OPEN_CALLS == len({row.request_id for row in rows})
    assert {(row.provider, row.model, row.streamed) for row in lost} == {("p", "m1", True)}


def test_calls_in_flight_at_a_kill_count_in_the_budget_of_their_key(tmp_path: Path) -> None:
    simulator = Simulator("vllm", models=("m1",))
    further = (
        '[[prices]]\nmatch = ["m1"]\ninput = 3.0\noutput = 15.0\n\n'
        '[[keys]]\nid = "team"\nkey_env = "TEAM_KEY"\nusd_per_day = 5\n'
    )
    with simulator.running() as server:
        gate = simulator.hold()
        body = body_for("openai_chat", "p/m1") | {"max_tokens": 32_000}
        with serving(tmp_path, server, further, TEAM_KEY="k" * 20) as gateway, ExitStack() as stack:
            before = len(server.requests)
            for _ in range(OPEN_CALLS):
                path = path_for("openai_chat", "p/m1")
                stack.enter_context(Caller(gateway.address, path, body, key="k" * 20))
            _wait_for(server, before + OPEN_CALLS)
            gateway.kill()
        gate.release()
    rows = rows_after_the_next_start(tmp_path)
    assert [row.error_class for row in rows] == ["ProcessEnded"] * OPEN_CALLS
    spent = LogSpend(tmp_path / "log.db")
    today = day_number(rows[0].started_at)
    for row in rows:
        assert row.tokens_approx
        assert row.input_tokens
        # What an answer is taken to have of which nobody knows more, and not all that it might have had.
        assert row.cost_nanos == row.input_tokens * 3_000 + 1_000 * 15_000
        assert sum((row.cost_parts or {}).values()) == row.cost_nanos
    assert spent("team", today, today) == sum(row.cost_nanos or 0 for row in rows)
    spent.close()


def test_a_stream_in_flight_at_a_kill_counts_what_had_come_of_it(tmp_path: Path) -> None:
    text = "".join(f"w{place:06} " for place in range(3_000))  # Each of them is one event.
    script = Script(turns=(Turn(text=text, usage=Usage(input_tokens=10, answer_tokens=9_000)),))
    simulator = Simulator("vllm", models=("m1",), script=script)
    further = (
        '[[prices]]\nmatch = ["m1"]\ninput = 3.0\noutput = 15.0\n\n'
        '[[keys]]\nid = "team"\nkey_env = "TEAM_KEY"\nusd_per_day = 5\n'
    )
    with simulator.running() as server:
        gate = simulator.hold(after=2_000)
        path, body = path_for("openai_chat", "p/m1", stream=True), body_for("openai_chat", "p/m1", stream=True)
        with (
            serving(tmp_path, server, further, TEAM_KEY="k" * 20) as gateway,
            Caller(gateway.address, path, body, key="k" * 20) as caller,
        ):
            caller.hear(b"w001500")
            gateway.kill()
        gate.release()
    (row,) = rows_after_the_next_start(tmp_path)
    assert (row.error_class, row.tokens_approx) == ("ProcessEnded", True)
    assert row.output_tokens is not None
    assert row.output_tokens > 2_000
    assert row.cost_nanos == (row.input_tokens or 0) * 3_000 + row.output_tokens * 15_000


def test_a_gateway_killed_in_mid_call_has_a_row_for_every_call(tmp_path: Path) -> None:
    simulator = Simulator("vllm", models=("m1",))
    with simulator.running() as server, serving(tmp_path, server) as gateway:
        for _ in range(DONE_CALLS):
            assert ask(gateway.address, "anthropic_messages", "p/m1").status == 200
        gate = simulator.hold()
        body = body_for("openai_chat", "p/m1")
        with ExitStack() as stack:
            before = len(server.requests)
            for _ in range(OPEN_CALLS):
                stack.enter_context(Caller(gateway.address, path_for("openai_chat", "p/m1"), body))
            _wait_for(server, before + OPEN_CALLS)
            gateway.kill()
        gate.release()
    rows = rows_after_the_next_start(tmp_path)
    assert [row.outcome for row in rows].count("ok") == DONE_CALLS
    assert [row.error_class for row in rows].count("ProcessEnded") == OPEN_CALLS
    assert len(rows) == DONE_CALLS + OPEN_CALLS == len({row.request_id for row in rows})


def _wait_for(server: Running, count: int) -> None:
    """Wait until so many requests have reached the provider."""
    waiting = threading.Event()
    for _ in range(int(PATIENCE / 0.02)):
        if len(server.requests) >= count:
            return
        waiting.wait(0.02)
    raise AssertionError(f"{len(server.requests)} requests came, and {count} were to come")


def test_answers_that_clients_have_are_in_the_log_whenever_the_gateway_is_killed(tmp_path: Path) -> None:
    answers: list[Answer] = []
    with Simulator("vllm", models=("m1",)).running() as server, serving(tmp_path, server) as gateway:
        answers = [ask(gateway.address, "openai_chat", "p/m1") for _ in range(40)]
        gateway.kill()
    ids = {answer.headers["x-bardo-request-id"] for answer in answers}
    config = str(tmp_path / "bardo.toml")
    listed = bardo("log", "--limit", "100", "--json", "--config", config).json
    assert {row["request_id"] for row in listed} == ids
    assert sum(one["calls"] for one in bardo("costs", "--json", "--config", config).json["totals"]) == len(ids)
    assert bardo("log", "show", min(ids), "--config", config).code == 0
    rows = rows_after_the_next_start(tmp_path)
    assert {row.request_id for row in rows} == ids
    assert len(rows) == len(ids)
    assert {row.outcome for row in rows} == {"ok"}
    assert all(row.output_tokens is not None for row in rows)


def test_a_gateway_that_starts_again_finds_them_itself(tmp_path: Path) -> None:
    simulator = Simulator("vllm", models=("m1",))
    with simulator.running() as server:
        with serving(tmp_path, server) as gateway:
            gate = simulator.hold(after=2)
            path, body = path_for("openai_chat", "p/m1", stream=True), body_for("openai_chat", "p/m1", stream=True)
            with Caller(gateway.address, path, body) as caller:
                caller.hear(b"data: ")
                gateway.kill()
            gate.release()
        with serving(tmp_path, server) as again:
            assert ask(again.address, "openai_chat", "p/m1").status == 200
            again.process.send_signal(signal.SIGTERM)
            again.process.wait(PATIENCE)
    with LogReader(tmp_path / "log.db") as reader:
        assert sorted(row.outcome for row in reader.recent(10)) == ["broken", "ok"]
    assert [*(tmp_path / "log.db.calls").iterdir()] == []
