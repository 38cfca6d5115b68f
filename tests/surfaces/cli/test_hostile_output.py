"""Nothing that a model, a provider, a client or the name of a key says reaches a terminal as more than text."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console, RenderableType

from bardo.adapters.stores.log.row import Feedback
from bardo.simulators import Script, ToolCall, Turn
from bardo.surfaces.render.calls import call_facts, calls_table, layer_facts
from bardo.surfaces.render.console import print_problem, print_stderr, show_json, show_text
from bardo.surfaces.render.replies import blocks_table, reply_facts
from bardo.surfaces.render.tables import Column, facts, table
from bardo.surfaces.render.wording import difference, excerpt, one_line
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, UpstreamRefused
from support.any_model import Simulator
from support.hostile_rows import hostile_reply, hostile_row
from support.hostile_text import GROUPS, HOSTILE
from surfaces.cli.support import bardo, on_terminal, simulated, write_log

NOW = time.time()
# The styles of bardo's own tables; a hostile text has none of these.
_OWN_STYLES = re.compile(r"\x1b\[(?:0|1|2|3[1-6]|1;3[1-6])m")
_JOINED = re.compile("(?<=[^\x00-\x7f])[\u200c\u200d]")
BY_GROUP = pytest.mark.parametrize("group", GROUPS)


def controls(shown: str) -> set[str]:
    """Return the characters that are more than text on a terminal. Emoji and some scripts need joiners."""
    return {letter for letter in _JOINED.sub("", shown) if not letter.isprintable() and letter not in "\n\t"}


def on_screen(renderable: RenderableType) -> str:
    """Return what a terminal of a hundred columns is sent, without the styles of bardo's own."""
    console = Console(file=StringIO(), force_terminal=True, color_system="standard", width=100, legacy_windows=False)
    console.print(renderable)
    assert isinstance(console.file, StringIO)
    return _OWN_STYLES.sub("", console.file.getvalue())


def in_pipe(renderable: RenderableType) -> str:
    """Return what a program is sent that reads the output."""
    console = Console(file=StringIO(), width=10_000)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


def shown_of(text: str) -> Iterator[RenderableType]:
    """Yield all that is shown of calls and replies."""
    row, reply = hostile_row(text, started_at=NOW), hostile_reply(text)
    yield calls_table([row], NOW)
    yield call_facts(row, NOW, [Feedback(request_id=text, given_at=NOW, score=1, comment=text)])
    yield facts(layer_facts(row.pipeline))
    yield reply_facts(reply)
    yield blocks_table(reply)
    yield table([Column("a"), Column("b", wrap=True), Column("c", cut=True)], [(text, text, text)])


@BY_GROUP
def test_tables_and_facts_are_text(group: str) -> None:
    shown = {name: "".join(map(on_screen, shown_of(text))) for name, text in GROUPS[group].items()}
    assert {name: found for name, text in shown.items() if (found := controls(text))} == {}


@BY_GROUP
def test_a_call_is_one_line_and_no_fact_begins_another(group: str) -> None:
    for name, text in GROUPS[group].items():
        listed = in_pipe(calls_table([hostile_row(text)], NOW))
        assert (name, len(listed.splitlines())) == (name, 2)
        assert "\n" not in one_line(text) + excerpt(text, 60)
        # What is said on several lines stands in the second column, where no name of a fact is.
        first, *others = in_pipe(facts([("reply", f"a\noutcome  ok\n{text}")])).rstrip("\n").split("\n")
        assert first.startswith("reply  a")
        assert (name, [line for line in others if line.strip() and not line.startswith("       ")]) == (name, [])


@BY_GROUP
def test_what_is_said_and_printed_is_text(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in GROUPS[group].items():
        print_stderr(text)
        print_stderr(difference(Degradation(text, asked=text, sent={text: text}, why=text)))
        print_problem(UpstreamRefused(text, provider=text, status=500))
        print_problem(InvalidRequest(text, hint=text))
        show_text(text)
        show_json({text: text})
        shown = capsys.readouterr()
        assert (name, controls(shown.out + shown.err)) == (name, set())


def test_the_commands_of_the_log_print_text(folder: Path) -> None:
    del folder
    rows = [hostile_row(text, number, started_at=NOW - 60) for number, text in enumerate(HOSTILE.values())]
    write_log(rows)
    commands = (
        ["log", "-n", "1000"],
        ["log", "-n", "1000", "--json"],
        ["costs", "--by", "model,provider,key"],
        ["costs", "--by", "model", "--json"],
        ["costs", "--by", "provider,key", "--csv"],
    )
    for command in commands:
        ran = bardo(*command)
        assert (command, ran.code, controls(ran.out + ran.err)) == (command, 0, set())
    listed = bardo("log", "-n", "1000").out
    assert len(listed.splitlines()) == len(rows) + 1
    for row in rows[::10]:
        ran = bardo("log", "show", row.request_id)
        assert controls(ran.out + ran.err) == set()
        found = bardo("log", "show", row.request_id, "--json")
        assert controls(found.out) == set()
        assert found.json["error_message"] == row.error_message


def _asked(folder: Path, turn: Turn, *arguments: str) -> str:
    """Return what a terminal without styles shows of a question."""
    with simulated(Simulator("vllm", script=Script((turn,))), folder=folder):
        code, _, shown = on_terminal(
            "ask", "x", "-m", "vllm/m", *arguments, environment={"TERM": "dumb", "NO_COLOR": "1"}
        )
    assert code == 0
    return shown.replace("\r\n", "\n")


def test_an_answer_and_its_thinking_are_text_on_a_terminal(folder: Path) -> None:
    texts = list(HOSTILE.values())
    shown = _asked(folder, Turn(text="\n".join(texts), reasoning="\n".join(texts)), "--show-reasoning")
    # In prose the joiner of emoji is text.
    assert controls(shown) <= {"\u200d"}
    assert "root#" in shown


def test_a_reply_as_json_is_exact_and_text(folder: Path) -> None:
    text = "\n".join(HOSTILE.values())
    call = ToolCall(name="look_up", arguments={"of": text})
    shown = _asked(folder, Turn(text=text, reasoning=text, tool_calls=(call,)), "--json")
    assert controls(shown) == set()
    found: dict[str, Any] = json.loads(shown[shown.index("{") :])
    assert found["text"].count("rm -rf") == text.count("rm -rf")


@BY_GROUP
def test_an_explanation_is_text(group: str, folder: Path) -> None:
    text = "\n".join(one[:2000] for one in GROUPS[group].values())
    body = {
        "model": text,
        "messages": [{"role": text, "content": text}, {"role": "user", "content": text}],
        text: text,
        "tools": [{"type": "function", "function": {"name": text, "parameters": {}}}],
    }
    (folder / "request.json").write_text(json.dumps(body))
    for further in ([], ["--json"], ["--workload", text], ["--model", "claude-opus-4-8"]):
        ran = bardo("explain", "request.json", *further)
        assert ran.out or ran.err
        assert controls(ran.out + ran.err) == set()


def test_the_names_of_a_providers_models_are_text(folder: Path) -> None:
    names = tuple(text[:300] for text in HOSTILE.values())
    with simulated(Simulator("vllm", models=names), folder=folder):
        for command in (
            ["models"],
            ["models", "--json"],
            ["doctor"],
            ["doctor", "--json"],
            ["models", "--provider", "vllm"],
        ):
            ran = bardo(*command)
            assert ran.out
            assert (command, controls(ran.out + ran.err)) == (command, set())
