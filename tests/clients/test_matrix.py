"""Each client asks in each mode over providers of four dialects, which refuse what the real ones refuse.

A client asks plainly, streams, runs a loop with a tool in which the thinking comes back, asks for a typed value, and is refused.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.stores.replay_store import ReplayKeeper
from bardo.adapters.stores.response_store import ResponseStore
from bardo.adapters.stores.state import MemoryStore
from bardo.simulators import Conversation, Script, ToolCall, Turn
from bardo.simulators.script import answer
from clients.installed import NpmPackages, PipPackages
from clients.matrix import CLIENTS, PROVIDERS, Client, notes, table
from clients.test_run_agents import thinking_back, tool_results
from docs.test_examples import ROOT
from support.any_model import Simulator
from support.gateway import House, house, model_of

PROGRAMS = Path(__file__).with_name("programs")
PAGE = ROOT / "docs" / "reference" / "clients.md"
SAID = "This is a simulated answer to: What is the longest river of France?"
REPORTED = re.compile(r"The tool says: .*sunny in Paris.*", re.DOTALL)
CITY = {"name": "Paris", "population": 1}
REFUSAL = "The request was invalid."
# By day the SDKs that the tests have anyway, and of the others a sample.
OWN = [pytest.param(client, id=client.program) for client in CLIENTS if client.packages is None]
OTHERS = [
    pytest.param(client, id=client.program, marks=pytest.mark.sampled(2))
    for client in CLIENTS
    if client.packages is not None
]
_NOWHERE = "http://127.0.0.1:9"
_PATIENCE = 270.0


def in_own_words(conversation: Conversation) -> Turn:
    """Return what a model says to the prompts of frameworks that ask for a form of their own, else the usual."""
    question = conversation.question
    if question.startswith("[[ ## question ## ]]"):
        return Turn(text=json.dumps({"city": CITY}), reasoning="The form is given.")
    if question.startswith("Observation:"):
        final = ToolCall("final_answer", {"answer": "The tool says: sunny in Paris"})
        return Turn(reasoning="The tool has answered.", tool_calls=(final,))
    return answer(conversation)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("client", [*OWN, *OTHERS])
def test_a_client_in_each_mode_over_each_dialect(client: Client, tmp_path: Path) -> None:
    command = command_of(client, tmp_path)
    simulators = [Simulator(name, script=Script(otherwise=in_own_words)) for name in PROVIDERS]
    keeper = ReplayKeeper(MemoryStore())
    responses = ResponseStore(MemoryStore())
    with closing(keeper), closing(responses), house(simulators, replay=keeper, responses=responses) as running:
        models = [model_of(name) for name in PROVIDERS]
        done = run([*command, running.address, *models], tmp_path)
        loops = {name: list(requests_with_results(running, name)) for name in PROVIDERS}
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-3000:]
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"model"')]
    assert [(one["model"], one["mode"]) for one in results] == [(m, mode) for m in models for mode in client.modes]
    assert [one for one in results if not is_right(one)] == []
    if "tools" in client.modes and not client.no_thinking_back:
        for name, bodies in loops.items():
            assert bodies, f"no result of a tool came to {name}"
            assert all(list(thinking_back(name, body)) for body in bodies), (name, bodies)


def is_right(told: dict[str, Any]) -> bool:
    """Return whether a line that a program printed is what its mode asked for."""
    result = told.get("result")
    match told["mode"]:
        case "plain":
            return bool(result == SAID)
        case "stream":
            return isinstance(result, list) and "".join(result) == SAID and len(result) > 3
        case "tools":
            return isinstance(result, str) and REPORTED.fullmatch(result) is not None
        case "structured":
            return bool(result == CITY)
        case _:
            return REFUSAL in told.get("message", "")


def requests_with_results(running: House, name: str) -> Iterator[Any]:
    """Return the requests that brought a provider the result of a tool."""
    for incoming in running.arrived(name):
        body: Any = incoming.body
        # OpenAI is also asked over Chat Completions, which gives no thinking back, for calls that lose nothing by it.
        if isinstance(body.get("input"), str) or (name == "openai_responses" and "input" not in body):
            continue
        if list(tool_results(name, body)):
            yield body


def command_of(client: Client, folder: Path) -> list[str]:
    """Return how a client's program is run in `folder`; the test is skipped where its packages cannot be had."""
    for program in PROGRAMS.iterdir():
        if program.suffix in (".py", ".mjs"):
            shutil.copy(program, folder)
    match client.packages:
        case None:
            return [sys.executable, client.program]
        case PipPackages():
            return [client.packages.python(), client.program]
        case NpmPackages():
            if why := client.packages.install():
                pytest.skip(why)
            (folder / "node_modules").symlink_to(client.packages.folder / "node_modules")
            return [shutil.which("node") or "node", client.program]


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, with no network but this machine's."""
    outside = {"HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
    return subprocess.run(
        command,
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **outside, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )


def test_the_page_says_what_is_run() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert table() in text, "`python tests/clients/matrix.py` prints the table"
    assert notes() in text, "`python tests/clients/matrix.py` prints the list"
