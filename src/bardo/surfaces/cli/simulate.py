"""`bardo simulate`: providers that need no key and no network, and the bardo.toml that points at them."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bardo.adapters.config.settings import ProviderEntry
from bardo.simulators import (
    PRESETS,
    THINKING_BEHAVIOURS,
    Fault,
    Script,
    Simulator,
    ThinkingBehaviour,
    Turn,
    parse_fault,
    presets,
    serve_many,
)
from bardo.surfaces.cli.options import AsJson, finite
from bardo.surfaces.render.console import print_stderr, show, show_json, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.values.errors import ConfigError, InvalidRequest

KEY_VARIABLE = "SIMULATED_KEY"


def checked_presets(names: Sequence[str]) -> list[str]:
    """Return the simulators' names, all of them where none is given. Raises InvalidRequest naming the nearest."""
    return [_checked_preset(name) for name in dict.fromkeys(names)] or presets()


def _checked_preset(name: str) -> str:
    wanted = name.strip().lower().replace("-", "_")
    if wanted in PRESETS:
        return wanted
    near = get_close_matches(wanted, presets(), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`bardo simulate --list` shows all"
    raise InvalidRequest(f"no simulator is called {name!r}", hint=hint)


def read_fault(text: str | None) -> Fault | None:
    """Return the fault that is asked for. Raises InvalidRequest where there is no such fault."""
    if text is None:
        return None
    try:
        return parse_fault(text)
    except ValueError as problem:
        raise InvalidRequest(str(problem), hint="write it as in status=429,retry-after=2") from problem


def read_thinking_behaviour(text: str | None) -> ThinkingBehaviour | None:
    """Return how models take what they are told of their thinking. Raises InvalidRequest where there is no such way."""
    if text is None:
        return None
    kind = next((known for known in THINKING_BEHAVIOURS if known == text.strip().lower()), None)
    if kind is None:
        raise InvalidRequest(f"no behaviour is called {text!r}", hint=f"use one of {', '.join(THINKING_BEHAVIOURS)}")
    return ThinkingBehaviour(kind)


def read_script(path: Path | None) -> Script:
    """Return the script of a TOML file with `[[turns]]`, each with the fields of `Turn`. Raises InvalidRequest."""
    if path is None:
        return Script()
    try:
        turns = msgspec.toml.decode(path.read_bytes(), type=dict[str, list[Turn]])
    except (OSError, ValueError) as problem:
        raise InvalidRequest(f"cannot read the script {path}: {problem}", hint=_SCRIPT_HINT) from problem
    if list(turns) != ["turns"]:
        raise InvalidRequest(f"{path} holds no script", hint=_SCRIPT_HINT)
    return Script(tuple(turns["turns"]))


_SCRIPT_HINT = 'a script is a list of [[turns]], each with text = "…", reasoning = "…" and so on'


def entry_for(simulator: Simulator, base_url: str) -> ProviderEntry:
    """Return the provider table that points at a running simulator."""
    provider = simulator.provider
    return ProviderEntry(
        id=provider.name,
        preset=provider.catalog_name,
        base_url=base_url,
        api_key_env=KEY_VARIABLE if provider.needs_key else "",
    )


def configuration(entries: Sequence[ProviderEntry]) -> str:
    """Return a bardo.toml with these providers."""
    head = "# Simulated providers. Where a key is wanted, any text will do."
    return "\n\n".join([head, *(_table(entry) for entry in entries)])


def _table(entry: ProviderEntry) -> str:
    values = {"id": entry.id, "preset": entry.preset, "base_url": entry.base_url, "api_key_env": entry.api_key_env}
    return "\n".join(["[[providers]]", *(f'{key} = "{value}"' for key, value in values.items() if value)])


def listing(addresses: Mapping[str, str]) -> list[dict[str, object]]:
    """Return every simulator's facts for a program; the address is empty where it does not run."""
    return [
        {
            "preset": name,
            "dialect": PRESETS[name].dialect,
            "catalog": PRESETS[name].catalog_name,
            "models": list(PRESETS[name].models),
            "base_url": address,
        }
        for name, address in addresses.items()
    ]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog="Example: bardo simulate anthropic vllm --port 9000 > simulated.toml")(simulate)


