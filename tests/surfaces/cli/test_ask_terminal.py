"""`bardo ask` in a real terminal: the sign that a model thinks, Markdown while it arrives, Ctrl-C, and hostile texts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bardo.simulators import Script, Turn
from bardo.surfaces.render.wording import PrintableText, printable
from support.any_model import Simulator
from support.hostile_text import HOSTILE
from support.terminal import Terminal, terminal
from surfaces.cli.support import logged, program, simulated

QUESTION = "What is 27 * 43?"
ANSWER = """# A *title*

Some **bold** words and `code`.

- first
- second

```python
def f(x):
    return x + 1
```

| a | b |
|---|---|
| 1 | 2 |

<div>kept</div> [text](https://example.org/page)
"""
# What a program may send that draws: colours, the cursor, lines cleared.
_DRAWN = re.compile(r"\x1b\[[0-9;]*[ABCDHJKm]|\x1b\[\?25[hl]|[\r\n\t]")


def test_the_sign_has_seconds_and_tokens_and_goes_away(folder: Path) -> None:
    with (
        simulated(Simulator("vllm", pace=0.05), folder=folder),
        terminal("ask", QUESTION, "-m", "vllm/qwen") as shown,
    ):
        shown.wait_for(lambda one: re.search(r"\[thinking…\] \d+ s, ~\d+ tokens", one.text) is not None)
        assert shown.end() == 0
    assert shown.text == "1161"
    assert not shown.screen.cursor.hidden


def test_markdown_is_rendered_as_it_arrives_and_nothing_of_it_is_lost(folder: Path) -> None:
    script = Script((Turn(text=ANSWER),))
    with (
        simulated(Simulator("vllm", script=script, pace=0.01), folder=folder),
        terminal("ask", "x", "-m", "vllm/qwen", lines=40) as shown,
    ):
        assert shown.end() == 0
    assert "**" not in shown.text
    assert "# " not in shown.text
    assert "```" not in shown.text
    for words in ("A title", "Some bold words and code.", " • first", "    return x + 1", "<div>kept</div>"):
        assert shown.text.count(words) == 1
    assert "text (https://example.org/page)" in shown.text
    assert shown.lines[shown.lines.index("    return x + 1") + 1] == "", "blocks stand apart"
    bold = shown.lines.index("Some bold words and code.")
    assert shown.screen.buffer[bold][5].bold
    assert not shown.screen.buffer[bold][0].bold
    assert b"\x1b]8" not in shown.raw


def test_an_answer_longer_than_the_screen_is_whole_in_what_scrolled_by(folder: Path) -> None:
    text = "\n".join(f"line{number:03} of the code" for number in range(400))
    script = Script((Turn(text=f"```\n{text}\n```\n\nAnd so on."),))
    with (
        simulated(Simulator("vllm", script=script), folder=folder),
        terminal("ask", "x", "-m", "vllm/qwen", lines=10) as shown,
    ):
        assert shown.end() == 0
    assert [line for line in shown.whole if line] == [*text.splitlines(), "And so on."]


def test_a_smaller_terminal_while_it_answers_breaks_nothing(folder: Path) -> None:
    script = Script((Turn(text="words " * 60 + "\n\nThe end."),))
    with (
        simulated(Simulator("vllm", script=script, pace=0.02), folder=folder),
        terminal("ask", "x", "-m", "vllm/qwen") as shown,
    ):
        shown.wait_for("words words")
        shown.resize(10, 40)
        assert shown.end() == 0
    assert shown.text.endswith("The end.")
    assert max(map(len, shown.lines)) <= 40


def test_plain_leaves_the_text_as_it_is(folder: Path) -> None:
    with (
        simulated(Simulator("vllm", script=Script((Turn(text="**bold** text"),))), folder=folder),
        terminal("ask", "x", "-m", "vllm/qwen", "--plain") as shown,
    ):
        assert shown.end() == 0
    assert shown.text == "**bold** text"


@pytest.mark.parametrize(
    ("style", "wanted"),
    [
        ("=line", r"^\[thought for [\d.]+ s, ~?\d+ tokens\]\n\n*1161$"),
        ("=panel", r"^╭─ thinking: [\d.]+ s, ~?\d+ tokens ─+╮\n(?:│.*│\n)+╰─+╯\n\n*1161$"),
        ("=full", r"^\[thinking\]\n.*27 \* 43(?s:.*)\n\[answer\]\n\n*1161$"),
        ("=none", r"^1161$"),
        ("", r"^\[thinking\]\n.*27 \* 43(?s:.*)\n\[answer\]\n\n*1161$"),
    ],
)
def test_thinking_is_shown_in_the_style_that_was_asked_for(folder: Path, style: str, wanted: str) -> None:
    with (
        simulated(Simulator("vllm"), folder=folder),
        terminal("ask", f"--show-reasoning{style}", QUESTION, "-m", "vllm/qwen") as shown,
    ):
        assert shown.end() == 0
    assert re.search(wanted, shown.text), shown.text


def test_ctrl_c_ends_the_call_upstream_and_leaves_the_terminal_as_it_was(folder: Path) -> None:
    with (
        simulated(Simulator("vllm", pace=0.2), folder=folder) as servers,
        terminal("ask", QUESTION, "-m", "vllm/qwen") as shown,
    ):
        shown.wait_for("[thinking…]")
        shown.send(b"\x03")
        assert shown.end() == 130
        assert len(servers[0].requests) == 1
    assert not shown.screen.cursor.hidden
    assert "Traceback" not in shown.text
    assert [row.outcome for row in logged()] == ["cancelled"]


def strange(shown: Terminal) -> str:
    """What was written to a terminal that is neither text nor drawing. Joiners of scripts and emoji are text."""
    rest = _DRAWN.sub("", shown.raw.decode()).translate(dict.fromkeys(map(ord, "\u200c\u200d")))
    return "".join(letter for letter in rest if printable(letter) != letter)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", [(), ("--plain",), ("--show-reasoning",), ("--show-reasoning=panel",)])
def test_no_text_of_a_model_is_more_than_text(folder: Path, how: tuple[str, ...]) -> None:
    everything = "\n\n".join(HOSTILE.values()).replace("\x00", "\x01")
    turn = Turn(text=everything, reasoning=everything)
    with (
        simulated(Simulator("vllm", script=Script((turn,))), folder=folder),
        terminal("ask", "x", "-m", "vllm/qwen", *how) as shown,
    ):
        assert shown.end() == 0
    assert strange(shown) == ""
    assert shown.screen.title == ""


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_cut_anywhere_is_cleaned_alike(name: str) -> None:
    text = HOSTILE[name][:3000]
    for prose in (False, True):
        pieces = PrintableText(prose=prose)
        assert "".join(map(pieces.feed, text)) + pieces.finish() == printable(text, prose=prose)
    whole = printable(text, prose=True)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]", whole)


def test_in_a_pipe_there_is_the_answer_as_it_came_and_no_sign(folder: Path) -> None:
    with simulated(Simulator("vllm", script=Script((Turn(text=ANSWER),))), folder=folder):
        ran = program("ask", "x", "-m", "vllm/qwen")
    assert (ran.code, ran.out, ran.err) == (0, ANSWER, "")
