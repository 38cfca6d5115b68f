"""Coding agents in the modes that their users put them into, over providers of four dialects, which refuse what the real ones refuse."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Fault, Incoming, Script, ToolCall, Turn, Usage
from bardo.simulators.delivery import Action, AwaitDisconnect
from clients.agent_matrix import MODES, PICTURE, WAYS, Ways, notes, table
from clients.agents import start_agent
from clients.matrix import PROVIDERS
from clients.test_run_agents import thinking_back, tool_results
from docs.test_examples import ROOT
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.patience import PATIENCE

MARK = "written-in-the-note"
OTHER_MARK = "written-in-the-other-note"
QUESTION = "What is in note.txt?"
THOUGHT = "A command is needed."
SUMMARY = "The user wants the note read. It says forty-two."
ANSWER = Turn(text="The answer is forty-two.", reasoning="That is it.")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
# The events before the middle of the call: Gemini writes its arguments in one, the others in many.
CALL_BEGUN = {"gemini": 1}
# The field that holds a picture, and the one with its media type.
PICTURE_FIELDS = {
    "anthropic": ("data", "media_type"),
    "deepseek": ("url", ""),
    "gemini": ("data", "mimeType"),
    "openai_responses": ("image_url", ""),
}
_PATIENCE = 200.0


class StallingSimulator(Simulator):
    """A simulator that tells when a reply that stalls has sent what it sends."""

    def __init__(self, preset: str, **options: Any) -> None:
        super().__init__(preset, **options)
        self.stalled = threading.Event()

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        for action in super().actions(incoming):
            if isinstance(action, AwaitDisconnect):
                self.stalled.set()
            yield action


@dataclass(frozen=True)
class Ended:
    """What an agent printed, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def shown(self) -> str:
        return self.out + self.err


@dataclass(frozen=True)
class Cell:
    """An agent and a simulated provider, with a running gateway between them."""

    ways: Ways
    provider: str
    simulator: StallingSimulator
    running: House
    folder: Path

    @property
    def asked(self) -> list[Any]:
        """The bodies that came to the provider, oldest first."""
        return [incoming.body for incoming in self.running.arrived(self.provider)]

    @property
    def statuses(self) -> list[int | None]:
        """The statuses that the agent was answered with."""
        return [row.status for row in self.running.log.rows]

    def call(self, command: str) -> ToolCall:
        return self.ways.agent.call(command)

    def start(self, question: str, *further: str) -> subprocess.Popen[str]:
        """Start the agent with a question; `further` are the arguments of a mode."""
        arguments = self.ways.arguments(question, *further)
        return start_agent(self.ways.agent, self.running.address, model_of(self.provider), arguments, self.folder)

    def ask(self, question: str, *further: str, works: bool = True) -> Ended:
        """Run the agent to its end; it `works` where its exit code says so."""
        ended = end_of(self.start(question, *further))
        assert not works or ended.code == 0, ended.shown[-3000:]
        return ended


