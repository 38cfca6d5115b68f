"""Whole requests made from the structs of a dialect, with and without what does not belong there."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import Any, get_args

import msgspec
import pytest

from bardo.dialects import dialect
from bardo.dialects.shared.structs import read
from bardo.values.blocks import Carried
from bardo.values.errors import CallerError, InvalidRequest
from bardo.values.wire import Arrival
from support.generated_wire import GeneratedValues
from support.offenders import each_case

DIALECTS = ("bedrock_converse", "cohere", "ollama")
ARRIVAL = Arrival(model="m")


PARTS = {
    "anthropic_messages": ("Block", "messages"),
    "cohere": ("Part", "messages"),
    "gemini_interactions": ("Item", "input"),
    "openai_chat": ("Part", "messages"),
    "openai_responses": ("Part", "input"),
}
"""The structs of what a conversation holds, by the name of their union, and the field that has the conversation."""


def _struct(name: str) -> Any:
    return import_module(f"bardo.dialects.{name}.wire").Request


@pytest.mark.parametrize("name", DIALECTS)
def test_a_request_is_read_or_refused_in_words(name: str) -> None:
    for seed in range(150):
        oddity = (0.0, 0.02, 0.2)[seed % 3]
        body = GeneratedValues((name, seed), oddity).of(_struct(name))
        with suppress(CallerError):
            dialect(name).decode_request(msgspec.json.encode(body), ARRIVAL)
        try:
            read(body, _struct(name), "")
        except InvalidRequest:
            assert oddity, body


@pytest.mark.parametrize("name", DIALECTS)
def test_a_field_that_nobody_knows_is_carried_and_changes_nothing_else(name: str) -> None:
    for seed in range(60):
        body = GeneratedValues((name, seed)).of(_struct(name))
        for message in body.get("messages") or ():
            message["role"] = "user"
        try:
            request = dialect(name).decode_request(msgspec.json.encode(body), ARRIVAL)
        except CallerError:
            continue
        further = dialect(name).decode_request(msgspec.json.encode({**body, "unheard_of": {"a": None}}), ARRIVAL)
        assert further.extra == {**request.extra, "unheard_of": {"a": None}}
        assert (further.messages, further.tools, further.sampling) == (
            request.messages,
            request.tools,
            request.sampling,
        )


@pytest.mark.parametrize("name", DIALECTS)
def test_a_long_conversation_may_hold_what_nobody_knows(name: str) -> None:
    content: Any = [{"text": "a" * 3000}] if name == "bedrock_converse" else "a" * 3000
    messages = [{"role": "user", "content": content, "unheard_of": 1}] * 5
    found = dialect(name).decode_request(msgspec.json.encode({"messages": messages}), ARRIVAL).messages
    assert [message.carried for message in found] == [Carried(name, {"unheard_of": 1})] * 5


@each_case("name", PARTS)
def test_a_part_of_every_kind_that_is_read_becomes_a_part_of_the_conversation(name: str) -> None:
    union, field = PARTS[name]
    for kind in get_args(getattr(import_module(f"bardo.dialects.{name}.wire"), union)):
        read_once = False
        for seed in range(20):
            part = GeneratedValues((name, kind.__name__, seed)).of(kind)
            said = [part] if union == "Item" else [{"role": ("user", "assistant")[seed % 2], "content": [part]}]
            with suppress(CallerError):
                body = {"model": "m", "max_tokens": 9, field: said}
                found = dialect(name).decode_request(msgspec.json.encode(body), ARRIVAL)
                # An item may be a turn in which nothing is said.
                taken = found.messages if union == "Item" else found.messages[-1].blocks
                assert taken, f"request_in.py reads nothing of {part}"
                read_once = True
        assert read_once, f"no part that is a {kind.__name__} is taken"
