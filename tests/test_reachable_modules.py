"""Every module of bardo is reached from a place where a program enters: what nothing imports is deleted, not kept."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from bardo.adapters.stores.migrations import LOG_BRANCH
from bardo.dialects import CLIENT_FORMS, DIALECTS, dialect
from bardo.dialects.shared.dialect import Dialect
from bardo.simulators import PRESETS
from bardo.surfaces.cli.app import COMMANDS
from bardo.surfaces.cli.serve import APP
from bardo.surfaces.gateway.context import PANEL
from bardo.surfaces.gateway.routes import find_route
from support.offenders import each_case
from support.source import imports, reached, trees
from support.talk import ALL_CLIENTS, path_for

MIGRATIONS = LOG_BRANCH.tree.replace(":", ".")
ENTRY_POINTS: Mapping[str, set[str]] = {
    "the library": {"bardo"},
    "the program": {"bardo.__main__", "bardo.surfaces.cli", *(f"bardo.surfaces.cli.{name}" for name in COMMANDS)},
    "the gateway": {APP.partition(":")[0]},
    "the panel, which the gateway loads by its name": {PANEL},
    "a dialect that a row names": {f"bardo.dialects.{name}" for name in DIALECTS},
    "a form of a dialect that an endpoint names": {f"bardo.dialects.{name}" for name in CLIENT_FORMS},
    "a simulated provider": {"bardo.simulators", *(preset.__module__ for preset in PRESETS.values())},
    "a migration, which Alembic loads by its file": {name for name in trees() if name.startswith(f"{MIGRATIONS}.")},
    "the transport that tests of bardo import (docs/glossary.md)": {"bardo.adapters.net.fake"},
}


def test_every_module_is_reached_from_an_entry_point() -> None:
    found = reached(set().union(*ENTRY_POINTS.values()), imports())
    assert sorted(trees().keys() - found) == []


@each_case("place", ENTRY_POINTS)
def test_an_entry_point_is_a_module_that_exists(place: str) -> None:
    assert ENTRY_POINTS[place]
    assert ENTRY_POINTS[place] <= trees().keys()


@each_case("place", list(ENTRY_POINTS)[-2:])
def test_an_entry_point_that_only_others_import_is_reached_by_itself_alone(place: str) -> None:
    others = set().union(*(modules for name, modules in ENTRY_POINTS.items() if name != place))
    assert not ENTRY_POINTS[place] & reached(others, imports())


SERVER_HALF = ("decode_request", "open_encoder", "encode_response", "encode_error")


def server_half(name: str) -> set[str]:
    """Return which functions for clients a dialect has."""
    absent = {field.name: field.default for field in msgspec.structs.fields(Dialect)}
    return {function for function in SERVER_HALF if getattr(dialect(name), function) is not absent[function]}


@each_case("name", [*DIALECTS, *CLIENT_FORMS])
def test_what_a_dialect_has_for_clients_is_mounted_or_absent(name: str) -> None:
    paths = [path_for(client, "m", stream=stream) for client in ALL_CLIENTS for stream in (False, True)]
    mounted = {find_route("POST", path.partition("?")[0], b"").dialect for path in paths}
    assert server_half(name) == (set(SERVER_HALF) if name in mounted else set())