def end_of(process: subprocess.Popen[str]) -> Ended:
    """Wait for the end of an agent, and of what it started."""
    try:
        out, err = process.communicate(timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return Ended(process.returncode, out, err)


@contextmanager
def cell(
    name: str, provider: str, folder: Path, turns: Callable[[Ways], tuple[Turn, ...]], *, in_order: bool = False
) -> Iterator[Cell]:
    """Run a gateway over a provider whose model says these turns, and write two notes and a picture for the agent."""
    work = folder / "work"
    work.mkdir()
    (work / "note.txt").write_text(MARK)
    (work / "other.txt").write_text(OTHER_MARK)
    (work / PICTURE).write_bytes(b64decode(PNG))
    simulator = StallingSimulator(provider, script=Script(turns(WAYS[name]), in_order=in_order))
    keeper = ReplayKeeper(MemoryStore())
    try:
        # Gemini CLI has its conversation summed up by gemini-3.1-pro-preview-customtools, also where another model is chosen.
        toml = f'[aliases]\n"gemini-3*" = "{model_of(provider)}"'
        with house([simulator], replay=keeper, gateway={"max_body_bytes": 8_000_000}, toml=toml) as running:
            yield Cell(WAYS[name], provider, simulator, running, folder)
    finally:
        keeper.close()


def looks(ways: Ways, *commands: str, **more: Any) -> Turn:
    """Return the turn in which a model runs commands."""
    return Turn(text="I look.", tool_calls=tuple(map(ways.agent.call, commands)), **more)


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects of a JSON value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects_in(inner)


def each_agent(mode: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Run a test for each agent that has this mode, over each provider: by day one cell."""
    names = [name for name, ways in WAYS.items() if mode not in ways.left_out]

    def marked(test: Callable[..., None]) -> Callable[..., None]:
        for mark in (
            pytest.mark.parametrize("provider", PROVIDERS),
            pytest.mark.parametrize("name", names),
            pytest.mark.sampled(1),
            pytest.mark.timeout(480),
        ):
            test = mark(test)
        return test

    return marked


@each_agent("parallel")
def test_an_agent_runs_two_calls_of_one_turn(name: str, provider: str, tmp_path: Path) -> None:
    turns = lambda ways: (looks(ways, "cat note.txt", "cat other.txt", reasoning=THOUGHT), ANSWER)  # noqa: E731
    with cell(name, provider, tmp_path, turns) as one:
        assert "forty-two" in one.ask(QUESTION).out
        [last] = [body for body in one.asked if OTHER_MARK in json.dumps(list(tool_results(provider, body)))]
    assert MARK in json.dumps(list(tool_results(provider, last)))
    assert list(thinking_back(provider, last))


@each_agent("cut")
def test_an_agent_runs_no_half_of_a_call_that_was_cut(name: str, provider: str, tmp_path: Path) -> None:
    command = f"echo half >> half.txt; true {'x' * 400}; echo whole >> whole.txt"
    cut = Fault("cut", after=CALL_BEGUN.get(provider, 14))
    turns = lambda ways: (looks(ways, command, fault=cut), looks(ways, command), ANSWER)  # noqa: E731
    with cell(name, provider, tmp_path, turns, in_order=True) as one:
        stops = one.ways.stops_when_cut
        ended = one.ask(QUESTION, works=not stops)
        assert ("broke off its reply" if stops else "forty-two") in ended.shown
        assert one.running.log.wait(lambda row: row.outcome == "broken")
    # What ran, if anything, is the second call, once and whole.
    ran = sorted(file.read_text() for file in (tmp_path / "work").glob("[hw]*.txt"))
    assert ran == ([] if stops else ["half\n", "whole\n"])


@each_agent("resume")
def test_an_agent_goes_on_with_the_conversation_of_an_earlier_run(name: str, provider: str, tmp_path: Path) -> None:
    later = Turn(text="It is forty-three.", reasoning="Once more.")
    turns = lambda ways: (looks(ways, "cat note.txt", reasoning=THOUGHT), ANSWER, later)  # noqa: E731
    with cell(name, provider, tmp_path, turns) as one:
        assert "forty-two" in one.ask(QUESTION).out
        assert "forty-three" in one.ask("And the next one?", *one.ways.resume).out
        last = one.asked[-1]
    assert MARK in json.dumps(list(tool_results(provider, last)))
    assert QUESTION in json.dumps(last)
    assert list(thinking_back(provider, last))


@each_agent("interrupted")
def test_the_user_interrupts_an_agent(name: str, provider: str, tmp_path: Path) -> None:
    stalls = Turn(text="The answer is long, and never comes to its end.", fault=Fault("stall", after=5))
    with cell(name, provider, tmp_path, lambda _: (stalls, ANSWER), in_order=True) as one:
        process = one.start(QUESTION)
        assert one.simulator.stalled.wait(PATIENCE)
        os.killpg(process.pid, signal.SIGINT)
        end_of(process)
        assert one.running.log.wait(lambda row: row.outcome == "cancelled")
        assert "forty-two" in one.ask(QUESTION).out


@each_agent("compacted")
def test_an_agent_goes_on_from_its_own_summary(name: str, provider: str, tmp_path: Path) -> None:
    # Claude Code is told to, Gemini CLI does it in a later run from a share of its window on, the others when so many tokens were counted.
    counted = Usage(input_tokens=195_000, answer_tokens=2_000, reasoning_tokens=10)
    summed_up = {
        "claude": (ANSWER, Turn(text=SUMMARY)),
        # It has its summary looked over.
        "gemini": (ANSWER, Turn(text=SUMMARY), Turn(text=SUMMARY)),
    }
    usage = None if name in summed_up else counted
    limit = ("-c", "model_auto_compact_token_limit=20000") if name == "codex" else ()

    def turns(ways: Ways) -> tuple[Turn, ...]:
        return looks(ways, "cat note.txt", usage=usage), *summed_up.get(name, (Turn(text=SUMMARY),)), ANSWER

    with cell(name, provider, tmp_path, turns, in_order=True) as one:
        assert "forty-two" in one.ask(QUESTION, *limit).out
        if name == "claude":
            one.ask("/compact", *one.ways.resume)
        if name == "gemini":
            settings = tmp_path / "home" / one.ways.agent.own_settings[0]
            own = json.loads(settings.read_text())
            settings.write_text(json.dumps({**own, "model": {"compressionThreshold": 0.00001}}))
        if name in summed_up:
            assert "forty-two" in one.ask("And then?", *one.ways.resume).out
        last = json.dumps(one.asked[-1])
        assert set(one.statuses) == {200}
    assert SUMMARY in last
    assert MARK not in last


@each_agent("picture")
def test_an_agent_shows_a_picture(name: str, provider: str, tmp_path: Path) -> None:
    def turns(ways: Ways) -> tuple[Turn, ...]:
        opened = ToolCall(ways.opens_picture, {"file_path": str(tmp_path / "work" / PICTURE)})
        return (Turn(tool_calls=(opened,)), ANSWER) if ways.opens_picture else (ANSWER,)

    with cell(name, provider, tmp_path, turns) as one:
        assert "forty-two" in one.ask(f"What is in the picture?{one.ways.names_picture}", *one.ways.picture).out
        last = one.asked[-1]
    field, media_type = PICTURE_FIELDS[provider]
    pictures = [
        held for held in objects_in(last) if str(held.get(field)).startswith(("iVBOR", "data:image/png;base64,iVBOR"))
    ]
    assert pictures
    assert not media_type or {held[media_type] for held in pictures} == {"image/png"}


@each_agent("401")
def test_an_agent_shows_that_a_key_is_refused(name: str, provider: str, tmp_path: Path) -> None:
    refused = Turn(text="Never said.", fault=Fault("status", status=401))
    with cell(name, provider, tmp_path, lambda _: (refused,)) as one:
        ended = one.ask(QUESTION, works=False)
    assert "Incorrect API key provided" in ended.shown, ended.shown[-3000:]


@each_agent("429")
def test_an_agent_waits_for_a_busy_provider(name: str, provider: str, tmp_path: Path) -> None:
    busy = Turn(text="Never said.", fault=Fault("status", status=429, retry_after=1))
    is_asked_again(name, provider, tmp_path, busy)


@each_agent("overloaded")
def test_an_agent_asks_an_overloaded_provider_again(name: str, provider: str, tmp_path: Path) -> None:
    overloaded = Turn(text="Never said.", fault=Fault("status", status=529 if provider == "anthropic" else 503))
    is_asked_again(name, provider, tmp_path, overloaded)


def is_asked_again(name: str, provider: str, folder: Path, fails: Turn) -> None:
    """See that a provider fails more often than bardo asks it by itself, and that its agent is answered in the end."""
    with cell(name, provider, folder, lambda _: (fails, fails, fails, ANSWER), in_order=True) as one:
        assert "forty-two" in one.ask(QUESTION).out
        [*before, last] = one.statuses
    assert last == 200
    assert before, "bardo's own tries were enough"


def test_the_page_says_what_agents_are_put_through() -> None:
    page = (ROOT / "docs" / "reference" / "clients.md").read_text(encoding="utf-8")
    assert table() in page, "`python tests/clients/agent_matrix.py` prints the table"
    assert notes() in page, "`python tests/clients/agent_matrix.py` prints the list"
    assert {mode for ways in WAYS.values() for mode in ways.left_out} <= MODES.keys()
