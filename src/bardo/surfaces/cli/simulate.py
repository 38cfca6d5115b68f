"""`bardo simulate`: providers that need no key and no network, for one's own programs and for trying bardo out."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from bardo.simulators import KNOBS, PRESETS, Simulator, serve_many
from bardo.surfaces.cli.options import AsJson
from bardo.surfaces.cli.simulation import (
    KEY_VARIABLE,
    configuration,
    entry_for,
    known_presets,
    listing,
    read_fault,
    read_knob,
    read_script,
)
from bardo.surfaces.render.console import say, show, show_json, show_text
from bardo.surfaces.render.tables import Column, table
from bardo.values.errors import ConfigError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("simulate", epilog="Example: bardo simulate anthropic vllm --port 9000 > bardo.toml")(simulate)


def simulate(
    names: Annotated[list[str] | None, typer.Argument(metavar="PRESET", help="Which ones; by default all.")] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65000, metavar="FIRST", help="The first port, counted up; by default free ones.")
    ] = 0,
    script: Annotated[Path | None, typer.Option(metavar="FILE", help="A TOML file with [[turns]] to answer.")] = None,
    fault: Annotated[
        str | None, typer.Option(metavar="FAULT", help="What goes wrong, as in status=429,retry-after=2 or cut=3.")
    ] = None,
    knob: Annotated[
        str | None, typer.Option(metavar="HOW", help=f"What a model does when told how to think: {', '.join(KNOBS)}.")
    ] = None,
    pace: Annotated[
        float, typer.Option(min=0, max=3600, metavar="SECONDS", help="The wait between streamed events.")
    ] = 0.0,
    list_only: Annotated[bool, typer.Option("--list", help="List the simulators and end.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run simulated providers until Ctrl-C. A bardo.toml that points at them goes to stdout."""
    chosen = known_presets(names or ())
    if list_only:
        _list(chosen, as_json=as_json)
        return
    going_wrong, said, turned = read_fault(fault), read_script(script), read_knob(knob)
    simulators = [Simulator(name, script=said, fault=going_wrong, knob=turned, pace=pace) for name in chosen]
    try:
        asyncio.run(_run(simulators, port, as_json=as_json))
    except OSError as problem:
        raise _no_port(port, problem) from problem


async def _run(simulators: Sequence[Simulator], port: int, *, as_json: bool) -> None:
    # A program that waits for the addresses may end this one as soon as it has read them.
    interrupted = _interruption()
    async with serve_many(simulators, first_port=port) as addresses:
        if as_json:
            show_json({"simulators": listing(addresses)})
        else:
            _tell(simulators, addresses)
        await interrupted.wait()


def _interruption() -> asyncio.Event:
    """Return what Ctrl-C or SIGTERM set, which are the ordinary end."""
    over = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        # Windows has no such handlers; there Ctrl-C interrupts.
        with contextlib.suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(number, over.set)
    return over


def _tell(simulators: Sequence[Simulator], addresses: Mapping[str, str]) -> None:
    columns = (Column("simulator"), Column("dialect"), Column("base URL"))
    show(table(columns, ((name, PRESETS[name].dialect, url) for name, url in addresses.items())), stderr=True)
    say(f"\nTo ask them through bardo, save this as bardo.toml and run: {KEY_VARIABLE}=any bardo serve")
    say("Ctrl-C ends the simulators.\n")
    entries = [entry_for(simulator, addresses[simulator.provider.name]) for simulator in simulators]
    show_text(configuration(entries))


def _list(names: Sequence[str], *, as_json: bool) -> None:
    if as_json:
        show_json({"simulators": listing(dict.fromkeys(names, ""))})
        return
    columns = (Column("simulator"), Column("dialect"), Column("preset"), Column("models"))
    rows = (
        (name, PRESETS[name].dialect, PRESETS[name].catalog_name, ", ".join(PRESETS[name].models)) for name in names
    )
    show(table(columns, rows))


def _no_port(first: int, problem: OSError) -> ConfigError:
    if problem.errno == errno.EADDRINUSE:
        return ConfigError(
            f"a port from {first} on is already in use", hint="give another --port, or none for free ones"
        )
    return ConfigError(f"cannot listen: {problem.strerror or problem}", hint="give another --port, or none")
