"""`bardo explain`: what would be sent, told so that a stranger understands it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bardo.surfaces.library.asking import SAMPLES
from surfaces.cli.support import bardo, on_terminal

LOW = ("explain", "--model", "claude-opus-4-8", "--provider", "anthropic", "--reasoning", "low")


def words(text: str) -> str:
    """Return a text with its lines joined and its columns closed up."""
    return " ".join(text.split())


def test_route_request_fields_and_differences_are_printed() -> None:
    ran = bardo(*LOW)
    assert (ran.code, ran.err) == (0, "")
    said = words(ran.out)
    assert "1. anthropic/claude-opus-4-8 <- it was named" in said
    assert "POST https://api.anthropic.com/v1/messages" in said
    assert "a key is read from ANTHROPIC_API_KEY" in said
    assert "decided by L2, the catalog: exact (the model takes it as it is)" in said
    assert "output_config.effort L2 thinking, asked low: exact" in said
    assert "what differs from what was asked nothing" in said
    assert ran.out.endswith("Nothing was sent.\n")


def test_the_printed_body_is_the_one_that_json_has() -> None:
    printed = bardo(*LOW).out
    body = json.loads(printed[printed.index("\n  {\n") : printed.index("\nwhere each field")])
    found = bardo(*LOW, "--json").json
    assert body == found["body"]
    assert (found["path"], found["receipt"]["emitted_word"], found["route"]["provider"]) == (
        "/v1/messages",
        "low",
        "anthropic",
    )
    assert "body_bytes" not in found


@pytest.mark.parametrize(
    "arguments",
    [
        ("--model", "claude-opus-4-8", "--provider", "anthropic", "--reasoning", "max"),
        ("--model", "deepseek-v4-flash", "--reasoning", "2048"),
        ("--model", "gpt-5", "--reasoning", "off"),
        ("--model", "some-unknown-model", "--provider", "openrouter", "--reasoning", "high"),
        ("--model", "Qwen/Qwen3-32B", "--provider", "vllm", "--reasoning", "auto"),
    ],
    ids=" ".join,
)
def test_no_line_is_wider_than_a_terminal(arguments: tuple[str, ...]) -> None:
    ran = bardo("explain", *arguments)
    assert ran.code == 0, ran.err
    assert [line for line in ran.out.splitlines() if len(line) > 80] == []


@pytest.mark.parametrize(("environment", "bold"), [({}, True), ({"NO_COLOR": "1"}, False)], ids=["plain", "no colour"])
def test_headings_stand_out_on_a_terminal_that_wants_it(environment: dict[str, str], bold: bool) -> None:
    code, _, shown = on_terminal(*LOW, environment=environment)
    assert code == 0
    assert ("\x1b[1mroute" in shown) is bold


def test_every_difference_is_told_with_its_reason() -> None:
    request = {"model": "claude-opus-4-8", "messages": [{"role": "user", "content": "x"}], "seed": 7}
    said = words(bardo("explain", "-", "--provider", "anthropic", given=json.dumps(request)).out)
    assert "- seed: asked 7" in said
    assert "asked nothing" in said


def test_a_request_may_stand_in_a_file_in_any_dialect(folder: Path) -> None:
    file = folder / "request.json"
    file.write_text('{"model": "claude-opus-4-8", "input": "x", "reasoning": {"effort": "high"}}')
    found = bardo("explain", str(file), "--dialect", "openai_responses", "--provider", "anthropic", "--json").json
    assert found["receipt"]["intent"] == "high"
    assert found["body"]["messages"][0]["role"] == "user"


@pytest.mark.parametrize("dialect", SAMPLES)
def test_every_dialect_that_clients_speak_has_a_request_at_hand(dialect: str) -> None:
    arguments = ("--model", "deepseek-v4-flash", "--provider", "deepseek", "--reasoning", "high", "--json")
    found = bardo("explain", "--dialect", dialect, *arguments).json
    assert found["receipt"]["intent"] == "high"
    assert found["body"]["messages"]


def test_the_route_of_a_configuration_is_told_in_order(folder: Path) -> None:
    (folder / "bardo.toml").write_text(
        '[[providers]]\nid = "mine"\npreset = "anthropic"\nmodels = ["claude-opus-4-8"]\n'
        '[[providers]]\nid = "spare"\npreset = "anthropic"\n'
    )
    said = words(bardo("explain", "--model", "claude-opus-4-8").out)
    assert "1. mine/claude-opus-4-8 <- its models in bardo.toml" in said
    assert "2. spare/claude-opus-4-8 the catalog: it serves models of such names" in said


ROUTED = """
[golem]
enabled = true

[[providers]]
id = "first"
preset = "anthropic"
models = ["claude-opus-4-6"]

