"""The program as a whole: how it starts, what it says when it is used wrongly, and how it looks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from bardo import __version__
from bardo.adapters.stores.log import LogRow
from bardo.surfaces.cli.app import COMMANDS, make_app
from support.offenders import each_case
from surfaces.cli.support import PROGRAM, bardo, on_terminal, program, write_log

pytestmark = pytest.mark.each_python


def modules_of(*arguments: str) -> set[str]:
    """Which modules a command loads."""
    code = f"import sys; from bardo.surfaces.cli import main; main({list(arguments)!r}); print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", code], input=b"hm</think>ok", capture_output=True, check=True)
    return set(done.stderr.decode().split())


def test_version_is_one_line_and_loads_next_to_nothing() -> None:
    assert program("--version").out == f"bardo {__version__}\n"
    assert bardo("--version").out == f"bardo {__version__}\n"
    assert not modules_of("--version") & {"typer", "rich", "msgspec", "asyncio"}


def test_parse_loads_neither_tables_nor_network_nor_database_to_print_json() -> None:
    loaded = modules_of("parse", "--json")
    assert not loaded & {"rich", "asyncio", "sqlalchemy", "pyreqwest", "aiohttp", "httptools"}


@each_case("name", [*COMMANDS, "log show"])
def test_every_command_has_short_help_with_an_example(name: str) -> None:
    ran = bardo(*name.split(), "--help")
    assert ran.code == 0
    assert f"Example: bardo {name.split()[0]}" in ran.out.replace("git diff | ", ""), (
        f"the help of `bardo {name}` has no example: give the command in src/bardo/surfaces/cli an epilog that begins with "
        f"`Example: bardo {name.split()[0]}`"
    )
    assert max(map(len, ran.out.splitlines())) <= 80
    assert len(ran.out.splitlines()) <= 32


def test_help_lists_every_command_with_its_whole_sentence() -> None:
    ran = bardo("--help")
    for name in COMMANDS:
        assert f"\n  {name} " in ran.out
    assert "..." not in ran.out.partition("Commands:")[2]


def test_a_mistyped_command_is_met_with_the_nearest() -> None:
    ran = bardo("serv")
    assert ran.code == 2
    assert "Did you mean 'serve'" in ran.err
    assert ran.out == ""


def test_a_reader_that_leaves_ends_the_command_quietly() -> None:
    process = subprocess.Popen([*PROGRAM, "catalog", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_colours_are_for_terminals_and_go_where_nobody_wants_them() -> None:
    write_log([LogRow(request_id="req_1", started_at=1.0, outcome="ok")])
    assert "\x1b" not in program("log").out
    assert "\x1b[32mok" in on_terminal("log")[2]
    assert "\x1b[32m" not in on_terminal("log", environment={"NO_COLOR": "1"})[2]
    assert "\x1b[1;31mbardo:" in on_terminal("log", "show", "nix")[2]
    assert "\x1b[1;31m" not in on_terminal("log", "show", "nix", environment={"NO_COLOR": "1"})[2]


def test_a_broken_configuration_is_one_line_and_a_hint() -> None:
    Path("bardo.toml").write_text("[gateway]\nprot = 1\n")
    ran = bardo("log")
    assert ran.code == 2
    assert ran.err.splitlines() == ["bardo: bardo.toml, line 2: unknown key 'prot'", "       did you mean 'port'?"]
    assert bardo("log", "--config", "other.toml").err.startswith("bardo: cannot read other.toml")


def test_c_names_the_configuration_in_every_command() -> None:
    def walk(command: Any, path: str) -> Iterator[tuple[str, Any]]:
        yield path, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{path} {name}")

    wrong = [
        f"{path}: {'/'.join(option.opts)}"
        for path, command in walk(typer.main.get_command(make_app()), "bardo")
        for option in command.params
        if ("-c" in option.opts) is not ("--config" in option.opts)
    ]
    assert wrong == []
