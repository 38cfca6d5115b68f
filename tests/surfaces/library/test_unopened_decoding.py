"""Recorded replies and texts that may begin inside thinking: their own text decides, as nothing is known of the request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import bardo

pytestmark = pytest.mark.each_python

CLOSED = "First I multiply.</think>\n\n1161"
Write = Callable[[str, str], bytes]


def ollama(text: str, model: str) -> bytes:
    message = {"role": "assistant", "content": text}
    return json.dumps({"model": model, "message": message, "done": True, "done_reason": "stop"}).encode()


def ollama_lines(text: str, model: str) -> bytes:
    pieces = [text[place : place + 4] for place in range(0, len(text), 4)]
    lines: list[dict[str, Any]] = [{"message": {"role": "assistant", "content": piece}} for piece in pieces]
    lines[-1] |= {"done": True, "done_reason": "stop"}
    return b"".join(json.dumps({"model": model, "done": False, **line}).encode() + b"\n" for line in lines)


def chat(text: str, model: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"id": "c", "object": "chat.completion", "model": model, "choices": [choice]}).encode()


BODIES: dict[str, tuple[str, str, Write]] = {
    "Ollama, whole": ("ollama", "qwen3:4b", ollama),
    "Ollama, streamed": ("ollama", "qwen3:4b", ollama_lines),
    "an unknown server": ("openai-compatible", "deepseek-r1", chat),
    "a model that nobody knows": ("vllm", "lab-model", chat),
    "a host of models": ("together", "deepseek-ai/DeepSeek-R1", chat),
}
each_body = pytest.mark.parametrize(("provider", "model", "write"), BODIES.values(), ids=BODIES)


def parts(response: bardo.Response) -> tuple[str | None, str]:
    return response.reasoning.content, response.text


@each_body
def test_a_body_that_closes_thinking_which_it_never_opened_holds_thinking(
    provider: str, model: str, write: Write
) -> None:
    expected = ("First I multiply.", "\n\n1161")
    assert parts(bardo.decode(write(CLOSED, model), provider)) == expected
    assert parts(bardo.decode(write(CLOSED, model), provider, model=model)) == expected


@each_body
@pytest.mark.parametrize("text", ["1161", '{"a": 1}'])
def test_a_body_that_closes_nothing_is_the_answer(provider: str, model: str, write: Write, text: str) -> None:
    assert parts(bardo.decode(write(text, model), provider)) == (None, text)


@each_body
@pytest.mark.parametrize("pair", ["<think>\n\n</think>", "</think>"])
def test_an_empty_pair_is_no_thinking(provider: str, model: str, write: Write, pair: str) -> None:
    response = bardo.decode(write(f"{pair}1161", model), provider)
    assert parts(response) == (None, "1161")
    assert (response.reasoning.empty, response.reasoning.reasoning_tokens) == (True, 0)


TEXTS: dict[str, tuple[str, dict[str, Any], tuple[str | None, str]]] = {
    "a text that closes nothing": ("1161", {"model": "deepseek-r1"}, (None, "1161")),
    "a format by name, and a text that closes nothing": ("1161", {"format": "deepseek_r1"}, (None, "1161")),
    "a template's default": ("1161", {"model": "qwen3.5-4b", "toggles": {}}, (None, "1161")),
    "off, but it closes thinking": (
        CLOSED,
        {"model": "qwen3-4b", "toggles": {"enable_thinking": False}},
        ("First I multiply.", "\n\n1161"),
    ),
    "a prompt that opens it": ("hm", {"model": "deepseek-r1", "prompt": "<｜Assistant｜><think>\n"}, ("hm", "")),
    "the caller's own word": ("hm", {"model": "deepseek-r1", "starts_inside": True}, ("hm", "")),
    "thinking that a call ends": (
        "hm<minimax:tool_call>",
        {"model": "minimax-m2"},
        ("hm", "<minimax:tool_call>"),
    ),
    "an empty pair": ("<think>\n\n</think>1161", {"model": "qwen3-4b"}, (None, "1161")),
}


@pytest.mark.parametrize(("text", "known", "expected"), TEXTS.values(), ids=TEXTS)
def test_a_text_begins_inside_only_where_something_says_so(
    text: str, known: dict[str, Any], expected: tuple[str | None, str]
) -> None:
    assert parts(bardo.parse(text, **known)) == expected
