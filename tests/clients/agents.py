"""Coding agents as subprocesses, started by `bardo run` or by themselves, with a home of their own and no network but this machine's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bardo.catalog.agent_rows import agent_rows
from bardo.simulators import ToolCall
from clients.installed import program

_PATIENCE = 200.0
# Nobody listens there, so that what an agent wants of the network beside its models fails at once.
_NOWHERE = "http://127.0.0.1:9"
_OUTSIDE = {"HTTP_PROXY": _NOWHERE, "HTTPS_PROXY": _NOWHERE, "NO_PROXY": "127.0.0.1,localhost"}
_CODEX = """
model = "{model}"
model_provider = "bardo"
{more}
[model_providers.bardo]
name = "{name}"
base_url = "{address}/v1"
env_key = "BARDO_API_KEY"
wire_api = "responses"
"""
_CODEX_ELSEWHERE = """
model = "elsewhere"
model_provider = "elsewhere"
[model_providers.elsewhere]
name = "elsewhere"
base_url = "http://127.0.0.1:9/v1"
wire_api = "responses"
"""


@dataclass(frozen=True)
class Agent:
    """How one agent is asked a question outside a terminal, allowed to run commands.

    `tool` is its tool that runs a command, `parameter` that tool's argument, `own_settings` a file below its home that leads elsewhere, or
    chooses how it signs in.
    """

    name: str
    tool: str
    parameter: str
    arguments: tuple[str, ...]
    own_settings: tuple[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)

    def call(self, command: str) -> ToolCall:
        """Return the model's call that runs a command."""
        described = {} if self.name == "codex" else {"description": "Reads the note"}
        return ToolCall(self.tool, {self.parameter: command, **described})


AGENTS = {
    agent.name: agent
    for agent in (
        Agent(
            "claude",
            "Bash",
            "command",
            ("--allowedTools", "Bash", "-p"),
            (
                ".claude/settings.json",
                '{"env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9", "ANTHROPIC_MODEL": "other"}}',
            ),
            {
                "MAX_THINKING_TOKENS": "2000",
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
            },
        ),
        Agent(
            "codex",
            "exec_command",
            "cmd",
            (
                *("-c", 'model_reasoning_effort="high"', "-c", "model_supports_reasoning_summaries=true"),
                *("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            ),
            (".codex/config.toml", _CODEX_ELSEWHERE),
        ),
        Agent(
            "gemini",
            "run_shell_command",
            "command",
            ("--yolo", "--skip-trust", "-p"),
            (".gemini/settings.json", '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'),
        ),
        Agent(
            "opencode",
            "bash",
            "command",
            ("run", "--variant", "high"),
            (
                ".config/opencode/opencode.json",
                '{"$schema": "https://opencode.ai/config.json", "model": "elsewhere/m"}',
            ),
            {"OPENCODE_DISABLE_MODELS_FETCH": "1", "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        ),
    )
}


@dataclass(frozen=True)
class Ran:
    """What an agent printed, and what was printed around it."""

    out: str
    err: str

    @property
    def gateway(self) -> str:
        """The address of the gateway that `bardo run` started."""
        found = re.search(r"a gateway of its own at (http://\S+)", self.err)
        assert found is not None, self.err
        return found[1]


def bardo_run(
    agent: Agent,
    model: str,
    question: str,
    folder: Path,
    environment: Mapping[str, str],
    *,
    options: tuple[str, ...] = (),
    fails: bool = False,
) -> Ran:
    """Ask an agent by `bardo run`, with the bardo.toml of `folder`; `options` go before its own, and `fails` says that it may fail."""
    path = os.pathsep.join((str(Path(program(agent.name)).parent), os.environ["PATH"]))
    settings = str(folder / "bardo.toml")
    started = (sys.executable, "-m", "bardo", "run", "--own", "--config", settings, "--model", model, agent.name, "--")
    known = {"PATH": path, **agent.environment, **environment}
    done = _run([*started, *options, *agent.arguments, question], folder, known, fails=fails)
    return Ran(done.stdout, done.stderr)


def start_agent(
    agent: Agent, address: str, model: str, arguments: Sequence[str], folder: Path
) -> subprocess.Popen[str]:
    """Start an agent as `bardo run` does with the gateway at `address`, in `folder`/work with `folder`/home as its home.

    It leads a group of its own, so that a signal reaches what it started too, as Ctrl-C of a terminal does.
    """
    own_file = folder / "home" / agent.own_settings[0]
    if not own_file.exists():
        own_file.parent.mkdir(parents=True)
        own_file.write_text(agent.own_settings[1])
    (folder / "work").mkdir(exist_ok=True)
    environment = {**at_home(folder), **agent.environment}
    start = agent_rows()[agent.name].start(arguments, environment, address=address, key="any", model=model)
    return subprocess.Popen(
        [program(agent.name), *start.arguments],
        cwd=folder / "work",
        env=start.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def claude_code(address: str, model: str, question: str, folder: Path) -> str:
    """Return what Claude Code prints for one question: the last block of the last reply. It may run commands."""
    own = {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "k", "ANTHROPIC_SMALL_FAST_MODEL": model}
    return claude_code_by(own, model, question, folder)


def claude_code_by(variables: Mapping[str, str], model: str, question: str, folder: Path) -> str:
    """Return what Claude Code prints that finds its gateway by some variables."""
    said = [program("claude"), "-p", question, "--model", model, "--allowedTools", "Bash"]
    token = {} if "ANTHROPIC_API_KEY" in variables else {"ANTHROPIC_AUTH_TOKEN": "any"}
    return _run(said, folder, {**token, **variables, **AGENTS["claude"].environment}).stdout


def codex(
    address: str,
    model: str,
    question: str,
    folder: Path,
    *,
    provider_name: str = "bardo",
    compacts_from: int = 0,
    websockets: bool = False,
) -> str:
    """Return the answer of Codex to a question; it may run commands, and use `websockets`.

    With a provider that is called OpenAI it leaves compaction to the server; `compacts_from` is from how many tokens on it compacts.
    """
    settings = folder / "home" / ".codex"
    more = f"model_auto_compact_token_limit = {compacts_from}" if compacts_from else ""
    settings.mkdir(parents=True, exist_ok=True)
    own = _CODEX.format(model=model, address=address, name=provider_name, more=more)
    (settings / "config.toml").write_text(f"{own}supports_websockets = true\n" if websockets else own)
    said = [program("codex"), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", question]
    return _run(said, folder, {"BARDO_API_KEY": "k"}).stdout


def at_home(folder: Path) -> dict[str, str]:
    """Return the environment of a program with `folder`/home as its home, which reaches this machine alone."""
    return {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), **_OUTSIDE}


def _run(
    arguments: list[str], folder: Path, environment: Mapping[str, str], *, fails: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run an agent to its end, in `folder`/work with `folder`/home as its home. Fails where the agent does, unless that is wanted."""
    for name in ("home", "work"):
        (folder / name).mkdir(exist_ok=True)
    done = subprocess.run(
        arguments,
        cwd=folder / "work",
        env={**at_home(folder), **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=_PATIENCE,
        check=False,
    )
    assert fails or done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done
