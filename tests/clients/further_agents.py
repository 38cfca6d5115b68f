"""Further coding agents, which run at night: how each is asked, put into a mode, and what it does not do."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bardo.catalog.agent_rows import agent_rows
from bardo.simulators import ToolCall
from clients.agents import at_home
from clients.installed import AGENTS, program

MODES = ("parallel", "cut", "resume", "interrupted", "picture", "401", "429", "529")
PICTURE = "picture.png"
_NO_TOOLS = "its model edits by blocks in its text and calls no tools"


@dataclass(frozen=True)
class FurtherAgent:
    """One agent, by its command.

    `arguments` go before its question. `tool` is its tool that runs a command, with what `called` makes of one; without a tool it has none.
    `resume` are the arguments by which a second question goes on with the first, `picture` those that give a picture, `mention` what says
    so in the question, `opens_picture` the call by which its model looks at one. `known_as` is its name in the log. `own_settings` is a
    file below its home that leads elsewhere. `left_out` says of modes why they are not run.
    """

    name: str
    arguments: tuple[str, ...]
    tool: str = ""
    called: Callable[[str], Mapping[str, object]] = lambda command: {"command": command}
    resume: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    mention: str = ""
    opens_picture: ToolCall | None = None
    known_as: str = ""
    own_settings: tuple[str, str] = ("", "")
    environment: Mapping[str, str] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)

    def call(self, command: str) -> ToolCall:
        """Return the model's call that runs a command."""
        return ToolCall(self.tool, dict(self.called(command)))

    def command_line(self, question: str, *further: str) -> list[str]:
        """Return the arguments of a question, with `further` ones of a mode before those that end with the question's own option."""
        place = 1 if self.arguments[:1] == ("run",) else 0
        return [*self.arguments[:place], *further, *self.arguments[place:], question]


FURTHER_AGENTS = {
    agent.name: agent
    for agent in (
        FurtherAgent(
            "copilot",
            ("--allow-all-tools", "-p"),
            "bash",
            lambda command: {"command": command, "description": "Reads the note"},
            resume=("--continue",),
            picture=("--attachment", PICTURE),
            known_as="copilot",
            own_settings=(".copilot/config.json", '{"model": "elsewhere"}'),
        ),
        FurtherAgent(
            "qwen",
            ("--yolo", "-p"),
            "run_shell_command",
            lambda command: {"command": command, "description": "Reads the note", "is_background": False},
            resume=("--continue",),
            mention=f"@{PICTURE} ",
            known_as="qwen-code",
            own_settings=(
                ".qwen/settings.json",
                '{"security": {"auth": {"selectedType": "qwen-oauth"}}, "model": {"name": "elsewhere"}}',
            ),
        ),
        FurtherAgent(
            "cline",
            (),
            "run_commands",
            lambda command: {"commands": [command]},
            opens_picture=ToolCall("read_files", {"files": [{"path": PICTURE}]}),
            known_as="cline",
            left_out={"resume": "it goes on with a session in a terminal alone"},
        ),
        FurtherAgent(
            "goose",
            ("run", "-t"),
            "shell",
            resume=("--resume",),
            opens_picture=ToolCall("read_image", {"source": PICTURE}),
            known_as="goose",
        ),
        FurtherAgent(
            "kilo",
            ("run", "--auto"),
            "bash",
            lambda command: {"command": command, "description": "Reads the note"},
            resume=("--continue",),
            picture=("--file", PICTURE, "--"),
            known_as="kilo-code",
            environment={"KILO_DISABLE_MODELS_FETCH": "1", "KILO_DISABLE_AUTOUPDATE": "1"},
        ),
        FurtherAgent(
            "aider",
            ("--yes-always", "--no-git", "--no-check-update", "--no-show-release-notes", "--message"),
            resume=("--restore-chat-history",),
            environment={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "AIDER_ANALYTICS": "false"},
            left_out={
                "parallel": _NO_TOOLS,
                "cut": _NO_TOOLS,
                "picture": "it gives pictures to the models alone that its own list says see them",
            },
        ),
    )
}


def environment_of(agent: FurtherAgent, folder: Path) -> dict[str, str]:
    """Return the environment of an agent whose home is `folder`/home. Its settings file is written, and its program is on the path."""
    for name in ("home", "work"):
        (folder / name).mkdir(exist_ok=True)
    if agent.own_settings[0]:
        own_file = folder / "home" / agent.own_settings[0]
        own_file.parent.mkdir(parents=True, exist_ok=True)
        own_file.write_text(agent.own_settings[1])
    path = os.pathsep.join((str(Path(program(agent.name)).parent), os.environ["PATH"]))
    return {**at_home(folder), "PATH": path, **agent.environment}


def start(
    agent: FurtherAgent, address: str, model: str, arguments: Sequence[str], folder: Path
) -> subprocess.Popen[str]:
    """Start an agent in `folder`/work as `bardo run` does with the gateway at `address`; it leads a group of its own, as in a terminal."""
    environment = environment_of(agent, folder)
    row = agent_rows()[agent.name]
    files = folder / "files"
    files.mkdir(exist_ok=True)
    told = row.told(address=address, key="any", model=model, folder=str(files))
    for name, text in told.files.items():
        (files / name).write_text(text, encoding="utf-8")
    starts = row.start(arguments, environment, address=address, key="any", model=model, folder=str(files))
    return subprocess.Popen(
        [program(agent.name), *starts.arguments],
        cwd=folder / "work",
        env=starts.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def table() -> str:
    """Return the table of the page on clients: a row for each agent, which says of each mode whether it is run."""
    rows = [f"| agent | version | {' | '.join(MODES)} |", "|---" * (2 + len(MODES)) + "|"]
    for agent in FURTHER_AGENTS.values():
        version = AGENTS[agent.name].packages[0].replace("==", "@").rpartition("@")[2]
        modes = ["–" if mode in agent.left_out else "yes" for mode in MODES]
        rows.append(f"| {agent_rows()[agent.name].title} | {version} | {' | '.join(modes)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(table())
