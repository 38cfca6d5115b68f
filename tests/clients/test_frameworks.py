"""Frameworks run a tool over providers of each dialect, which refuse what the real ones refuse: the thinking comes back in its own form."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from bardo.simulators import Script, ToolCall, Turn
from clients.installed import PYTHON_CLIENTS
from clients.test_run_agents import PROVIDERS, thinking_back, tool_results
from support.any_model import Simulator
from support.gateway import house, model_of

PROGRAMS = Path(__file__).with_name("programs")
# How many loops a program runs with each model.
LOOPS = {"langchain_loop": 4, "openai_agents_loop": 2, "pydantic_ai_loop": 2}
_PATIENCE = 240.0


@pytest.mark.timeout(280)
@pytest.mark.nightly
@pytest.mark.parametrize("program", LOOPS)
def test_a_framework_gives_thinking_back_with_the_result(program: str, tmp_path: Path) -> None:
    python = PYTHON_CLIENTS.python()
    call = ToolCall("weather", {"city": "Paris"})
    first = Turn(text="I look.", reasoning="A tool is needed.", tool_calls=(call,))
    script = Script((first, Turn(text="The answer is forty-two.", reasoning="That is it.")))
    with house([Simulator(name, script=script) for name in PROVIDERS]) as running:
        models = [model_of(name) for name in PROVIDERS]
        done = subprocess.run(
            [python, PROGRAMS / f"{program}.py", running.address, *models],
            cwd=tmp_path,
            env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            check=False,
        )
        arrived = {name: [one.body for one in running.arrived(name)] for name in PROVIDERS}
    assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-2000:]
    assert done.stdout.splitlines() == ["The answer is forty-two."] * LOOPS[program] * len(PROVIDERS)
    for name, bodies in arrived.items():
        assert len(bodies) == 2 * LOOPS[program]
        for body in bodies[1::2]:
            assert "sunny in Paris" in str(list(tool_results(name, body)))
            assert list(thinking_back(name, body)), (name, body)
