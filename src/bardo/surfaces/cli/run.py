"""`bardo run`: start a coding agent, or any program over an official SDK, with a gateway of its own or the one that runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated
from urllib.error import URLError
from urllib.request import ProxyHandler, Request, build_opener

import typer

from bardo.adapters.config.settings import Settings, load_settings
from bardo.catalog.agent_rows import AgentRow, AgentStart, agent_rows
from bardo.services.accounts.opening import has_keys
from bardo.surfaces.cli.options import Config
from bardo.surfaces.cli.running_gateway import KEY_VARIABLE, KEY_VARIABLES, address_of, gateway_key
from bardo.surfaces.render.console import print_stderr, show_text
from bardo.values.errors import ConfigError, InvalidRequest, Unsupported

_NO_KEY = "any"
_PATIENCE = 1.0
_NOT_FOUND = 127
_NOT_EXECUTABLE = 126
_SIGNAL_EXIT = 128


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "run",
        epilog="Example: bardo run --model provider/model codex -- exec 'Fix the failing test'",
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )(run)


def run(
    command: Annotated[
        str,
        typer.Argument(
            help="The program: claude, codex, copilot, crush, gemini, opencode, …, or any that uses an official SDK."
        ),
    ],
    arguments: Annotated[list[str] | None, typer.Argument(help="The program's own arguments, after `--`.")] = None,
    config: Config = None,
    model: Annotated[str, typer.Option("--model", "-m", help="The model that the program uses.")] = "",
    own: Annotated[bool, typer.Option("--own", help="Start a gateway even if one is running.")] = False,
    shown: Annotated[
        bool, typer.Option("--print", help="Print what the program is told, as commands of a shell, and run nothing.")
    ] = False,
) -> None:
    """Run a program with its models served by bardo. Its environment is set for it alone; a gateway that was started ends with it."""
    settings = load_settings(config)
    row = agent_rows().get(Path(command).name) or agent_rows()[""]
    if row.refused:
        raise Unsupported(f"bardo cannot run {row.title}: {row.refused}", hint="choose another agent")
    if row.needs_model and not model:
        raise InvalidRequest(f"{row.title} needs a model", hint=f"bardo run --model provider/model {command}")
    own_arguments = arguments[1:] if arguments and arguments[0] == "--" else arguments or []
    if shown:
        show_text(_commands(row, command, own_arguments, settings, model))
        return
    program = shutil.which(command)
    if program is None:
        print_stderr(f"bardo: there is no program {command!r} on the path")
        raise typer.Exit(_NOT_FOUND)
    with _gateway(settings, row.title, own=own) as address, TemporaryDirectory(prefix="bardo-run-") as folder:
        key = gateway_key() or _NO_KEY
        for name, text in row.told(address=address, key=key, model=model, folder=folder).files.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        context = _context(address, key, model) if row.context_environment and model else ""
        start = row.start(
            own_arguments, os.environ, address=address, key=key, model=model, folder=folder, context=context
        )
        code = _run(program, start)
    raise typer.Exit(code)


def _commands(row: AgentRow, command: str, arguments: list[str], settings: Settings, model: str) -> str:
    """Return the lines by which a shell starts a program as `bardo run` does, with the key as the variable that holds it."""
    variable = next((name for name in KEY_VARIABLES if os.environ.get(name, "").strip()), "")
    if not variable and has_keys(settings):
        variable = KEY_VARIABLE
    # No argument and no variable can hold these, so that they stand for the key and for the folder alone.
    key, folder = "\0" if variable else _NO_KEY, "\1"
    found = find_running_gateway(settings)
    address = found or address_of(settings)
    context = _context(found, gateway_key() or _NO_KEY, model) if found and row.context_environment and model else ""
    proxies = {name: value for name in ("NO_PROXY", "no_proxy") if (value := os.environ.get(name))}
    start = row.start(arguments, proxies, address=address, key=key, model=model, folder=folder, context=context)

    stands = {"\0": f'"${variable}"', "\1": '"$folder"'}

    def quoted(text: str) -> str:
        parts = [stands.get(part) or shlex.quote(part) for part in re.split("([\0\1])", text) if part]
        return "".join(parts) or "''"

    lines = [f"# {row.title} with the gateway at {address}", *(["folder=$(mktemp -d)"] if row.files else [])]
    files = row.told(address=address, key=key, model=model, folder=folder).files
    lines += [f"printf '%s' {quoted(text)} > \"$folder\"/{shlex.quote(name)}" for name, text in files.items()]
    lines += [f"export {name}={quoted(value)}" for name, value in sorted(start.environment.items())]
    lines += [f"unset {' '.join(row.unset)}"] if row.unset else []
    return "\n".join([*lines, " ".join([shlex.quote(command), *map(quoted, start.arguments)])])


@contextmanager
def _gateway(settings: Settings, title: str, *, own: bool) -> Iterator[str]:
    """Return the address of a running gateway, or of one started for this block. Raises ConfigError where a key is missing."""
    if has_keys(settings) and not gateway_key():
        raise ConfigError(
            "this gateway asks for keys", hint=f"put one into {KEY_VARIABLE}; `bardo keys create NAME` makes one"
        )
    address = "" if own else find_running_gateway(settings)
    if address:
        print_stderr(f"bardo run: {title} with the gateway at {address}")
        yield address
        return
    # Loaded here, because a gateway that runs needs neither.
    from bardo.server.serving import BackgroundServer
    from bardo.surfaces.gateway.main import gateway_of

    with BackgroundServer(gateway_of(settings)) as server:
        print_stderr(f"bardo run: {title} with a gateway of its own at {server.address}")
        yield server.address


def find_running_gateway(settings: Settings) -> str:
    """Return the address of a gateway of these settings that answers; empty where none does."""
    address = address_of(settings)
    try:
        with build_opener(ProxyHandler({})).open(f"{address}/healthz", timeout=_PATIENCE) as reply:
            answer = json.loads(reply.read(1000))
    except (URLError, OSError, ValueError):
        return ""
    return address if isinstance(answer, dict) and answer.get("server") == "bardo" else ""


def _context(address: str, key: str, model: str) -> str:
    """Return how many tokens a model takes, as the gateway tells editors; empty where it does not know."""
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    asked = Request(f"{address}/api/show", json.dumps({"model": model}).encode(), headers)
    try:
        with build_opener(ProxyHandler({})).open(asked, timeout=_PATIENCE) as reply:
            known = json.loads(reply.read(100_000))["model_info"]
    except (URLError, OSError, ValueError, LookupError):
        return ""
    return next((str(tokens) for name, tokens in known.items() if name.endswith(".context_length")), "")


def _run(program: str, start: AgentStart) -> int:
    """Run a program to its end, and return its exit code. Ctrl-C is the program's, which may want it; other signals are passed on."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        try:
            child = subprocess.Popen([program, *start.arguments], env=start.environment)
        except OSError as problem:
            print_stderr(f"bardo: cannot run {program}: {problem.strerror}")
            return _NOT_EXECUTABLE
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, lambda number, _: child.send_signal(number))
        code = child.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else _SIGNAL_EXIT - code
