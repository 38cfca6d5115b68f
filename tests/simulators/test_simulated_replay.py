"""Simulators ask earlier reasoning back as the real providers do: complete, unaltered, their own, and behind the same prefix."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bardo.simulators.delivery import Head, Send
from simulators.support import QUESTION, SCHEMA, WEATHER, body_for, incoming
from support.any_model import Simulator

Body = dict[str, Any]
MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-flash-preview",
    "openai_responses": "gpt-5",
    "deepseek": "deepseek-v4-pro",
    "moonshot": "kimi-k3",
}
BOUND = "claude-fable-5-1"


def ask(preset: str, body: Body, *, model: str = "", headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Ask a fresh simulator; gives the status and the JSON."""
    request = incoming(preset, body, model=model or MODELS[preset])
    request.headers.update(headers or {})  # type: ignore[attr-defined]
    actions = list(Simulator(preset).actions(request))
    status = next(action.status for action in actions if isinstance(action, Head))
    return status, json.loads(b"".join(action.data for action in actions if isinstance(action, Send)))


def error_of(preset: str, body: Body, *, model: str = "", headers: dict[str, str] | None = None) -> str:
    status, answer = ask(preset, body, model=model, headers=headers)
    assert status == 400
    return str(answer["error"]["message"])


def first_turn(preset: str, model: str = "") -> Body:
    body: Body = body_for(preset, model=model or MODELS[preset], tools=True, question=WEATHER)
    if preset == "anthropic" and not model:
        body["thinking"] = {"type": "enabled", "budget_tokens": 1024}
    return body


