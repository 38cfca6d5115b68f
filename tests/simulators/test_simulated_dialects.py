"""What each provider shows of reasoning, where, and how it counts it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from bardo.simulators import PRESETS, Script, ToolCall, Turn, Usage, presets
from bardo.simulators.delivery import Send
from bardo.simulators.fields import at, rows, text
from simulators.support import Body, answered, body_for, events_of, incoming
from support.any_model import Simulator

USAGE = Usage(input_tokens=100, answer_tokens=10, reasoning_tokens=30, cached_input_tokens=40)
TURN = Turn(reasoning="I think.", text="Answer.", usage=USAGE)
CHAT = [name for name in presets() if PRESETS[name].dialect == "openai_chat"]
UNSHOWN = {"openai_chat", "inline_think", "inline_think_implicit", "mistral"}
NO_DONE = {"cerebras", "minimax"}


def say(preset: str, turn: Turn = TURN, *, streamed: bool = False, model: str = "m", **fields: Any) -> bytes:
    body = body_for(preset, model=model, streamed=streamed) | fields
    asked = incoming(preset, body, model=model, streamed=streamed)
    return b"".join(a.data for a in Simulator(preset, script=Script((turn,))).actions(asked) if isinstance(a, Send))


def reply(preset: str, turn: Turn = TURN, model: str = "m", **fields: Any) -> Body:
    value: Body = json.loads(say(preset, turn, model=model, **fields))
    return value


def chunks(preset: str, turn: Turn = TURN, model: str = "m", **fields: Any) -> list[Body]:
    return [value for _, value in events_of(say(preset, turn, streamed=True, model=model, **fields))]


def message(value: Body) -> Body:
    found = at(rows(value["choices"])[0], "message")
    assert isinstance(found, dict)
    return found


def deltas(values: Sequence[Body]) -> list[Body]:
    return [delta for value in values for choice in rows(value.get("choices")) if (delta := _delta(choice))]


def _delta(choice: Body) -> Body:
    found = choice.get("delta")
    return found if isinstance(found, dict) else {}


@pytest.mark.parametrize("preset", sorted(set(CHAT) - UNSHOWN))
def test_reasoning_stands_in_the_providers_field_whole_and_streamed(preset: str) -> None:
    field = getattr(PRESETS[preset], "reasoning_field")  # noqa: B009 - only chat providers have it
    assert message(reply(preset))[field] == "I think."
    assert "".join(text(delta.get(field)) for delta in deltas(chunks(preset))) == "I think."


@pytest.mark.parametrize("preset", sorted(set(CHAT) - {"inline_think", "inline_think_implicit", "mistral"}))
def test_the_answer_is_the_same_whole_and_streamed(preset: str) -> None:
    streamed = "".join(text(delta.get("content")) for delta in deltas(chunks(preset)))
    assert message(reply(preset))["content"] == streamed.removeprefix("\n") == "Answer."


@pytest.mark.parametrize("preset", CHAT)
def test_a_stream_ends_as_the_providers_does(preset: str) -> None:
    assert say(preset, streamed=True).endswith(b"data: [DONE]\n\n") is (preset not in NO_DONE)


def test_openai_never_shows_reasoning_and_gives_usage_only_when_asked() -> None:
    assert b"I think" not in say("openai_chat") + say("openai_chat", streamed=True)
    assert at(reply("openai_chat"), "usage.completion_tokens_details.reasoning_tokens") == 30
    assert at(chunks("openai_chat")[-1], "usage.completion_tokens") == 40
    assert all("usage" not in value for value in chunks("openai_chat", stream_options=None))


@pytest.mark.parametrize("preset", ["openai_chat", "deepseek", "groq", "qwen", "openrouter", "zai", "minimax"])
def test_reasoning_is_counted_inside_the_completion(preset: str) -> None:
    usage = reply(preset)["usage"]
    assert (at(usage, "completion_tokens"), at(usage, "total_tokens")) == (40, 140)


def test_xai_counts_reasoning_beside_the_completion() -> None:
    usage = reply("xai")["usage"]
    assert (at(usage, "completion_tokens"), at(usage, "total_tokens")) == (10, 140)
    assert at(usage, "completion_tokens_details.reasoning_tokens") == 30


def test_deepseek_starts_with_null_content_and_counts_cache_hits() -> None:
    values = chunks("deepseek")
    assert deltas(values)[0] == {"role": "assistant", "content": None, "reasoning_content": ""}
    assert at(values[-1], "usage.prompt_cache_hit_tokens") == 40
    assert at(values[-1], "usage.prompt_cache_miss_tokens") == 60
    assert at(rows(values[-1]["choices"])[0], "finish_reason") == "stop"


@pytest.mark.parametrize(("preset", "opener"), [("inline_think", "<think>\n"), ("inline_think_implicit", "")])
def test_inline_tags_are_cut_in_two(preset: str, opener: str) -> None:
    said = [text(delta.get("content")) for delta in deltas(chunks(preset))]
    assert "".join(said) == f"{opener}I think.\n</think>\n\nAnswer."
    assert message(reply(preset))["content"] == "".join(said)
    assert not any("<think>" in piece or "</think>" in piece for piece in said)


def test_mistral_thinks_in_lists_and_speaks_in_strings() -> None:
    turn = Turn(reasoning="abcdefghij", text="klmnopqrstuvw")
    contents = [delta["content"] for delta in deltas(chunks("mistral", turn))]
    kinds = ["list" if isinstance(content, list) else "string" for content in contents]
    assert kinds == ["string", "string", "list", "list", "string"]
    assert [part["type"] for part in rows(contents[3])] == ["thinking", "text"]


def test_minimax_repeats_its_reasoning_in_two_fields() -> None:
    for delta in deltas(chunks("minimax"))[:-1]:
        assert delta.get("reasoning_content") == text(at(rows(delta.get("reasoning_details"))[0], "text"))


def test_groq_says_the_usage_in_the_last_chunks() -> None:
    *_, finished, last = chunks("groq")
    assert at(finished, "x_groq.usage") == finished["usage"] == last["usage"]
    assert last["choices"] == []


def test_openrouter_has_comments_a_cost_and_a_provider() -> None:
    assert say("openrouter", streamed=True).startswith(b": OPENROUTER PROCESSING\n\n")
    assert at(chunks("openrouter")[-1], "usage.cost")
    assert chunks("openrouter", model="anthropic/x")[0]["provider"] == "Anthropic"


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        ("anthropic/claude", ["reasoning.text"]),
        ("openai/gpt", ["reasoning.summary", "reasoning.encrypted"]),
        ("google/gemini", ["reasoning.text", "reasoning.encrypted"]),
        ("z-ai/glm", ["reasoning.text"]),
    ],
)
def test_openrouters_details_follow_the_models_maker(model: str, kinds: list[str]) -> None:
    whole = rows(message(reply("openrouter", model=model))["reasoning_details"])
    streamed = [
        row for delta in deltas(chunks("openrouter", model=model)) for row in rows(delta.get("reasoning_details"))
    ]
    assert [detail["type"] for detail in whole] == kinds
    assert list(dict.fromkeys(detail["type"] for detail in streamed)) == kinds
    assert (streamed[-1].get("signature") or "") == (whole[0].get("signature") or "")


def test_responses_has_two_ciphertexts_and_the_later_is_longer() -> None:
    values = chunks("openai_responses")
    added, done = (next(v for v in values if v["type"] == f"response.output_item.{end}") for end in ("added", "done"))
    early, late = text(at(added, "item.encrypted_content")), text(at(done, "item.encrypted_content"))
    assert 0 < len(early) < len(late)
    assert [value["sequence_number"] for value in values] == list(range(len(values)))
    assert b"[DONE]" not in say("openai_responses", streamed=True)


def test_responses_shows_a_summary_only_when_asked() -> None:
    shown, unasked = reply("openai_responses"), reply("openai_responses", reasoning={"effort": "low"})
    assert rows(rows(shown["output"])[0]["summary"])[0]["text"] == "I think."
    assert rows(unasked["output"])[0]["summary"] == []
    assert at(shown, "usage.output_tokens_details.reasoning_tokens") == 30


@pytest.mark.parametrize(
    ("turn", "block"),
    [
        (TURN, {"type": "thinking", "thinking": "I think."}),
        (Turn(reasoning="I think.", hidden=True, text="x"), {"type": "thinking", "thinking": ""}),
        (Turn(reasoning="I think.", redacted=True, text="x"), {"type": "redacted_thinking"}),
    ],
    ids=["shown", "empty", "redacted"],
)
def test_anthropics_thinking_blocks(turn: Turn, block: Body) -> None:
    found = rows(reply("anthropic", turn)["content"])[0]
    assert block.items() <= found.items()
    assert found.get("signature") or found.get("data")
    values = chunks("anthropic", turn)
    kinds = [at(value, "delta.type") for value in values if value.get("index") == 0 and "delta" in value]
    if found["type"] == "thinking":
        assert kinds[-1] == "signature_delta"
        assert kinds.count("signature_delta") == 1
    else:
        assert kinds == []


def test_anthropics_first_usage_is_provisional_and_excludes_the_cache() -> None:
    values = chunks("anthropic")
    assert at(values[0], "message.usage.output_tokens") == 8
    final = values[-2]["usage"]
    assert (at(final, "input_tokens"), at(final, "cache_read_input_tokens")) == (60, 40)
    assert (at(final, "output_tokens"), at(final, "output_tokens_details.thinking_tokens")) == (40, 30)


def test_gemini_shows_thoughts_only_when_asked_and_counts_them_outside() -> None:
    parts = rows(at(rows(reply("gemini")["candidates"])[0], "content.parts"))
    assert [part.get("thought") for part in parts] == [True, None]
    assert parts[1]["thoughtSignature"]
    unasked = reply("gemini", generationConfig={})
    assert b"I think" not in json.dumps(unasked).encode()
    usage = unasked["usageMetadata"]
    assert (at(usage, "candidatesTokenCount"), at(usage, "thoughtsTokenCount")) == (10, 30)


def test_gemini_signs_function_calls_or_else_an_empty_last_text() -> None:
    called = chunks("gemini", Turn(reasoning="r", tool_calls=(ToolCall("f", {"x": 1}),)), tools=GEMINI_TOOLS)
    signed = [part for value in called for part in _parts(value) if "thoughtSignature" in part]
    assert [at(part, "functionCall.name") for part in signed] == ["f"]
    last = _parts(chunks("gemini")[-1])
    assert last[0]["text"] == ""
    assert last[0]["thoughtSignature"]


def test_gemini_without_sse_streams_one_array() -> None:
    simulator = Simulator("gemini")
    asked = incoming("gemini", body_for("gemini"), streamed=True)
    plain = [a.data for a in simulator.actions(replace(asked, query={})) if isinstance(a, Send)]
    assert len(plain) > 3
    assert len(json.loads(b"".join(plain))) == len(plain) - 1


def test_interactions_always_sign_thoughts_and_summarize_them_only_when_asked() -> None:
    thought, output = rows(reply("gemini_interactions")["steps"])
    assert thought["signature"]
    assert thought["summary"] == [{"text": "I think.", "type": "text"}]
    assert rows(output["content"])[0]["text"] == "Answer."
    (unasked, _) = rows(reply("gemini_interactions", generation_config={})["steps"])
    assert unasked == {"signature": thought["signature"], "type": "thought"}
    assert b"I think" not in say("gemini_interactions", streamed=True, generation_config={})
    assert b"signature" not in say("gemini_interactions", Turn(text="x"))


def test_interactions_count_thoughts_outside_and_tell_a_stream_step_by_step() -> None:
    usage = reply("gemini_interactions")["usage"]
    assert (at(usage, "total_output_tokens"), at(usage, "total_thought_tokens")) == (10, 30)
    assert at(usage, "total_tokens") == 140
    values = chunks("gemini_interactions")
    assert [value.get("index") for value in values] == [None, None, 0, 0, 0, 0, 1, 1, 1, None]
    assert at(values[-1], "interaction.usage") == usage
    assert say("gemini_interactions", streamed=True).endswith(b"event: done\ndata: [DONE]\n\n")


def test_a_summary_of_interactions_is_never_cut() -> None:
    turn = Turn(reasoning_summary=("a first part " * 9, "a second part " * 9), text="x")
    told = [at(value, "delta.content.text") for value in chunks("gemini_interactions", turn)]
    assert [text for text in told if text] == list(turn.summary)


def test_a_call_of_interactions_comes_in_pieces_of_json() -> None:
    call = Turn(reasoning="r", tool_calls=(ToolCall("weather", {"city": "Paris, France"}),))
    values = chunks("gemini_interactions", call, tools=[{"type": "function", "name": "weather"}])
    pieces = [text(at(value, "delta.arguments")) for value in values]
    assert json.loads("".join(pieces)) == {"city": "Paris, France"}
    assert at(values[-1], "interaction.status") == "requires_action"


@pytest.mark.parametrize(("model", "warned"), [("ibm/granite-3-3-8b-instruct", False), ("google/flan-ul2", True)])
def test_watsonx_warns_of_models_that_are_not_ibms(model: str, warned: bool) -> None:
    assert ("system" in reply("watsonx", model=model)) is warned
    assert ["system" in value for value in chunks("watsonx", model=model)][:2] == [warned, False]


def test_watsonx_thinks_in_the_text_and_counts_the_prompt_once() -> None:
    (result,) = rows(reply("watsonx")["results"])
    assert result["generated_text"] == "<think>\nI think.\n</think>\n\nAnswer."
    assert (result["input_token_count"], result["generated_token_count"]) == (100, 40)
    streamed = [rows(value["results"])[0] for value in chunks("watsonx")]
    assert "".join(text(one["generated_text"]) for one in streamed) == result["generated_text"]
    assert [one["input_token_count"] for one in streamed] == [100] + [0] * (len(streamed) - 1)
    grown = [one["generated_token_count"] for one in streamed]
    assert grown == sorted(grown, key=lambda count: int(str(count)))
    assert grown[-1] == 40
    assert {one["stop_reason"] for one in streamed[:-1]} == {"not_finished"}
    assert streamed[-1]["stop_reason"] == "eos_token"


@pytest.mark.parametrize(
    ("preset", "switch"),
    [
        ("anthropic", {"thinking": {"type": "disabled"}}),
        ("deepseek", {"thinking": {"type": "disabled"}}),
        ("gemini", {"generationConfig": {"thinkingConfig": {"thinkingBudget": 0, "includeThoughts": True}}}),
        ("openai_responses", {"reasoning": {"effort": "none", "summary": "auto"}}),
        ("openrouter", {"reasoning": {"enabled": False}}),
        ("qwen", {"enable_thinking": False}),
        ("vllm", {"chat_template_kwargs": {"enable_thinking": False}}),
    ],
)
def test_reasoning_can_be_switched_off(preset: str, switch: dict[str, Any]) -> None:
    assert b"I think" in say(preset, Turn(reasoning="I think", text="x"))
    raw = say(preset, Turn(reasoning="I think", text="x"), **switch)
    assert b"I think" not in raw
    assert b"ignature" not in raw


def test_hidden_reasoning_is_still_counted() -> None:
    value = reply("openrouter", reasoning={"exclude": True})
    assert message(value)["reasoning"] is None
    assert at(value, "usage.completion_tokens_details.reasoning_tokens") == 30


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_deltas_are_as_long_as_asked(size: int) -> None:
    values = [v for _, v in events_of(answered(Simulator("vllm", delta_size=size), streamed=True))]
    pieces = [piece for delta in deltas(values) if (piece := text(delta.get("reasoning")))]
    assert all(len(piece) == size for piece in pieces[:-1])


GEMINI_TOOLS = [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}}]}]


def _parts(value: Body) -> list[Body]:
    return rows(at(rows(value["candidates"])[0], "content.parts"))
