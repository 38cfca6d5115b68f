"""Whatever stdin, stdout and stderr are, a command ends with one line at most about them, and with the right exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bardo.adapters.stores.log import LogRow
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
import rich.console, rich.status, rich.table, sqlalchemy
from bardo.surfaces.cli import main
from bardo.surfaces.cli.app import make_app
import bardo.adapters.net.client, bardo.adapters.stores.log, bardo.surfaces.cli.demo, bardo.surfaces.gateway.main
import bardo.adapters.net.client, bardo.adapters.stores.log, bardo.surfaces.cli.demo, bardo.surfaces.gateway.main

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


def test_output_that_cannot_be_written_is_one_line_and_an_exit_code() -> None:
    """Every command with a closed stdout; a full one is met by the same code, at another moment."""
    full = [words for words in PRINTING[::6] if FULL.exists()]
    cases = [(words, "closed", IS_CLOSED) for words in PRINTING] + [(words, str(FULL), NO_ROOM) for words in full]
    found = outcomes(*((words, os.devnull, stdout, "told") for words, stdout, _ in cases))
    for (words, stdout, told), (code, said) in zip(cases, found, strict=True):
        # `simulate` says on stderr, before its output, where its servers listen.
        said = said[said.rfind("\nbardo: ") + 1 :] if words == "simulate vllm" else said
        assert (code, said) == (1, told), (words, stdout)


@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full on this machine")
def test_messages_that_cannot_be_written_change_no_exit_code() -> None:
    expected = {"costs": 0, "catalog": 0, "log show nobody": 2, "log --since never": 2, "serv": 2, "parse missing": 2}
    cases = [(words, stderr, code) for words, code in expected.items() for stderr in (str(FULL), "closed")]
    found = outcomes(*((words, os.devnull, os.devnull, stderr) for words, stderr, _ in cases))
    assert [code for code, _ in found] == [code for _, _, code in cases]


def test_a_closed_stdin_is_an_empty_one_and_all_streams_may_be_closed() -> None:
    asked, parsed, alone = outcomes(
        ("ask --model m", "closed", os.devnull, "told"),
        ("parse --format think", "closed", os.devnull, "told"),
        ("costs", "closed", "closed", "closed"),
    )
    assert asked[0] == 2
    assert asked[1].startswith("bardo: there is no prompt")
    assert parsed == (0, "")
    assert alone[0] == 1


def test_what_a_program_starts_has_the_three_streams_too() -> None:
    """The workers of `serve` do not start without them."""
    code = (
        "import os; from bardo.surfaces.cli.streams import standard_streams\n"
        "with standard_streams(): os._exit(sum(not os.get_inheritable(number) for number in range(3)))"
    )
    shell = f'{sys.executable} -c "{code}" <&- >&- 2>&-'
    assert subprocess.run(["sh", "-c", shell], timeout=PATIENCE, check=False).returncode == 0


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
