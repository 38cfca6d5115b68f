"""`bardo ask`: the answer and nothing else on stdout, whatever happens."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bardo.simulators import Running, Script, Turn
from support.any_model import Simulator
from surfaces.cli.support import bardo, ended, line_with, logged, on_terminal, program, running, simulated

QUESTION = "What is 27 * 43?"
THOUGHT = "So the answer is 1161."


@pytest.fixture
def servers(folder: Path) -> Iterator[list[Running]]:
    with simulated(Simulator("vllm", pace=0.001), Simulator("anthropic"), folder=folder) as found:
        yield found


def asked(servers: list[Running]) -> object:
    """What the last question was."""
    fields = servers[0].requests[-1].fields
    messages = fields["messages"]
    assert isinstance(messages, list)
    return messages[-1]["content"]


@pytest.mark.usefixtures("servers")
def test_stdout_is_the_answer_and_a_line_break() -> None:
    ran = program("ask", QUESTION, "--model", "vllm/qwen")
    assert (ran.code, ran.out, ran.err) == (0, "1161\n", "")


@pytest.mark.usefixtures("servers")
def test_thinking_is_shown_on_stderr_when_asked_for() -> None:
    ran = bardo("ask", QUESTION, "-m", "vllm/qwen", "--show-reasoning")
    assert ran.out == "1161\n"
    assert ran.err.startswith("[thinking]\nI need to work out 27 * 43.")
    assert ran.err.endswith(f"{THOUGHT}\n[answer]\n")


@pytest.mark.usefixtures("servers")
def test_a_terminal_sees_a_sign_while_the_model_thinks_and_stdout_stays_clean() -> None:
    code, out, shown = on_terminal("ask", QUESTION, "-m", "vllm/qwen", stdout=False)
    assert (code, out) == (0, "1161\n")
    assert "[thinking…]" in shown
    assert "1161" not in shown


@pytest.mark.usefixtures("servers")
def test_on_a_terminal_the_answer_ends_its_line() -> None:
    assert on_terminal("ask", QUESTION, "-m", "vllm/qwen", "--plain")[2].endswith("1161\r\n")


def test_an_answer_cannot_play_with_the_terminal_and_is_exact_in_a_pipe(folder: Path) -> None:
    answer = "red \x1b[31malert\x07\tline\n"
    with simulated(Simulator("vllm", script=Script((Turn(text=answer),))), folder=folder):
        assert program("ask", "x", "-m", "vllm/qwen").out == answer
        shown = on_terminal("ask", "x", "-m", "vllm/qwen", "--plain")[2]
    assert "red �[31malert�\tline\r\n" in shown
    assert "\x1b[31m" not in shown


def test_prompts_come_from_arguments_stdin_or_both(servers: list[Running]) -> None:
    assert program("ask", "-", "-m", "vllm/q", given=b"from stdin").out.endswith("from stdin\n")
    assert program("ask", "-m", "vllm/q", given=b"2 * 3").out == "6\n"
    program("ask", "Explain:", "-m", "vllm/q", given="ä piece\n".encode())
    assert asked(servers) == "Explain:\n\nä piece"


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("given", ["", " \n"])
def test_no_prompt_is_said(given: str) -> None:
    ran = bardo("ask", "-m", "vllm/q", given=given)
    assert ran.code == 2
    assert "there is no prompt" in ran.err


@pytest.mark.parametrize(
    ("reasoning", "field", "value"),
    [("low", "reasoning_effort", "low"), ("off", "chat_template_kwargs", {"enable_thinking": False})],
)
def test_reasoning_is_passed_on(servers: list[Running], reasoning: str, field: str, value: object) -> None:
    assert bardo("ask", "x", "-m", "vllm/q", "--reasoning", reasoning).code == 0
    assert servers[0].requests[-1].fields[field] == value


def test_a_number_is_a_budget_and_the_system_prompt_comes_first(
    servers: list[Running], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "any")
    assert bardo("ask", "x", "-m", "anthropic/claude-opus-4-5", "-r", "2048", "--system", "Be brief.").code == 0
    fields = servers[1].requests[-1].fields
    assert fields["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert "Be brief." in str(fields["system"])


@pytest.mark.usefixtures("servers")
def test_json_is_the_whole_response() -> None:
    found = bardo("ask", QUESTION, "-m", "vllm/qwen", "--json").json
    assert found["text"] == "1161"
    assert found["reasoning"]["visibility"] == "visible"
    assert found["reasoning"]["content"].endswith(THOUGHT)
    assert found["reasoning"]["tokens_approx"] is True
    assert found["usage"]["output_tokens"] > 0
    assert found["finish"]["reason"] == "stop"
    assert (found["tool_calls"], found["degraded"], found["error"]) == ([], [], None)
    assert found["bardo"]["request_id"] == logged()[-1].request_id


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["-m", "nix"], 2, "no provider here serves 'nix'"),
        (["-m", "vllm/q", "-r", "wild"], 2, "reasoning is 'wild'"),
        (["-m", "anthropic/claude-x"], 2, "set SIMULATED_KEY"),
        (["-m", "vllm/q+fault:status=429,retry-after=7"], 3, "vllm answered 429"),
        (["-m", "vllm/q+fault:disconnect"], 3, "bardo: "),
        (["-m", "vllm/q+fault:cut=4"], 3, "bardo: "),
    ],
)
def test_failures_are_told_on_stderr_with_a_code_that_says_whose_turn_it_is(
    arguments: list[str], code: int, said: str
) -> None:
    ran = bardo("ask", "x", *arguments)
    assert ran.code == code
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.usefixtures("servers")
def test_what_had_arrived_of_a_broken_reply_stays() -> None:
    ran = bardo("ask", "x", "-m", "vllm/q+fault:cut=4", "--json")
    assert ran.code == 3
    assert ran.json["reasoning"]["content"]
    assert ran.json["error"]["kind"] == "upstream"


@pytest.mark.usefixtures("servers")
def test_a_refused_wait_is_told_in_seconds() -> None:
    assert "for 7 seconds" in bardo("ask", "x", "-m", "vllm/q+fault:status=429,retry-after=7").err


def test_what_the_answer_alone_does_not_say_is_said(folder: Path) -> None:
    with simulated(Simulator("vllm", script=Script((Turn(text="half an", finish="length"),))), folder=folder):
        ran = bardo("ask", "x", "-m", "vllm/q")
    assert (ran.code, ran.out) == (0, "half an\n")
    assert "output limit" in ran.err


def test_interrupting_ends_with_130_and_the_call_is_logged(folder: Path) -> None:
    with (
        simulated(Simulator("vllm", pace=0.2), folder=folder),
        running("ask", QUESTION, "-m", "vllm/q", "--show-reasoning") as process,
    ):
        line_with(process.stderr, "[thinking]")
        assert ended(process, signal.SIGINT) == 130
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert [row.outcome for row in logged()] == ["cancelled"]
