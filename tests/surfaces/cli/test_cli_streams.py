"""Whatever stdin, stdout and stderr are, a command ends with one line at most about them, and with the right exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bardo.edge.log import LogRow
from support.patience import PATIENCE
from surfaces.cli.support import PROGRAM, line_with, running, write_log

FULL = Path("/dev/full")
NO_ROOM = "bardo: cannot write the output: No space left on device\n"
IS_CLOSED = "bardo: cannot write the output: stdout is closed\n"
PRINTING = [
    "--help",
    "--version",
    "ask --help",
    "catalog",
    "catalog --json",
    "catalog formats",
    "catalog show claude-opus-4-8 --offline",
    "catalog show claude-opus-4-8 --offline --json",
    "costs",
    "costs --json",
    "demo vllm",
    "doctor",
    "explain --model claude-opus-4-8",
    "explain --model claude-opus-4-8 --json",
    "log",
    "log --json",
    "log --follow --json",
    "log show req_1",
    "log show req_1 --json",
    "parse text --format think",
    "parse text --format think --json",
    "probe claude-opus-4-8 --dry-run",
    "simulate --list",
    "simulate vllm",
    "simulate vllm --json",
]

# Each command in a child of one process that has loaded the program: its streams are set up as a shell does it before Python starts.
EACH = """
import json, os, sys, tempfile
import aiohttp, rich.console, rich.status, rich.table, sqlalchemy
from bardo.surfaces.cli import main
from bardo.surfaces.cli.app import make_app
import bardo.edge.http_session, bardo.edge.log, bardo.surfaces.cli.demonstration, bardo.surfaces.gateway.main

def outcome(words, stdin, stdout, stderr):
    with tempfile.TemporaryFile() as told:
        child = os.fork()
        if not child:
            sys.stdin, sys.stdout, sys.stderr = (started(*one) for one in (
                (0, stdin, "r"), (1, stdout, "w"), (2, told if stderr == "told" else stderr, "w")))
            code = 99
            try:
                code = main(words.split(" "))
            finally:
                os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        told.seek(0)
        return code, told.read().decode()

def started(number, target, mode):
    if target == "closed":
        os.close(number)
        return None
    descriptor = target.fileno() if hasattr(target, "fileno") else os.open(target, os.O_RDWR)
    os.dup2(descriptor, number)
    return open(number, mode, closefd=False)

make_app()
cases = json.load(sys.stdin)
print(json.dumps([outcome(*case) for case in cases]))
"""


def outcomes(*cases: tuple[str, str, str, str]) -> list[tuple[int, str]]:
    """Run commands with these streams, each a path or `closed`; stderr may be `told`. Give their exit codes and what was told."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", EACH],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [(code, told) for code, told in json.loads(done.stdout)]


@pytest.fixture(autouse=True)
def something_to_print(folder: Path) -> None:
    (folder / "text").write_text("hm</think>ok")
    (folder / "bardo.toml").write_text("[gateway]\nport = 0\n")
    write_log([LogRow(request_id="req_1", started_at=1.0, outcome="ok")])


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this machine")
@pytest.mark.parametrize(("stdout", "told"), [("/dev/full", NO_ROOM), ("closed", IS_CLOSED)], ids=["full", "closed"])
def test_output_that_cannot_be_written_is_one_line_and_an_exit_code(stdout: str, told: str) -> None:
    found = dict(zip(PRINTING, outcomes(*((words, os.devnull, stdout, "told") for words in PRINTING)), strict=True))
    for words, (code, said) in found.items():
        # `simulate` says on stderr, before its output, where its servers listen.
        said = said[said.rfind("\nbardo: ") + 1 :] if words == "simulate vllm" else said
        assert (code, said) == (1, told), words


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this machine")
@pytest.mark.parametrize("stderr", ["/dev/full", "closed"], ids=["full", "closed"])
def test_messages_that_cannot_be_written_change_no_exit_code(stderr: str) -> None:
    words = [
        "costs",
        "catalog",
        "log show nobody",
        "log --since never",
        "serv",
        "parse missing",
        "demo nobody",
        "ask x",
    ]
    found = outcomes(*((one, os.devnull, os.devnull, stderr) for one in words))
    assert [code for code, _ in found] == [0, 0, 2, 2, 2, 2, 2, 2]


def test_a_closed_stdin_is_an_empty_one() -> None:
    asked, parsed = outcomes(
        ("ask --model m", "closed", os.devnull, "told"), ("parse --format think", "closed", os.devnull, "told")
    )
    assert asked[0] == 2
    assert asked[1].startswith("bardo: there is no prompt")
    assert parsed == (0, "")


def test_all_streams_may_be_closed() -> None:
    assert [code for code, _ in outcomes(*(("costs", "closed", "closed", "closed"),))] == [1]


def test_a_program_of_its_own_ends_so_too() -> None:
    """As the shell starts it: with the interpreter's own end."""
    command = f"{' '.join(PROGRAM)} catalog --json"
    for redirection, told in ((">/dev/full", NO_ROOM), (">&-", IS_CLOSED)):
        done = subprocess.run(["sh", "-c", f"{command} {redirection}"], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (1, told)


def test_a_program_that_waits_for_a_line_gets_it_without_asking_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    with running("simulate", "vllm", "--json") as process:
        line_with(process.stdout, '"base_url": "http://127.0.0.1:')
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0
