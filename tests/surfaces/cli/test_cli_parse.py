"""`bardo parse`: recorded replies and raw texts, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from recordings import Recording, each_recording, rows
from surfaces.cli.support import bardo, program

pytestmark = pytest.mark.each_python

FOLDERS = ("groq", "anthropic-messages", "gemini", "openai-responses", "deepseek", "mistral")
TEXT = "<think>\nhm, tags</think>The answer."


def recorded(folder: str) -> list[Recording]:
    return rows(folder)[:2]


def test_a_text_is_split_and_shown_with_its_blocks() -> None:
    ran = bardo("parse", given=TEXT)
    assert ran.code == 0
    assert "visibility  visible\n" in ran.out
    assert "~2 tokens, estimated from its text" in ran.out
    assert "1  reasoning       8  hm, tags\n" in ran.out.replace("reasoning       9", "reasoning       8")
    assert "2  text" in ran.out
    assert "The answer." in ran.out


def test_a_text_as_json() -> None:
    found = bardo("parse", "--json", given=TEXT).json
    assert found["text"] == "The answer."
    assert found["reasoning"]["content"].strip() == "hm, tags"
    assert [block["type"] for block in found["blocks"]] == ["reasoning", "text"]


def test_the_model_or_the_format_says_how_thinking_is_marked() -> None:
    text = "[THINK]hm[/THINK]ok"
    assert bardo("parse", "--format", "mistral", "--json", given=text).json["text"] == "ok"
    assert bardo("parse", "--model", "mistralai/Magistral-Small", "--json", given=text).json["text"] == "ok"
    assert bardo("parse", "--json", given=text).json["text"] == text


def test_a_file_is_read_and_control_characters_are_not_let_through(folder: Path) -> None:
    (folder / "reply.txt").write_bytes(b"<think>a\x1b[2Jb</think>\xff")
    ran = program("parse", "reply.txt")
    assert "a�[2Jb" in ran.out
    assert "\x1b" not in ran.out


@each_recording([one for folder in FOLDERS for one in recorded(folder)])
def test_recordings_are_read_as_the_library_reads_them(recording: Recording) -> None:
    import bardo as library

    provider = recording.file.partition("/")[0]
    path = str(recording.root / recording.file)
    expected = library.decode(recording.body, provider)
    found = bardo("parse", path, "--provider", provider, "--json").json
    assert found["text"] == expected.text
    assert found["reasoning"]["content"] == expected.reasoning.content
    assert [call["name"] for call in found["tool_calls"]] == [call.name for call in expected.tool_calls]
    shown = bardo("parse", path, "--provider", provider)
    assert shown.code == 0
    assert f"visibility  {expected.reasoning.visibility.value}" in shown.out


WHOLE = '{"id":"1","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}'
STREAM = 'data: {"id":"1","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'


@pytest.mark.parametrize(("body", "flag"), [(WHOLE, "--whole"), (STREAM, "--streamed")])
def test_how_a_reply_was_sent_is_seen_or_said(body: str, flag: str) -> None:
    assert bardo("parse", "-p", "openai-chat", "--json", given=body).json["text"] == "hi"
    assert bardo("parse", "-p", "openai-chat", flag, "--json", given=body).json["text"] == "hi"


def test_a_broken_reply_is_shown_with_its_error() -> None:
    ran = bardo("parse", "-p", "openai-chat", given='{"error":{"message":"no money","type":"billing"}}')
    assert ran.code == 0
    assert "error" in ran.out
    assert "no money" in ran.out


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        ([], WHOLE, "this looks like JSON"),
        ([], STREAM, "this looks like a streamed reply"),
        (["-p", "groqq"], WHOLE, "did you mean groq"),
        (["-f", "mistrall"], "x", "did you mean mistral"),
        (["-p", "groq", "-f", "think"], WHOLE, "exclude each other"),
        (["--streamed"], STREAM, "give --provider"),
        (["missing.json"], "", "cannot read missing.json"),
        (["."], "", "cannot read ."),
    ],
)
def test_what_cannot_be_read_is_said_with_what_to_give(arguments: list[str], given: str, said: str) -> None:
    ran = bardo("parse", *arguments, given=given)
    assert ran.code == 2
    assert said in ran.err
    assert ran.out == ""


def test_json_is_taken_as_text_where_the_caller_says_so() -> None:
    assert bardo("parse", "--format", "think", "--json", given=WHOLE).json["text"] == WHOLE


LAB = '[[reasoning_formats]]\nname = "lab"\nstart = "[["\nend = "]]"\npatterns = ["lab-"]\n'


def test_the_formats_of_the_configuration_are_known(folder: Path) -> None:
    (folder / "bardo.toml").write_text(LAB)
    (folder / "other.toml").write_text(LAB.replace('"lab"', '"other"'))
    assert bardo("parse", "-f", "lab", "--json", given="[[hm]]ok").json["text"] == "ok"
    assert bardo("parse", "-m", "acme/lab-1", "--json", given="[[hm]]ok").json["text"] == "ok"
    assert bardo("parse", "-c", "other.toml", "-f", "other", "--json", given="[[hm]]ok").json["text"] == "ok"
    assert "no reasoning format is named 'other'" in bardo("parse", "-f", "other", given="x").err


@pytest.mark.parametrize(
    ("arguments", "given", "lines"),
    [
        (
            ["-m", "Qwen/QwQ-32B"],
            "hm</think>ok",
            ["format  qwen3_thinking, because its pattern", "begins  inside thinking, because the text closes a block"],
        ),
        (
            ["-f", "deepseek-r1"],
            "hm",
            [
                "format  deepseek_r1, because the format 'deepseek-r1' was named",
                "begins  outside thinking, because the text closes no block",
            ],
        ),
        (["-f", "deepseek_v31"], "ok", ["begins  outside thinking, because nothing was said of the prompt"]),
        (["-f", "think", "--inside"], "hm", ["begins  inside thinking, because the caller said so"]),
        ([], "ok", ["format  think, because neither a format nor a model was named", "like    <think>"]),
        (["-m", "gpt-4o"], "ok", ["format  passthrough, because no format has a pattern that fits"]),
    ],
    ids=["by the text", "by the row", "nothing said", "as told", "by default", "unknown model"],
)
def test_an_explanation_says_which_format_was_chosen_and_why(
    arguments: list[str], given: str, lines: list[str]
) -> None:
    shown = bardo("parse", "--explain", *arguments, given=given).out
    for line in lines:
        assert line in shown


def test_an_explanation_as_json() -> None:
    found = bardo("parse", "--explain", "--json", "-m", "qwen3:4b", given="<think>hm</think>ok").json
    assert found["read_as"] == {
        "format": "qwen3",
        "chosen_by": "pattern",
        "matched": "qwen3",
        "starts_inside": False,
        "because": "replies in this format begin so",
        "calls": "qwen",
    }
    assert "read_as" not in bardo("parse", "--json", given="ok").json


def test_where_a_text_begins_can_be_said() -> None:
    assert bardo("parse", "--inside", "--json", given="hm").json["text"] == ""
    assert bardo("parse", "--outside", "--json", "-f", "deepseek_r1", given="ok").json["text"] == "ok"


def test_the_end_of_the_prompt_tells_where_a_text_begins(folder: Path) -> None:
    (folder / "prompt.txt").write_text("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n<think>\n")
    ran = bardo("parse", "-m", "qwen3:4b", "--prompt", "prompt.txt", "--explain", given="hm</think>ok")
    assert "begins  inside thinking, because the prompt ends so" in ran.out
    assert "cannot read missing.txt" in bardo("parse", "--prompt", "missing.txt", given="ok").err


@pytest.mark.parametrize("option", ["--explain", "--inside", "--outside", "--prompt=x"])
def test_a_providers_reply_is_not_explained_as_a_text(option: str) -> None:
    ran = bardo("parse", "-p", "groq", option, given=WHOLE)
    assert ran.code == 2
    assert "about a model's text" in ran.err


def test_the_steps_of_the_thinking_are_in_the_json() -> None:
    steps = bardo("parse", "--json", given="<think>Wait. Maybe.</think>ok").json["reasoning"]["steps"]
    assert [(step["step_type"], step["start"], step["end"]) for step in steps] == [
        ("reflection", 0, 6),
        ("uncertainty", 6, 12),
    ]
