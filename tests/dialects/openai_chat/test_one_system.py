"""System messages for servers whose chat templates take one, at the beginning: none is refused, and none is lost."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.values.request import Request, facts_of
from bardo.values.wire import Arrival

ONE_SYSTEM = ["vllm", "sglang", "llama-server", "lmstudio", "qwen", "qwen-workspace", "minimax", "openai-compatible"]


def row_of(provider: str) -> ProviderRow:
    row = builtin().provider(provider)
    assert row is not None
    return row


def read(name: str, **body: Any) -> Request:
    return dialect(name).decode_request(json.dumps({"model": "m", **body}).encode(), Arrival())


def sent(request: Request, provider: str = "vllm") -> tuple[list[dict[str, Any]], list[tuple[str, Any, Any]]]:
    wire = dialect("openai_chat").encode_request(request, row_of(provider))
    return json.loads(wire.body)["messages"], [(one.what, one.asked, one.sent) for one in wire.degraded]


def system(content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "system", "content": content, **more}


def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


CODEX = [
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "D"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "x"}]},
    {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "E"}]},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "y"}]},
]
LATER = ("messages.role", "system", "user")


@pytest.mark.parametrize("provider", ONE_SYSTEM)
def test_instructions_and_developer_items_of_codex_are_one_system_message(provider: str) -> None:
    messages, lost = sent(read("openai_responses", instructions="I", input=CODEX), provider)
    assert messages == [system("I\n\nD"), user("x"), user("E"), user("y")]
    assert lost == [LATER]


def test_a_system_message_between_the_turns_of_claude_code_is_the_users() -> None:
    turns = [user("hi"), {"role": "assistant", "content": "a"}, user("x"), system("Agent types")]
    request = read("anthropic_messages", max_tokens=9, system=[{"type": "text", "text": "S"}], messages=turns)
    messages, lost = sent(request)
    assert messages == [system("S"), *turns[:3], user("Agent types")]
    assert lost == [LATER]


def test_a_server_with_no_such_template_gets_each_where_it_stands() -> None:
    messages, lost = sent(read("openai_responses", instructions="I", input=CODEX), "groq")
    assert [message["role"] for message in messages] == ["system", "system", "user", "system", "user"]
    assert LATER not in lost


@pytest.mark.parametrize(
    ("said", "differs"),
    [
        ([system("a"), user("x")], False),
        ([user("x"), user("y")], False),
        ([system("a"), system("b"), user("x")], True),
        ([user("x"), system("a")], True),
        ([user("x"), {"role": "developer", "content": "a"}], True),
    ],
)
def test_only_a_body_with_a_later_system_message_is_not_forwarded(said: list[dict[str, Any]], differs: bool) -> None:
    request = read("openai_chat", messages=said)
    assert dialect("openai_chat").mends(request, row_of("vllm"), facts_of(request.messages)) is differs
    first = read("openai_chat", messages=said[:1])
    assert not dialect("openai_chat").mends(first, row_of("vllm"), facts_of(first.messages))


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("a", "", "a"),
        ("", "b", "b"),
        ([{"type": "text", "text": "a"}], "b", "a\n\nb"),
        (
            [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}],
            "b",
            [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
                {"type": "text", "text": "\n\nb"},
            ],
        ),
        (
            "a",
            [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}],
            [
                {"type": "text", "text": "a"},
                {"type": "text", "text": "\n\nb"},
                {"type": "text", "text": "c"},
            ],
        ),
    ],
)
def test_contents_of_a_chat_client_are_joined(first: Any, second: Any, expected: Any) -> None:
    messages, lost = sent(read("openai_chat", messages=[system(first), system(second), user("x")]))
    assert messages == [system(expected), user("x")]
    assert lost == []


def test_a_field_of_one_of_them_that_has_no_place_is_reported() -> None:
    said = [system("a", name="one"), system("b", name="two"), user("x")]
    messages, lost = sent(read("openai_chat", messages=said))
    assert messages == [system("a\n\nb", name="one"), user("x")]
    assert lost == [("messages.name", "two", "one")]


def test_an_empty_later_one_is_left_out() -> None:
    messages, lost = sent(read("openai_chat", messages=[system("a"), user("x"), system(""), user("y")]))
    assert messages == [system("a"), user("x"), user("y")]
    assert lost == []


def test_a_conversation_that_comes_again_is_sent_the_same() -> None:
    """What was written of the messages before is shared: a turn that begins otherwise must not find it changed."""
    said = [system("a" * 3000), system("b"), system("c"), user("x" * 3000), {"role": "assistant", "content": "y"}]
    for length in (3, 5, 4, 3, 5):
        for more in ([], [system("d"), user("z")], [user("z")]):
            asked = [*copy.deepcopy(said[:length]), *more]
            messages, _ = sent(read("openai_chat", messages=asked))
            leading = [one for one in asked[: length + 1] if one["role"] == "system"][: 3 if length > 3 else 4]
            rest = [{**one, "role": "user"} if one["role"] == "system" else one for one in asked[len(leading) :]]
            assert messages == [system("\n\n".join(one["content"] for one in leading)), *rest]
