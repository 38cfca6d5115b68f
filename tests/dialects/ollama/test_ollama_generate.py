"""Ollama's prompts and completions stand for a chat and its reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects import dialect
from bardo.values.blocks import ImageBlock, TextBlock
from bardo.values.errors import InvalidRequest, Unsupported, UpstreamRefused
from bardo.values.events import (
    ContentChunk,
    Event,
    Failed,
    Finish,
    ReplyStart,
    ThinkChunk,
    ThinkEnd,
    ThinkStart,
    UsageUpdate,
)
from bardo.values.fold import fold
from bardo.values.request import Message, Request
from bardo.values.usage import Usage
from bardo.values.wire import Arrival

GENERATE = dialect("ollama_generate")
REPLY: tuple[Event, ...] = (
    ReplyStart(model="m", created=0),
    ThinkStart(0, "thinking"),
    ThinkChunk(0, "Hm."),
    ThinkEnd(0),
    ContentChunk(1, "Hel"),
    ContentChunk(1, "lo"),
    UsageUpdate(Usage(input_tokens=3, output_tokens=5)),
    Finish("stop"),
)


def decoded(**fields: Any) -> Request:
    return GENERATE.decode_request(json.dumps({"model": "m", **fields}).encode(), Arrival())


def test_a_prompt_is_the_question_of_a_chat() -> None:
    request = decoded(prompt="Why?", system="Be brief.", images=["iVBORw0KGgo="], think="low", options={"seed": 7})
    picture = ImageBlock(media_type="image/png", data="iVBORw0KGgo=")
    assert request.messages == (
        Message("system", (TextBlock("Be brief."),)),
        Message("user", (TextBlock("Why?"), picture)),
    )
    assert (request.dialect, request.stream, request.sampling.seed) == ("ollama", True, 7)
    assert request.reasoning is not None
    assert request.reasoning.effort == "low"


@pytest.mark.parametrize("fields", [{}, {"prompt": ""}, {"prompt": None, "system": "Be brief."}])
def test_nothing_is_asked_where_a_model_is_to_be_loaded(fields: dict[str, Any]) -> None:
    assert decoded(**fields).messages == ()


@pytest.mark.parametrize(
    "prompt",
    [
        "<|fim_prefix|>def f():\n<|fim_suffix|>\nprint(f())<|fim_middle|>",
        "<fim_prefix>def f():\n<fim_suffix>\nprint(f())<fim_middle>",
        "<[fim-prefix]>def f():\n<[fim-suffix]>\nprint(f())<[fim-middle]>",
        "<|code_prefix|>def f():\n<|code_suffix|>\nprint(f())<|code_middle|>",
        "<｜fim▁begin｜>def f():\n<｜fim▁hole｜>\nprint(f())<｜fim▁end｜>",
        "<PRE> def f():\n <SUF>\nprint(f()) <MID>",
        "[SUFFIX]\nprint(f())[PREFIX]def f():\n",
    ],
)
def test_a_gap_in_the_tokens_of_a_model_is_filled_as_one_with_a_suffix(prompt: str) -> None:
    raw = decoded(prompt=prompt, raw=True)
    plain = decoded(prompt="def f():\n", suffix="\nprint(f())")
    assert raw.messages == plain.messages
    assert [one.what for one in raw.degraded] == [one.what for one in plain.degraded] == ["suffix"]


def test_what_stands_before_the_tokens_of_a_gap_is_kept() -> None:
    [_, asked] = decoded(prompt="# other.py\n<fim_prefix>a<fim_suffix>b<fim_middle>", raw=True).messages
    assert asked.blocks == (TextBlock("<prefix># other.py\na</prefix>\n<suffix>b</suffix>"),)


def test_a_gap_at_the_end_of_a_file_is_one() -> None:
    told, asked = decoded(prompt="<fim_prefix>a<fim_suffix><fim_middle>", raw=True).messages
    assert "fill the gap" in str(told)
    assert asked.blocks == (TextBlock("<prefix>a</prefix>\n<suffix></suffix>"),)


@pytest.mark.parametrize("fields", [{"raw": True}, {"template": "{{ .Prompt }}"}, {"context": [1]}, {"width": 512}])
def test_what_no_chat_can_say_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(Unsupported, match=f"{next(iter(fields))} is not taken"):
        decoded(prompt="Why?", **fields)


@pytest.mark.parametrize("fields", [{"raw": False}, {"template": ""}, {"suffix": ""}, {"context": []}])
def test_what_says_nothing_is_no_loss(fields: dict[str, Any]) -> None:
    assert not decoded(prompt="Why?", **fields).extra


@pytest.mark.parametrize("name", ["prompt", "system", "images"])
def test_a_wrong_value_is_named(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        decoded(**{"prompt": "Why?", name: 5})


def lines(*events: Event) -> list[dict[str, Any]]:
    encoder = GENERATE.open_encoder(decoded(prompt="Why?"), Arrival())
    written = [line for event in events for line in encoder.feed(event)]
    return [json.loads(line) for line in b"".join([*written, *encoder.finish()]).splitlines()]


def test_a_stream_has_a_completion_in_its_lines() -> None:
    written = lines(*REPLY)
    head = {"model": "m", "created_at": "1970-01-01T00:00:00Z"}
    assert written[:3] == [
        {**head, "response": "", "thinking": "Hm.", "done": False},
        {**head, "response": "Hel", "done": False},
        {**head, "response": "lo", "done": False},
    ]
    assert written[3] == {
        **head,
        "response": "",
        "done": True,
        "done_reason": "stop",
        "prompt_eval_count": 3,
        "eval_count": 5,
    }


def test_a_whole_reply_says_the_same() -> None:
    whole = json.loads(GENERATE.encode_response(fold(REPLY), decoded(prompt="Why?")))
    streamed = lines(*REPLY)
    assert whole["response"] == "".join(line["response"] for line in streamed)
    assert whole["thinking"] == "".join(line.get("thinking", "") for line in streamed)
    assert {**whole, "response": ""} == {**streamed[-1], "thinking": "Hm."}


def test_an_error_in_a_stream_is_the_dialects() -> None:
    written = lines(REPLY[0], Failed(UpstreamRefused("no more", provider="p")))
    assert written[-1]["error"] == "no more"


def test_a_suffix_makes_a_question_for_what_stands_between() -> None:
    asked = decoded(prompt="def add(a, b):\n    return ", suffix="\n\nprint(add(1, 2))", system="Python.")
    system, user = asked.messages
    assert [one.text for one in user.blocks if isinstance(one, TextBlock)] == [
        "<prefix>def add(a, b):\n    return </prefix>\n<suffix>\n\nprint(add(1, 2))</suffix>"
    ]
    said = "".join(one.text for one in system.blocks if isinstance(one, TextBlock))
    assert said.startswith("Python.\n\n")
    assert "cursor" in said
    assert [one.what for one in asked.degraded] == ["suffix"]
    assert (decoded(prompt="", suffix="x").messages, decoded(suffix="x").degraded) == ((), ()), (
        "it loads a model, as Ollama does"
    )
    assert decoded(prompt="a", suffix="").degraded == ()
