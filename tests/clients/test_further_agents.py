"""Further coding agents over providers of four dialects, which refuse what the real ones refuse: their loop of tools, and each mode."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.stores.log import LogReader
from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Fault, Script, Turn
from clients.further_agents import FURTHER_AGENTS, MODES, PICTURE, FurtherAgent, environment_of, start, table
from clients.matrix import PROVIDERS
from clients.test_matrix import PAGE
from clients.test_run_agents import tool_results
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.talk import request
from surfaces.cli.support import simulated

NOTES = {"note.txt": "written-in-the-note", "other.txt": "written-in-the-other"}
QUESTION = "What is in note.txt?"
ANSWER = Turn(text="The answer is forty-two.", reasoning="That is it.")
LINES = 40
LONG = "; ".join(f"echo line-{number} >> made.txt" for number in range(LINES))
EDIT = "note.txt\n```\n<<<<<<< SEARCH\nwritten-in-the-note\n=======\nfound-by-the-model\n>>>>>>> REPLACE\n```\n"
_LIMIT = 240.0
WITH_TOOLS = [name for name, agent in FURTHER_AGENTS.items() if agent.tool]
# How many events go before the one that is broken off, so that it is one with arguments; Gemini sends a call in one.
_CALL_BEGUN = {"anthropic": 4, "deepseek": 4, "gemini": 0, "openai_responses": 6}

pytestmark = pytest.mark.timeout(600)


@dataclass(frozen=True)
class Cell:
    """An agent, and a running gateway over a provider whose model it asks."""

    agent: FurtherAgent
    provider: str
    simulator: Simulator
    running: House
    folder: Path

    def begin(self, *arguments: str) -> subprocess.Popen[str]:
        """Start the agent with these arguments."""
        return start(self.agent, self.running.address, model_of(self.provider), arguments, self.folder)

    def ask(self, question: str, *further: str) -> tuple[int, str]:
        """Return the exit code of the agent and what it printed; `further` are the arguments of a mode."""
        process = self.begin(*self.agent.command_line(question, *further))
        with process:
            try:
                out, _ = process.communicate(timeout=_LIMIT)
            finally:
                process.kill()
        return process.returncode, out

    @property
    def asked(self) -> list[Any]:
        """The bodies that reached the provider, oldest first."""
        return [incoming.body for incoming in self.running.arrived(self.provider)]


@contextmanager
def cell(name: str, provider: str, folder: Path, *turns: Turn, fault: Fault | None = None) -> Iterator[Cell]:
    """Run a gateway over a provider whose model says these turns, in a folder with two notes and a picture."""
    written(folder)
    simulator = Simulator(provider, script=Script(turns), fault=fault)
    keeper = ReplayKeeper(MemoryStore())
    with house([simulator], replay=keeper) as running:
        yield Cell(FURTHER_AGENTS[name], provider, simulator, running, folder)
    keeper.close()


def picture() -> bytes:
    """Return a picture of one colour, 16 by 16, as PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    lines = zlib.compress((b"\0" + b"\xc0\x20\x20" * 16) * 16)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", lines) + chunk(b"IEND", b"")


def written(folder: Path) -> None:
    """Write what an agent may read."""
    (folder / "work").mkdir()
    for name, text in NOTES.items():
        (folder / "work" / name).write_text(text)
    (folder / "work" / PICTURE).write_bytes(picture())


def in_mode(mode: str) -> list[str]:
    """Return the agents that are run in a mode."""
    return [name for name, agent in FURTHER_AGENTS.items() if mode not in agent.left_out]


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", WITH_TOOLS)
def test_an_agent_reads_a_file_by_bardo_run(name: str, provider: str, tmp_path: Path) -> None:
    agent = FURTHER_AGENTS[name]
    turns = (Turn(text="I look.", reasoning="It is read.", tool_calls=(agent.call("cat note.txt"),)), ANSWER)
    code, out, asked, rows = by_bardo_run(agent, provider, turns, tmp_path)
    assert code == 0, out
    assert "forty-two" in out
    assert any(NOTES["note.txt"] in json.dumps(list(tool_results(provider, body))) for body in asked)
    assert {row.agent for row in rows} == {agent.known_as}
    assert {row.outcome for row in rows} == {"ok"}


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
def test_aider_edits_a_file_by_bardo_run(provider: str, tmp_path: Path) -> None:
    agent = FURTHER_AGENTS["aider"]
    code, out, _, rows = by_bardo_run(
        agent, provider, (Turn(text=EDIT),), tmp_path, "note.txt", "--edit-format", "diff"
    )
    assert code == 0, out
    assert (tmp_path / "work" / "note.txt").read_text() == "found-by-the-model\n"
    assert {row.outcome for row in rows} == {"ok"}


