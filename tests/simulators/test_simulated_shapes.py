"""Simulated replies have the keys, the order and the events of real ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from openai import BadRequestError, OpenAI

from bardo.simulators import Script, ToolCall, Turn, presets
from simulators.support import Body, answered, events_of, key_paths, recorded
from support.any_model import Simulator
from support.offenders import each_case

FOLDERS = {
    "anthropic": "anthropic-messages",
    "cerebras": "cerebras",
    "cohere": "cohere",
    "deepseek": "deepseek",
    "fireworks": "fireworks",
    "gemini": "gemini",
    "gemini_interactions": "gemini-interactions",
    "groq": "groq",
    "llama_server": "llamacpp",
    "minimax": "minimax",
    "mistral": "mistral",
    "ollama": "ollama-openai",
    "ollama_native": "ollama",
    "openai_chat": "openai-chat",
    "openai_responses": "openai-responses",
    "openrouter": "openrouter",
    "qwen": "qwen-dashscope",
    "venice": "venice",
    "vllm": "vllm",
    "watsonx": "watsonx",
    "xai": "xai-chat",
    "zai": "zai",
}
UNRECORDED = {
    ("gemini_interactions", False): (".steps[].summary",),
    ("qwen", False): (".choices[].message.reasoning_content", ".usage.completion_tokens_details"),
    ("fireworks", True): (".choices[].delta.tool_calls",),
}
FILLED_BY_THE_RECORDER = {"vllm"}  # An SDK wrote these recordings and put in its own null fields.
SORTED_BY_THE_RECORDER = {("qwen", False), ("zai", False)}
NAMED_BY_THE_CALLER = (".input.", ".args.", ".function.arguments.", "[].arguments.")
FRAMINGS = {"ollama_native": "ndjson"}

forms = each_case("streamed", [False, True], ids=["whole", "streamed"])
recorded_presets = each_case("preset", sorted(FOLDERS))


def test_only_providers_without_a_recording_are_not_compared() -> None:
    """Bedrock's streams are binary: test_simulated_bedrock.py compares them. Azure and Vertex have the dialects of other presets."""
    assert set(presets()) - set(FOLDERS) == {
        "azure",
        "bankr",
        "bedrock",
        "blockrun",
        "lucebox",
        "omlx",
        "ds4",
        "inline_think",
        "inline_think_implicit",
        "lmstudio",
        "moonshot",
        "sglang",
        "vertex",
        "vertex_anthropic",
    }


@forms
@recorded_presets
def test_no_key_is_invented(preset: str, streamed: bool) -> None:
    real = {path for values in real_replies(preset, streamed) for value in values for path in key_paths(value)}
    invented = paths(simulated(preset, streamed)) - real
    allowed = UNRECORDED.get((preset, streamed), ())
    assert {path for path in invented if not path.startswith(allowed) and not _named_by_caller(path)} == set()


@forms
@recorded_presets
def test_no_key_that_every_real_reply_has_is_missing(preset: str, streamed: bool) -> None:
    if preset in FILLED_BY_THE_RECORDER:
        pytest.skip("recorded with fields the server did not send")
    replies = list(real_replies(preset, streamed, thinking=True)) or list(real_replies(preset, streamed))
    common = set.intersection(*(paths(values) for values in replies))
    assert common - paths(simulated(preset, streamed)) == set()


@forms
@recorded_presets
def test_keys_stand_in_the_real_order(preset: str, streamed: bool) -> None:
    if (preset, streamed) in SORTED_BY_THE_RECORDER:
        pytest.skip("recorded with sorted keys")
    real: dict[str, set[tuple[str, ...]]] = {}
    for values in real_replies(preset, streamed, verbatim=True):
        for path, keys in (item for value in values for item in orders(value)):
            real.setdefault(path, set()).add(keys)
    if not real:
        pytest.skip("no recording kept the order")
    for path, keys in (item for value in simulated(preset, streamed) for item in orders(value)):
        shares_keys = any(set(keys) & set(other) for other in real.get(path, ()))
        if shares_keys and not path.endswith((".input", ".args", ".arguments")):
            assert any(in_one_order(keys, other) for other in real[path]), (path, keys)


@pytest.mark.parametrize(
    ("preset", "file"),
    [
        ("anthropic", "claude-haiku-4-5-20251001-stream-thinking-tool-93605414.sse"),
        ("openai_responses", "o4-mini-2025-04-16-stream-tool-942a5c2c.sse"),
    ],
)
def test_events_of_a_tool_call_come_in_the_real_order(preset: str, file: str) -> None:
    raw = next(raw for row, raw in recorded(FOLDERS[preset]) if str(row["file"]).endswith(file))
    calls = (ToolCall("weather", {"city": "Paris"}),)
    # The recorded OpenAI reply shows no summary of its reasoning.
    turn = Turn(reasoning="I look.", tool_calls=calls, redacted=preset == "openai_responses")
    simulator = Simulator(preset, script=Script((turn,)))
    assert event_order(answered(simulator, streamed=True, tools=True)) == event_order(raw)


