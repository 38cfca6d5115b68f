"""Simulated providers as configured providers: which preset reads each, and the bardo.toml that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec

from bardo.edge.settings import ProviderEntry
from bardo.simulators import KNOBS, PRESETS, Fault, Knob, Script, Simulator, Turn, parse_fault, presets
from bardo.values.errors import InvalidRequest

KEY_VARIABLE = "SIMULATED_KEY"


def known_presets(names: Sequence[str]) -> list[str]:
    """Return the simulators' names, all of them where none is given. Raises InvalidRequest naming the nearest."""
    return [_known(name) for name in dict.fromkeys(names)] or presets()


def _known(name: str) -> str:
    wanted = name.strip().lower().replace("-", "_")
    if wanted in PRESETS:
        return wanted
    near = get_close_matches(wanted, presets(), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`bardo simulate --list` shows all"
    raise InvalidRequest(f"no simulator is called {name!r}", hint=hint)


def read_fault(written: str | None) -> Fault | None:
    """Return the fault that is asked for. Raises InvalidRequest where there is no such fault."""
    if written is None:
        return None
    try:
        return parse_fault(written)
    except ValueError as problem:
        raise InvalidRequest(str(problem), hint="write it as in status=429,retry-after=2") from problem


def read_knob(written: str | None) -> Knob | None:
    """Return how models take what they are told of their thinking. Raises InvalidRequest where there is no such way."""
    if written is None:
        return None
    kind = next((known for known in KNOBS if known == written.strip().lower()), None)
    if kind is None:
        raise InvalidRequest(f"no knob is called {written!r}", hint=f"use one of {', '.join(KNOBS)}")
    return Knob(kind)


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
    values = {
        "id": entry.id,
        "preset": entry.preset,
        "base_url": entry.base_url,
        "api_key_env": entry.api_key_env,
    }
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