def by_bardo_run(
    agent: FurtherAgent, provider: str, turns: tuple[Turn, ...], folder: Path, *further: str
) -> tuple[int, str, list[Any], list[Any]]:
    """Ask an agent by `bardo run`: its exit code, what it printed, the bodies that reached the provider, and the rows of the log."""
    written(folder)
    own = environment_of(agent, folder)
    environment = {**own, "SIMULATED_KEY": "sk-simulated", "XDG_DATA_HOME": str(folder / "data")}
    with simulated(Simulator(provider, script=Script(turns)), folder=folder) as [server]:
        started = [sys.executable, "-m", "bardo", "run", "--own", "--config", str(folder / "bardo.toml")]
        chosen = ["--model", model_of(provider), agent.name, "--", *agent.command_line(QUESTION, *further)]
        done = subprocess.run(
            [*started, *chosen],
            cwd=folder / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_LIMIT,
            check=False,
        )
        asked = [one.body for one in server.requests if one.method == "POST"]
    with LogReader(next((folder / "data" / "bardo").rglob("*.db"))) as reader:
        return done.returncode, done.stdout + done.stderr, asked, reader.recent(50)


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", in_mode("parallel"))
def test_two_calls_of_one_turn_are_answered_together(name: str, provider: str, tmp_path: Path) -> None:
    agent = FURTHER_AGENTS[name]
    both = Turn(
        text="I look.", tool_calls=(agent.call("cat note.txt > one.txt"), agent.call("cat other.txt > two.txt"))
    )
    with cell(name, provider, tmp_path, both, ANSWER) as asking:
        code, out = asking.ask(QUESTION)
        counts = [len(list(tool_results(provider, body))) for body in asking.asked]
    assert code == 0, out
    assert "forty-two" in out
    assert [(tmp_path / "work" / name).read_text() for name in ("one.txt", "two.txt")] == [*NOTES.values()]
    assert 2 in counts


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", in_mode("cut"))
def test_a_call_that_is_cut_is_never_run_as_a_whole_one(name: str, provider: str, tmp_path: Path) -> None:
    fault = Fault("cut", after=_CALL_BEGUN[provider], times=1)
    turn = Turn(tool_calls=(FURTHER_AGENTS[name].call(LONG),), fault=fault)
    with cell(name, provider, tmp_path, turn, ANSWER) as asking:
        code, out = asking.ask("Write the file.")
        # Where nothing had reached the agent, bardo has asked again, and the agent knows nothing of it.
        assert len(asking.asked) > 2 or asking.running.log.wait(lambda row: row.outcome != "ok")
    made = tmp_path / "work" / "made.txt"
    if made.exists():
        assert len(made.read_text().splitlines()) == LINES
        assert "forty-two" in out
    else:
        assert code or "rror" in out or "terminated" in out, out


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", in_mode("resume"))
def test_a_second_question_goes_on_with_the_first(name: str, provider: str, tmp_path: Path) -> None:
    agent = FURTHER_AGENTS[name]
    calls = (agent.call("cat note.txt"),) if agent.tool else ()
    first = Turn(text="I look.", reasoning="It is read.", tool_calls=calls)
    with cell(name, provider, tmp_path, *([first] if calls else []), ANSWER) as asking:
        code, out = asking.ask(QUESTION)
        assert code == 0, out
        code, out = asking.ask("And what is in other.txt?", *agent.resume)
        last = [json.dumps(body) for body in asking.asked if "other.txt?" in json.dumps(body)]
        outcomes = {row.outcome for row in asking.running.log.rows}
    assert code == 0, out
    assert any(QUESTION in one and "forty-two" in one for one in last)
    assert outcomes == {"ok"}


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", in_mode("interrupted"))
def test_a_user_interrupts_a_reply_and_asks_again(name: str, provider: str, tmp_path: Path) -> None:
    agent = FURTHER_AGENTS[name]
    with cell(name, provider, tmp_path, Turn(text="A long answer that goes on. " * 20)) as asking:
        # Some agents look at the list of models first, which the provider would be asked for at the gate.
        request(asking.running.address, "GET", "/v1/models")
        gate = asking.simulator.hold(after=3)
        with asking.begin(*agent.command_line(QUESTION)) as process:
            gate.wait(_LIMIT)
            os.killpg(process.pid, signal.SIGINT)
            process.communicate(timeout=_LIMIT)
        assert asking.running.log.wait(lambda row: row.outcome == "cancelled")
        gate.release()
        asking.simulator.play(Script((ANSWER,)))
        code, out = asking.ask(QUESTION)
    assert code == 0, out
    assert "forty-two" in out


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", in_mode("picture"))
def test_a_picture_reaches_the_model(name: str, provider: str, tmp_path: Path) -> None:
    agent = FURTHER_AGENTS[name]
    opens = [Turn(tool_calls=(agent.opens_picture,))] if agent.opens_picture else []
    with cell(name, provider, tmp_path, *opens, ANSWER) as asking:
        code, out = asking.ask(f"{agent.mention}Which colour is it?", *agent.picture)
        shown = [json.dumps(body) for body in asking.asked]
    assert code == 0, out
    assert "forty-two" in out
    assert any('"image' in one or "inlineData" in one or "inline_data" in one or "input_image" in one for one in shown)


@pytest.mark.nightly
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", in_mode("401"))
def test_a_refused_key_is_shown(name: str, provider: str, tmp_path: Path) -> None:
    with cell(name, provider, tmp_path, ANSWER, fault=Fault("status", status=401)) as asking:
        _, out = asking.ask(QUESTION)
    assert "forty-two" not in out
    assert "key" in out.lower() or "auth" in out.lower(), out


@pytest.mark.nightly
@pytest.mark.parametrize("status", [429, 529])
@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("name", in_mode("429"))
def test_a_provider_that_is_busy_is_asked_again(name: str, provider: str, status: int, tmp_path: Path) -> None:
    fault = Fault("status", status=status, retry_after=1, times=4)
    with cell(name, provider, tmp_path, ANSWER, fault=fault) as asking:
        code, out = asking.ask(QUESTION)
        refused = [row for row in asking.running.log.rows if row.outcome != "ok"]
    assert code == 0, out
    assert "forty-two" in out
    assert refused, "the agent was never refused"


def test_the_page_says_what_is_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert table() in text, "`python tests/clients/further_agents.py` prints the table"
    for agent in FURTHER_AGENTS.values():
        assert agent.left_out.keys() <= set(MODES)
        assert all(why in " ".join(text.split()) for why in agent.left_out.values())