def test_events_of_a_summarized_answer_come_in_the_real_order() -> None:
    file = "gpt-5.6-stream-thinking-06e965fc.sse"
    raw = next(raw for row, raw in recorded("openai-responses") if str(row["file"]).endswith(file))
    assert event_order(answered(Simulator("openai_responses"), streamed=True)) == event_order(raw)


def test_gemini_frames_end_in_crlf_as_the_real_ones_do() -> None:
    frames = answered(Simulator("gemini"), streamed=True)
    assert frames.count(b"\r\n\r\n") == len(events_of(frames))


def test_anthropic_pads_its_events() -> None:
    assert b"  }\n\nevent: content_block_" in answered(Simulator("anthropic"), streamed=True)


def event_order(stream: bytes) -> list[str]:
    """Give the names of the events, each run of one name once."""
    return [name for name, _ in groupby(name for name, _ in events_of(stream))]


def simulated(preset: str, streamed: bool) -> list[Body]:
    """Give all JSON of an answer and of a tool call."""
    several = {"openrouter": ("anthropic/m", "x-ai/m", "z-ai/m"), "cohere": ("m", "command-r")}
    models = several.get(preset, ("m",))
    simulator = Simulator(preset)
    asked = [(model, tools) for model in models for tools in (False, True)]
    replies = [answered(simulator, streamed=streamed, tools=tools, model=model) for model, tools in asked]
    return [value for reply in replies for value in values_of(reply, streamed)]


def real_replies(
    preset: str, streamed: bool, *, thinking: bool = False, verbatim: bool = False
) -> Iterator[list[Body]]:
    """Give all JSON of each recorded reply."""
    for row, raw in recorded(FOLDERS[preset]):
        framing = FRAMINGS.get(preset, "sse") if streamed else "json"
        wanted = row["framing"] == framing and not raw.lstrip().startswith(b"[")
        thought = isinstance(row["what"], list) and "thinking" in row["what"]
        untouched = row["fidelity"] in ("verbatim", "reframed")
        if wanted and (thought or not thinking) and (untouched or not verbatim):
            yield values_of(raw, streamed)


def values_of(raw: bytes, streamed: bool) -> list[Body]:
    return [value for _, value in events_of(raw)] if streamed else [json.loads(raw)]


def paths(values: list[Body]) -> set[str]:
    return {path for value in values for path in key_paths(value)}


def orders(value: object, path: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Give the keys of every object in their order."""
    if isinstance(value, dict):
        yield path, tuple(value)
        for name, item in value.items():
            yield from orders(item, f"{path}.{name}")
    elif isinstance(value, list):
        for item in value:
            yield from orders(item, f"{path}[]")


def in_one_order(mine: tuple[str, ...], other: tuple[str, ...]) -> bool:
    common = [key for key in mine if key in other]
    return bool(common) and common == [key for key in other if key in mine]


def _named_by_caller(path: str) -> bool:
    return any(name in path for name in NAMED_BY_THE_CALLER)


def test_a_custom_tool_of_responses_is_called_with_plain_text_and_its_history_is_read() -> None:
    call = ToolCall("apply_patch", {"input": "*** Begin"})
    tool = {"type": "custom", "name": "apply_patch"}
    with (
        Simulator(
            "openai_responses", script=Script((Turn(tool_calls=(call,)), Turn(text="Done.")))
        ).running() as server,
        OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
    ):
        ask: Any = client.responses.create
        first = ask(model="gpt-5", input="Patch it.", tools=[tool])
        [made] = [item for item in first.output if item.type == "custom_tool_call"]
        assert (made.name, made.input) == ("apply_patch", "*** Begin")
        output = {"type": "custom_tool_call_output", "call_id": made.call_id, "output": "ok"}
        history = [{"role": "user", "content": "Patch it."}, *first.output, output]
        assert ask(model="gpt-5", input=history, tools=[tool]).output_text == "Done."
        events = list(ask(model="gpt-5", input="Patch it.", tools=[tool], stream=True))
    pieces = [event.delta for event in events if event.type == "response.custom_tool_call_input.delta"]
    assert "".join(pieces) == "*** Begin"


def test_openais_chat_refuses_a_picture_in_the_result_of_a_tool() -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages: list[Any] = [
        {"role": "user", "content": [picture]},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": [picture]},
    ]
    with (
        Simulator("openai_chat").running() as server,
        OpenAI(base_url=server.base_url, api_key="k", max_retries=0) as client,
        pytest.raises(BadRequestError, match="only allowed for messages with role 'user'"),
    ):
        client.chat.completions.create(model="gpt-5-mini", messages=messages)