def simulate(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="PRESET...", help="The simulated providers; by default all.")
    ] = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65000, metavar="FIRST", help="The first of consecutive ports; by default free ones."),
    ] = 0,
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="A TOML file with [[turns]] as answers.")] = None,
    fault: Annotated[
        str | None, typer.Option(metavar="FAULT", help="A fault, such as status=429,retry-after=2 or cut=3.")
    ] = None,
    thinking_behaviour: Annotated[
        str | None,
        typer.Option(
            metavar="HOW", help=f"What a model does when told how to think: {', '.join(THINKING_BEHAVIOURS)}."
        ),
    ] = None,
    pace: Annotated[
        float,
        typer.Option(min=0, max=3600, metavar="SECONDS", callback=finite, help="The wait between streamed events."),
    ] = 0.0,
    any_model: Annotated[
        bool, typer.Option("--any-model", help="Answer under any model's name, not only those that are listed.")
    ] = False,
    list_only: Annotated[bool, typer.Option("--list", help="List the simulators and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run simulated providers until Ctrl-C. A bardo.toml that points at them goes to stdout."""
    chosen = checked_presets(names or ())
    if list_only:
        _list(chosen, as_json=as_json)
        return
    going_wrong, said, turned = read_fault(fault), read_script(script), read_thinking_behaviour(thinking_behaviour)
    simulators = [
        Simulator(
            name,
            script=said,
            models=() if any_model else None,
            fault=going_wrong,
            thinking_behaviour=turned,
            pace=pace,
            keep_requests=False,
        )
        for name in chosen
    ]
    try:
        asyncio.run(_run(simulators, port, as_json=as_json))
    except OSError as problem:
        raise _port_problem(port, problem) from problem


async def _run(simulators: Sequence[Simulator], port: int, *, as_json: bool) -> None:
    # A program that waits for the addresses may end this one as soon as it has read them.
    # What Ctrl-C or SIGTERM set, which are the ordinary end.
    interrupted = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has no such handlers; there Ctrl-C interrupts.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    async with serve_many(simulators, first_port=port) as addresses:
        if as_json:
            show_json({"simulators": listing(addresses)})
        else:
            columns = (
                Column("simulator", keep=True),
                Column("dialect", drop=1),
                Column("base URL", keep=True),
                Column("models", wrap=True),
            )
            models = {one.provider.name: ", ".join(one.models) for one in simulators}
            rows = ((name, PRESETS[name].dialect, url, models[name]) for name, url in addresses.items())
            show(table(columns, rows), stderr=True)
            print_stderr(
                f"\nTo ask them through bardo, save this as bardo.toml and run: {KEY_VARIABLE}=any bardo serve"
            )
            print_stderr("Ctrl-C ends the simulators.\n")
            entries = [entry_for(simulator, addresses[simulator.provider.name]) for simulator in simulators]
            show_text(configuration(entries))
        await interrupted.wait()


def _list(names: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        show_json({"simulators": listing(dict.fromkeys(names, ""))})
        return
    columns = (Column("simulator", keep=True), Column("dialect", drop=1), Column("preset"), Column("models", wrap=True))
    rows = (
        (name, PRESETS[name].dialect, PRESETS[name].catalog_name, ", ".join(PRESETS[name].models)) for name in names
    )
    show(table(columns, rows))


def _port_problem(first: int, problem: OSError) -> ConfigError:
    if problem.errno == errno.EADDRINUSE:
        return ConfigError(
            f"a port from {first} on is already in use", hint="give another --port, or none for free ones"
        )
    return ConfigError(f"cannot listen: {problem.strerror or problem}", hint="give another --port, or none")
