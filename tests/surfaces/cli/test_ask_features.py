"""`bardo ask`: attachments, conversations, templates, models by a part of their names, and asking through a gateway that runs."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.server.serving import BackgroundServer
from bardo.simulators import Running, Script, Turn
from bardo.surfaces.cli.ask import AmbiguousModel, best_match
from bardo.surfaces.gateway.main import gateway_of
from bardo.values.errors import UnknownModel
from support.any_model import Simulator
from surfaces.cli.support import bardo, logged, simulated

MP3 = b"ID3\x04\x00rest"
WAV = b"RIFF\x00\x00\x00\x00WAVEfmt "
PDF = b"%PDF-1.7 rest"


def last(server: Running) -> dict[str, Any]:
    fields: dict[str, Any] = server.requests[-1].fields
    return fields


@pytest.mark.parametrize(
    ("name", "data", "wanted"),
    [
        ("a.py", b"\xef\xbb\xbfx = 1\n", {"type": "text", "text": '<file name="a.py">\nx = 1\n</file>'}),
        ("a.wav", WAV, {"type": "input_audio", "input_audio": {"format": "wav", "data": "UklGRgAAAABXQVZFZm10IA=="}}),
        ("sound", MP3, {"type": "input_audio", "input_audio": {"format": "mp3", "data": "SUQzBAByZXN0"}}),
    ],
)
def test_a_file_is_sent_as_what_it_holds(folder: Path, name: str, data: bytes, wanted: dict[str, Any]) -> None:
    (folder / name).write_bytes(data)
    with simulated(Simulator("vllm"), folder=folder) as servers:
        assert bardo("ask", "What is it?", "-m", "vllm/m", "-a", name).code == 0
        assert last(servers[0])["messages"][-1]["content"][0] == wanted


def test_a_pdf_is_a_document_with_its_name(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "any")
    (folder / "paper.bin").write_bytes(PDF)
    with simulated(Simulator("anthropic"), folder=folder) as servers:
        ran = bardo("ask", "Sum it up.", "-m", "anthropic/claude-opus-4-5", "-a", "paper.bin")
        block = last(servers[0])["messages"][-1]["content"][0]
    assert ran.code == 0
    assert (block["type"], block["source"]["media_type"]) == ("document", "application/pdf")
    assert block["title"] == "paper.bin"


def test_stdin_is_an_attachment_where_it_is_said_so(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder) as servers:
        ran = bardo("ask", "What is it?", "-m", "vllm/m", "-a", "-", given=b"piped words")
        content = last(servers[0])["messages"][-1]["content"]
    assert ran.code == 0
    assert [part["text"] for part in content] == ['<file name="stdin">\npiped words\n</file>', "What is it?"]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"\x00\x01\x02", "is of no kind that can be sent"),
        (b"", "is empty"),
        (b"a" * (20 * 2**20 + 1), "more than 20 MB"),
    ],
)
def test_what_cannot_be_attached_is_said(folder: Path, data: bytes, said: str) -> None:
    (folder / "file").write_bytes(data)
    ran = bardo("ask", "x", "-m", "m", "-a", "file")
    assert ran.code == 2
    assert said in ran.err
    assert "cannot read none.png" in bardo("ask", "x", "-m", "m", "-a", "none.png").err


def test_a_conversation_goes_on_with_its_reasoning_and_signatures(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "any")
    with simulated(Simulator("anthropic"), folder=folder) as servers:
        first = bardo(
            "ask", "2 * 3", "--conversation", "sums", "-m", "anthropic/claude-opus-4-5", "-r", "low", "-s", "Be brief."
        )
        second = bardo("ask", "3 * 4", "--continue", "-r", "low")
        fields = last(servers[0])
    assert (first.code, second.code, second.out) == (0, 0, "12\n")
    assert [turn["role"] for turn in fields["messages"]] == ["user", "assistant", "user"]
    thought, answer = fields["messages"][1]["content"]
    assert thought["type"] == "thinking"
    assert thought["signature"]
    assert answer["text"] == "6"
    assert "Be brief." in str(fields["system"])
    assert fields["model"] == "claude-opus-4-5"


def test_another_model_goes_on_without_signatures_that_it_cannot_read(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "any")
    with simulated(Simulator("anthropic"), Simulator("vllm"), folder=folder) as servers:
        bardo("ask", "2 * 3", "--conversation", "sums", "-m", "anthropic/claude-opus-4-5", "-r", "low")
        signature = json.loads(bardo("history", "show", "sums", "--json").out)["messages"][1]["blocks"][0]["opaque"][0]
        assert bardo("ask", "3 * 4", "--conversation", "sums", "-m", "vllm/m").out == "12\n"
        sent = json.dumps(last(servers[1]))
    assert signature["data"] not in sent
    assert '"6"' in sent


def test_what_is_kept_of_conversations_is_the_users_own_and_can_be_listed_and_forgotten(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder):
        assert bardo("ask", "2 * 3", "--conversation", "a.b", "-m", "vllm/m").code == 0
    file = folder / "data" / "bardo" / "conversations" / "a.b.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one["name"] for one in bardo("history", "--json").json] == ["a.b"]
    assert "a.b" in bardo("history").out
    shown = bardo("history", "show", "a.b").out
    assert "user:\n2 * 3" in shown
    assert "of thinking):\n6" in shown
    assert bardo("history", "forget", "a.b").code == 0
    assert bardo("history").err.startswith("no conversations")
    assert bardo("history", "forget", "a.b").code == 2


def test_nothing_is_kept_without_a_name_or_of_a_call_that_failed(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder):
        assert bardo("ask", "2 * 3", "-m", "vllm/m").code == 0
        assert bardo("ask", "2 * 3", "-m", "vllm/q+fault:cut=4", "--conversation", "broken").code == 3
    assert not (folder / "data" / "bardo" / "conversations").exists()
    ran = bardo("ask", "x", "--continue")
    assert (ran.code, "no conversation to continue" in ran.err) == (2, True)


@pytest.mark.parametrize("name", ["../x", "", ".hidden", "a/b", "x" * 65])
def test_a_conversation_has_a_plain_name(name: str) -> None:
    ran = bardo("ask", "x", "-m", "m", f"--conversation={name}")
    assert ran.code == 2
    assert not name or "no name of a conversation" in ran.err


def test_a_conversation_that_is_none_is_said(folder: Path) -> None:
    kept = folder / "data" / "bardo" / "conversations"
    kept.mkdir(parents=True)
    (kept / "a.json").write_text("{")
    assert "holds no conversation" in bardo("ask", "x", "-m", "m", "--conversation", "a").err


@pytest.fixture
def template(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
    file = folder / "config" / "bardo" / "templates" / "review.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        'about = "Reviews code"\nprompt = "Review {{language}} for {{ focus }}."\nsystem = "Know {{language}}."\n'
        'model = "vllm/m"\nreasoning = "low"\n[variables]\nfocus = "mistakes"\n'
    )
    return file


@pytest.mark.usefixtures("template")
def test_a_template_is_filled_in_and_sets_what_the_command_line_does_not(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder) as servers:
        ran = bardo("ask", "-t", "review", "language=Go", "only", "main.go", given="package main\n")
        fields = last(servers[0])
        assert bardo("ask", "-t", "review", "language=Go", "focus=style=x", "-r", "high").code == 0
        second = last(servers[0])
    assert ran.code == 0
    assert fields["messages"][0]["content"] == "Know Go."
    assert fields["messages"][1]["content"].startswith("Review Go for mistakes.\n\nonly main.go")
    assert fields["reasoning_effort"] == "low"
    assert second["messages"][1]["content"] == "Review Go for style=x."
    assert second["reasoning_effort"] == "high"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-t", "review"], "needs language"),
        (["-t", "review", "langage=Go"], "did you mean language?"),
        (["-t", "reviw"], "did you mean 'review'?"),
        (["-t", "../review"], "there is no template"),
    ],
)
@pytest.mark.usefixtures("template")
def test_what_a_template_lacks_is_said(words: list[str], said: str) -> None:
    ran = bardo("ask", *words)
    assert ran.code == 2
    assert said in ran.err


def test_templates_are_listed_and_shown_and_a_wrong_one_is_said(template: Path) -> None:
    assert "review" in bardo("prompts").out
    assert "language, focus" in bardo("prompts").out
    shown = bardo("prompts", "show", "review").out
    assert "{{focus}}" in shown
    assert "(has to be given)" in shown
    assert bardo("prompts", "show", "review", "--json").json["variables"] == {"focus": "mistakes"}
    template.write_text("promt = 'x'")
    ran = bardo("prompts", "show", "review")
    assert ran.code == 2
    assert "review.toml" in ran.err


def test_an_input_is_what_is_written_or_piped(template: Path, folder: Path) -> None:
    template.write_text('prompt = "Translate:\\n{{input}}\\nTo German."\nmodel = "vllm/m"')
    with simulated(Simulator("vllm"), folder=folder) as servers:
        assert bardo("ask", "-t", "review", "some", "words").code == 0
        assert last(servers[0])["messages"][-1]["content"] == "Translate:\nsome words\nTo German."
    assert "needs a text" in bardo("ask", "-t", "review").err


NAMES = [
    "claude-opus-4-8",
    "claude-opus-4-8-20270101",
    "claude-sonnet-5",
    "claude-sonnet-4-5",
    "gpt-9-mini",
    "gpt-9",
    "far/claude-sonnet-5",
]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("opus", "claude-opus-4-8"),
        ("OPUS", "claude-opus-4-8"),
        ("sonnet-5", None),
        ("sonnet 4", "claude-sonnet-4-5"),
        ("mini", "gpt-9-mini"),
        ("gpt", "gpt-9"),
        ("min", "gpt-9-mini"),
        ("claude", None),
    ],
)
def test_a_part_of_a_name_means_one_model_or_none(wanted: str, found: str | None) -> None:
    if found is None:
        with pytest.raises(AmbiguousModel, match="may be one of"):
            best_match(wanted, NAMES, UnknownModel("x"))
    else:
        assert best_match(wanted, NAMES, UnknownModel("x")) == found


def test_a_part_of_a_served_models_name_is_enough(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder) as servers:
        file = folder / "bardo.toml"
        models = '[[providers]]\nmodels = ["lab-opus-4", "lab-sonnet-4"]\n'
        file.write_text(file.read_text().replace("[[providers]]\n", models))
        ran = bardo("ask", "2 * 3", "-m", "opus")
        assert (ran.code, ran.out, ran.err) == (0, "6\n", "bardo: asking lab-opus-4\n")
        assert last(servers[0])["model"] == "lab-opus-4"
        several = bardo("ask", "2 * 3", "-m", "lab")
    assert several.code == 2
    assert "lab-opus-4, lab-sonnet-4" in several.err
    assert several.out == ""


def test_json_has_the_cost_and_verbose_the_line_on_stderr(folder: Path) -> None:
    with simulated(Simulator("vllm"), folder=folder):
        found = bardo("ask", "2 * 3", "-m", "vllm/m", "--json").json
        ran = bardo("ask", "2 * 3", "-m", "vllm/m", "--verbose")
    assert {"text", "reasoning", "usage", "cost_usd"} <= found.keys()
    assert ran.out == "6\n"
    assert ran.err.startswith("bardo: vllm/m; tokens: input ")
    assert "; cost " in ran.err


def test_a_gateway_that_runs_is_asked_and_gives_signatures_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "any")
    with simulated(Simulator("anthropic"), folder=folder) as servers:
        settings = parse_settings((folder / "bardo.toml").read_text())
        with BackgroundServer(gateway_of(settings)) as server:
            (folder / "bardo.toml").unlink()
            common = ("--gateway", server.address, "-r", "low", "--key", "any")
            first = bardo(
                "ask", "2 * 3", *common, "--conversation", "far", "-m", "anthropic/claude-opus-4-5", "--show-reasoning"
            )
            second = bardo("ask", "3 * 4", *common, "--conversation", "far")
        fields = last(servers[0])
    assert (first.code, first.out, second.out) == (0, "6\n", "12\n")
    assert "[thinking]" in first.err
    assert fields["messages"][1]["content"][0]["signature"]
    assert len(logged()) == 2, "the gateway logs a call, and nobody else"


def test_the_address_of_the_gateway_may_stand_in_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BARDO_INFERENCE_URL", "http://127.0.0.1:9")
    ran = bardo("ask", "Hello.", "-m", "qwen")
    assert ran.code != 0
    assert "http://127.0.0.1:9" in ran.err


def test_a_gateway_that_is_not_there_is_said(folder: Path) -> None:
    ran = bardo("ask", "x", "-m", "m", "--gateway", "http://127.0.0.1:9")
    assert ran.code == 3
    assert bardo("ask", "x", "--gateway", "nowhere").code == 2


def test_thinking_that_nobody_may_read_is_said_where_thinking_is_wanted(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMULATED_KEY", "any")
    turn = Turn(text="6", reasoning="hidden words", redacted=True)
    with simulated(Simulator("anthropic", script=Script((turn,))), folder=folder):
        ran = bardo("ask", "2 * 3", "-m", "anthropic/claude-opus-4-5", "-r", "low", "--show-reasoning=line")
    assert (ran.code, ran.out) == (0, "6\n")
    assert "reasoning performed (not visible)" in ran.err
    assert "hidden words" not in ran.err


def test_the_order_of_words_and_a_style_of_reasoning_do_not_get_mixed(folder: Path) -> None:
    with simulated(Simulator("vllm", script=Script((Turn(text="yes", reasoning="why"),))), folder=folder) as servers:
        ran = bardo("ask", "--show-reasoning", "Is", "it?", "-m", "vllm/m")
        assert last(servers[0])["messages"][-1]["content"] == "Is it?"
        assert bardo("ask", "-m", "vllm/m", "--", "--show-reasoning").code == 0
        assert last(servers[0])["messages"][-1]["content"] == "--show-reasoning"
    assert ran.err == "[thinking]\nwhy\n[answer]\n"
    assert bardo("ask", "x", "--show-reasoning=loud").code == 2
    assert ran.out == "yes\n"