[[providers]]
id = "second"
preset = "openrouter"
models = ["deepseek/deepseek-r1", "openai/gpt-oss-120b"]
"""


def test_the_steps_of_a_route_are_followed(folder: Path) -> None:
    (folder / "bardo.toml").write_text(ROUTED)
    said = words(bardo("explain", "--subsystem", "dream_threat").out)
    assert said.index("1. second/deepseek/deepseek-r1:floor <-") < said.index("2. first/claude-opus-4-6")
    assert "gpt-oss" not in said


def test_fields_of_a_profile_name_it_as_their_source(folder: Path) -> None:
    (folder / "bardo.toml").write_text(ROUTED)
    body = {"model": "bardo/dream_nrem", "messages": [{"role": "user", "content": "Hello."}], "top_p": 0.5}
    sources = explained({**body, "bardo": {"vitality": 0.2}}, folder)
    assert sources["temperature"] == "the profile: the agent's vitality is 0.2"
    assert sources["top_p"] == "as asked"
    assert explained(body, folder)["temperature"] == "the profile"
    (folder / "bardo.toml").write_text(ROUTED.replace('"deepseek/deepseek-r1", ', ""))
    thinking = explained({**body, "model": "bardo/curator"}, folder)
    assert any(why.startswith("the profile: thinking, asked medium") for why in thinking.values())


def test_the_effort_of_a_step_is_explained(folder: Path) -> None:
    (folder / "bardo.toml").write_text(
        ROUTED + '[workloads.stepped]\nprofile = { reasoning_effort = "high" }\n'
        'route = [{ models = ["gpt-oss*"], effort = "low", why = "it answers fast" }]\n'
    )
    said = words(bardo("explain", "--workload", "stepped").out)
    assert "reasoning_effort: asked high, sent low (it answers fast)" in said
    sources = explained({"model": "bardo/stepped", "messages": [{"role": "user", "content": "Hello."}]}, folder)
    assert sources["reasoning.effort"].startswith("the profile: thinking, asked low")


def explained(body: dict[str, Any], folder: Path) -> dict[str, str]:
    """Return the source of each field that would be sent."""
    (folder / "request.json").write_bytes(msgspec.json.encode(body))
    found = bardo("explain", str(folder / "request.json"), "--json").json
    return {one["path"]: one["reason"] for one in found["fields"]}


def test_an_operators_rows_decide_and_are_named(folder: Path) -> None:
    (folder / "bardo.toml").write_text(
        '[[providers]]\nid = "lab"\npreset = "vllm"\nmodels = ["my-model"]\n'
        '[[models]]\nprovider = "lab"\nmatch = ["my-model"]\ncontrol = ["toggle"]\nomit = "on"\noff = true\n'
    )
    found = bardo("explain", "--model", "my-model", "--reasoning", "off", "--json").json
    assert (found["receipt"]["layer"], found["receipt"]["emitted_word"]) == ("operator", "off")


def test_how_an_answer_in_a_schema_is_asked_for_is_printed() -> None:
    shape = {"type": "json_schema", "json_schema": {"name": "result", "schema": {"type": "object", "minProperties": 1}}}
    request = {"model": "claude-3-7-sonnet-20250219", "messages": [{"role": "user", "content": "x"}]}
    ran = bardo("explain", "-", "--provider", "anthropic", given=json.dumps({**request, "response_format": shape}))
    assert "answer in a schema\n  asked for" in ran.out
    assert "result, by" in ran.out


@pytest.mark.parametrize(
    ("arguments", "given", "says"),
    [
        (("--model", "nobody-has-this"), None, "name the provider"),
        (("--model", "m", "--provider", "antropic"), None, "anthropic"),
        (("--model", "gpt-5", "--reasoning", "much"), None, "off, auto"),
        (("--model", "gpt-5", "--dialect", "chat"), None, "openai_chat"),
        (("--model", "gpt-5", "--dialect", "ollama"), None, "give a request"),
        ((), None, "--model gpt-5"),
        (("-",), "{", "not valid JSON"),
        (("-",), "[]", "no JSON object"),
        (("nowhere.json",), None, "cannot read nowhere.json"),
    ],
)
def test_a_mistake_says_what_to_write(arguments: tuple[str, ...], given: str | None, says: str) -> None:
    ran = bardo("explain", *arguments, given=given)
    assert ran.code == 2
    assert says in ran.err
    assert ran.out == ""


def test_what_a_request_holds_cannot_play_with_the_terminal() -> None:
    request = {"model": "m\x1b[31m", "messages": [{"role": "user", "content": "\x9b31m"}]}
    ran = bardo("explain", "-", "--provider", "deepseek", given=json.dumps(request))
    assert ran.code == 0
    assert not {"\x1b", "\x9b"} & set(ran.out)


@pytest.mark.parametrize("dialect", SAMPLES)
@pytest.mark.parametrize("stream", [True, False])
def test_a_request_of_any_dialect_is_explained_as_a_stream(dialect: str, stream: bool) -> None:
    asked = ("explain", "--dialect", dialect, "--json", "--stream" if stream else "--whole")
    gemini = bardo(*asked, "--model", "gemini-2.5-flash", "--provider", "gemini").json
    assert gemini["path"].endswith(":streamGenerateContent?alt=sse" if stream else ":generateContent")
    chat = bardo(*asked, "--model", "deepseek-v4-flash", "--provider", "deepseek").json
    assert bool(chat["body"].get("stream")) is stream


def test_what_is_said_of_a_stream_goes_before_the_requests_own_word(tmp_path: Path) -> None:
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"model": "deepseek-v4-flash", "stream": True, **SAMPLES["openai_chat"]}))
    asked = ("explain", str(request), "--provider", "deepseek", "--json")
    assert bardo(*asked).json["body"]["stream"] is True
    assert bardo(*asked, "--whole").json["body"]["stream"] is False