def loop(preset: str, model: str = "") -> Body:
    """Return the request that answers the tool, with the whole reply in its history."""
    body = first_turn(preset, model)
    status, reply = ask(preset, body, model=model)
    assert status == 200
    if preset == "anthropic":
        call = next(one for one in reply["content"] if one["type"] == "tool_use")
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "sunny"}
        body["messages"] += [
            {"role": "assistant", "content": reply["content"]},
            {"role": "user", "content": [result]},
        ]
    elif preset == "gemini":
        content = reply["candidates"][0]["content"]
        result = {"functionResponse": {"name": "weather", "response": {"output": "sunny"}}}
        body["contents"] += [content, {"role": "user", "parts": [result]}]
    elif preset == "openai_responses":
        call = next(one for one in reply["output"] if one["type"] == "function_call")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "sunny"}
        body["input"] = [{"role": "user", "content": WEATHER}, *reply["output"], output]
    else:
        message = reply["choices"][0]["message"]
        body["messages"] += [
            message,
            {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"},
        ]
    return body


def objects(value: Any) -> Iterator[Body]:
    """Give every object inside a value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from objects(inner)


def altered(body: Body, field: str, change: Callable[[str], str]) -> Body:
    """Return the body with a field changed wherever it stands."""
    body = copy.deepcopy(body)
    found = [one for one in objects(body) if isinstance(one.get(field), str)]
    assert found
    for one in found:
        one[field] = change(one[field])
    return body


def one_letter(text: str) -> str:
    middle = len(text) // 2
    return text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :]


def without(body: Body, field: str) -> Body:
    body = copy.deepcopy(body)
    for one in objects(body):
        one.pop(field, None)
    return body


def without_items(body: Body, where: str, kind: str) -> Body:
    body = copy.deepcopy(body)
    for one in objects(body):
        if isinstance(one.get(where), list):
            one[where] = [item for item in one[where] if not (isinstance(item, dict) and item.get("type") == kind)]
    return body


@pytest.mark.parametrize("preset", list(MODELS))
def test_a_history_that_came_back_whole_is_taken(preset: str) -> None:
    status, _ = ask(preset, loop(preset))
    assert status == 200


@pytest.mark.parametrize(
    ("preset", "field", "words"),
    [
        ("anthropic", "signature", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("anthropic", "thinking", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("gemini", "thoughtSignature", "Corrupted thought signature."),
        ("openai_responses", "encrypted_content", "could not be verified. Reason: Encrypted content could not be"),
    ],
)
def test_one_altered_letter_is_found_out(preset: str, field: str, words: str) -> None:
    body = loop(preset)
    body.pop("thinking", None)
    assert words in error_of(preset, altered(body, field, one_letter))


@pytest.mark.parametrize("place", range(0, 400, 37))
def test_a_signature_altered_anywhere_is_found_out(place: int) -> None:
    def change(text: str) -> str:
        return text[:place] + ("A" if text[place] != "A" else "B") + text[place + 1 :]

    assert "Invalid `signature`" in error_of("anthropic", altered(loop("anthropic"), "signature", change))


def test_anthropic_asks_for_the_thinking_before_its_tools_while_it_thinks_within_a_budget() -> None:
    body = without_items(loop("anthropic"), "content", "thinking")
    assert error_of("anthropic", body).startswith(
        "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is"
    )
    del body["thinking"]
    assert ask("anthropic", body)[0] == 200


@pytest.mark.parametrize("thinks", [True, False], ids=["the loop thinks", "the loop does not think"])
def test_a_turn_within_a_loop_needs_no_thinking_where_another_one_of_it_has_some(thinks: bool) -> None:
    body = loop("anthropic")
    first = body["messages"][1]["content"]
    call = {**next(one for one in first if one["type"] == "tool_use"), "id": "toolu_01second"}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "rainy"}
    body["messages"] += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    if thinks:
        assert ask("anthropic", body)[0] == 200
    else:
        assert "messages.1.content.0.type: Expected `thinking`" in error_of(
            "anthropic", without_items(body, "content", "thinking")
        )


def test_anthropic_takes_no_thinking_of_a_loop_that_goes_on_without() -> None:
    body = loop("anthropic") | {"thinking": {"type": "disabled"}}
    assert error_of("anthropic", body).startswith(
        "messages.1.content.0: When thinking is disabled, an `assistant` message"
    )
    asked = {"role": "user", "content": [{"type": "text", "text": "Thank you."}]}
    assert (
        ask("anthropic", body | {"messages": [*body["messages"], {"role": "assistant", "content": "Sunny."}, asked]})[0]
        == 200
    )
    assert ask("anthropic", without_items(body, "content", "thinking"))[0] == 200


@pytest.mark.parametrize("thinks", [True, False], ids=["the loop thinks", "the loop does not think"])
def test_openrouter_hands_on_what_is_said_of_a_loop(thinks: bool) -> None:
    model = "anthropic/claude-haiku-4.5"
    body = first_turn("openrouter", model) | {"reasoning": {"effort": "low"}}
    _, reply = ask("openrouter", body, model=model)
    message = reply["choices"][0]["message"]
    for place in ("first", "second"):
        calls = [{**message["tool_calls"][0], "id": place}]
        turn = {**message, "tool_calls": calls} if place == "first" else {"role": "assistant", "tool_calls": calls}
        body["messages"] += [turn, {"role": "tool", "tool_call_id": place, "content": "sunny"}]
    sent = body if thinks else without(body, "reasoning_details")
    assert ask("openrouter", sent, model=model)[0] == (200 if thinks else 400)


def moved_to_the_end(blocks: list[Body]) -> list[Body]:
    return [*blocks[1:], blocks[0]]


def with_a_text_before(blocks: list[Body]) -> list[Body]:
    return [{"type": "text", "text": "Let me see."}, *blocks]


def said_twice(blocks: list[Body]) -> list[Body]:
    return [blocks[0], *blocks]


@pytest.mark.parametrize("thinking", [True, False], ids=["thinking on", "thinking off"])
@pytest.mark.parametrize("change", [moved_to_the_end, with_a_text_before, said_twice])
def test_anthropic_refuses_thinking_of_the_latest_turn_that_was_moved(
    change: Callable[[list[Body]], list[Body]], thinking: bool
) -> None:
    body = loop("anthropic")
    body["messages"][1]["content"] = change(body["messages"][1]["content"])
    if not thinking:
        del body["thinking"]
    assert "in the latest assistant message cannot be modified" in error_of("anthropic", body)


def test_anthropic_refuses_an_earlier_turn_whose_thinking_does_not_come_first() -> None:
    body = loop("anthropic")
    body["messages"][1]["content"] = moved_to_the_end(body["messages"][1]["content"])
    body["messages"] += [{"role": "assistant", "content": "Sunny."}, {"role": "user", "content": "Thank you."}]
    assert error_of("anthropic", body) == (
        "messages.1.content.0: If an assistant message contains any thinking blocks, the first block must be `thinking` "
        "or `redacted_thinking`. Found `tool_use`."
    )


def test_anthropic_refuses_thinking_that_has_no_signature() -> None:
    body = altered(loop("anthropic"), "signature", lambda _: "")
    assert "Invalid `signature` in `thinking` block" in error_of("anthropic", body)


def test_anthropic_refuses_an_answer_to_go_on_with_that_ends_in_thinking() -> None:
    body = loop("anthropic")
    thought = body["messages"][1]["content"][0]
    body["messages"] = [*body["messages"][:1], {"role": "assistant", "content": [thought]}]
    assert error_of("anthropic", body) == "messages.1: The final block in an assistant message cannot be `thinking`."


def test_anthropic_asks_for_the_signature_itself() -> None:
    assert error_of("anthropic", without(loop("anthropic"), "signature")) == (
        "messages.1.content.0.thinking.signature: Field required"
    )


def test_gemini_3_asks_for_the_signature_of_a_call() -> None:
    words = error_of("gemini", without(loop("gemini"), "thoughtSignature"))
    assert words.startswith("Function call is missing a thought_signature in functionCall parts.")
    assert "`default_api:weather` , position 2." in words


def test_gemini_3_takes_the_documented_word_for_a_call_of_another_model() -> None:
    body = altered(loop("gemini"), "thoughtSignature", lambda _: "skip_thought_signature_validator")
    assert ask("gemini", body)[0] == 200


def test_gemini_3_asks_for_no_signature_of_earlier_turns() -> None:
    body = without(loop("gemini"), "thoughtSignature")
    body["contents"].append({"role": "user", "parts": [{"text": "Thank you."}]})
    assert ask("gemini", body)[0] == 200


def test_gemini_before_3_does_without_signatures() -> None:
    body = without(loop("gemini"), "thoughtSignature")
    assert ask("gemini", body, model="gemini-2.5-flash")[0] == 200


def test_openai_refuses_reasoning_that_leads_to_nothing() -> None:
    body = loop("openai_responses")
    body["input"] = [one for one in body["input"] if one.get("type") not in ("function_call", "function_call_output")]
    words = error_of("openai_responses", body)
    assert words.endswith("of type 'reasoning' was provided without its required following item.")


def test_openai_refuses_the_ciphertext_of_another_model() -> None:
    body = {**loop("openai_responses"), "model": "gpt-5.1"}
    status, answer = ask("openai_responses", body)
    assert (status, answer["error"]["code"]) == (400, "invalid_encrypted_content")


def test_deepseek_asks_for_its_reasoning_while_it_thinks() -> None:
    body = without(loop("deepseek"), "reasoning_content")
    assert error_of("deepseek", body) == "The `reasoning_content` in the thinking mode must be passed back to the API."
    assert ask("deepseek", {**body, "thinking": {"type": "disabled"}})[0] == 200


def test_moonshot_asks_for_its_reasoning_and_takes_no_empty_one() -> None:
    for body in (
        without(loop("moonshot"), "reasoning_content"),
        altered(loop("moonshot"), "reasoning_content", lambda _: ""),
    ):
        assert error_of("moonshot", body) == (
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1"
        )


@pytest.mark.parametrize(
    ("model", "change", "raw"),
    [
        ("anthropic/claude-haiku-4.5", "alter", "Invalid `signature` in `thinking` block"),
        ("anthropic/claude-haiku-4.5", "drop", "Expected `thinking` or `redacted_thinking`, but found `tool_use`"),
        ("google/gemini-3-flash-preview", "alter", "Corrupted thought signature."),
        ("google/gemini-3-flash-preview", "drop", "Function call is missing a thought_signature"),
        ("openai/gpt-5", "alter", "could not be verified"),
    ],
)
def test_openrouter_hands_on_what_the_vendor_says(model: str, change: str, raw: str) -> None:
    body = first_turn("openrouter", model) | {"reasoning": {"effort": "low"}}
    _, reply = ask("openrouter", body, model=model)
    message = reply["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": message["tool_calls"][0]["id"], "content": "sunny"}
    body["messages"] += [message, result]
    assert ask("openrouter", body, model=model)[0] == 200
    if change == "drop":
        body = without(body, "reasoning_details")
    else:
        field = "signature" if model.startswith("anthropic") else "data"
        body = altered(body, field, one_letter)
    status, answer = ask("openrouter", body, model=model)
    assert (status, answer["error"]["message"]) == (400, "Provider returned error")
    assert raw in answer["error"]["metadata"]["raw"]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda body: body | {"system": "Be brief."}, "The `system` prompt differs from"),
        (
            lambda body: body | {"tools": [*body["tools"], {"name": "time", "input_schema": SCHEMA}]},
            "The `tools` list differs",
        ),
        (
            lambda body: body | {"messages": [{"role": "user", "content": QUESTION}, *body["messages"][1:]]},
            "The message at `messages.0` differs",
        ),
    ],
    ids=["system", "tools", "message"],
)
def test_a_bound_model_names_the_part_of_the_prefix_that_differs(change: Callable[[Body], Body], part: str) -> None:
    body = change(loop("anthropic", BOUND))
    words = error_of("anthropic", body, model=BOUND)
    assert words.startswith("messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to")
    assert part in words


def test_a_bound_model_minds_neither_cache_marks_nor_how_a_text_is_spelled() -> None:
    body = loop("anthropic", BOUND)
    marked = {"type": "text", "text": WEATHER, "cache_control": {"type": "ephemeral"}}
    body["messages"][0] = {"role": "user", "content": [marked]}
    assert ask("anthropic", body, model=BOUND)[0] == 200


def test_a_bound_model_does_without_its_thinking() -> None:
    body = without_items(loop("anthropic", BOUND), "content", "thinking") | {"system": "Be brief."}
    assert ask("anthropic", body, model=BOUND)[0] == 200


def test_a_bound_model_drops_a_block_when_it_is_asked_to_and_told_so_in_a_header() -> None:
    body = loop("anthropic", BOUND) | {"system": "Be brief."}
    asked = {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    assert ask("anthropic", body | {"thinking": asked}, model=BOUND, headers=beta)[0] == 200
    assert "Extra inputs are not permitted" in error_of("anthropic", body | {"thinking": asked}, model=BOUND)
