"""A call by a name whose meaning depends on who lists which models asks for the lists first."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.calls import Call
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.call.open import open_call
from bardo.services.facts.directory import ProviderDirectory
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, ReasoningPolicy, Request
from bardo.wiring import make_services
from support.failover import NO_PAUSES

SETTINGS = """
[[providers]]
id = "lab"
preset = "deepseek"
dialect = "openai_chat"
"""
WHOLE = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
}


async def asked_of(listed: str) -> tuple[str, ReasoningPolicy | None]:
    """Return the model that a call by `m-thinking` goes to where this model is listed, and what is asked of its thinking."""

    def answer(call: Call) -> FakeReply:
        body = {"data": [{"id": listed}]} if call.method == "GET" else WHOLE
        return FakeReply(headers={"content-type": "application/json"}, chunks=[msgspec.json.encode(body)])

    transport, keyring = FakeTransport(answer), Keyring({"DEEPSEEK_API_KEY": "k"})
    directory = ProviderDirectory.of(parse_settings(SETTINGS), transport, keyring, clock=lambda: 1.0)
    services = make_services(
        directory, transport, keyring, clock=lambda: 1.0, watch=lambda: 1.0, failover=NO_PAUSES, log=None
    )
    messages = (Message(role="user", blocks=(TextBlock("2+2?"),)),)
    live = await open_call(services, Request(model="m-thinking", messages=messages, dialect="openai_chat"))
    await live.read()
    await live.close()
    assert live.attempt.request is not None
    return live.attempt.target.model, live.attempt.request.options.reasoning


@pytest.mark.parametrize(
    ("listed", "policy"), [("m", ReasoningPolicy(mode="auto")), ("m-thinking", None)], ids=["means m", "is listed"]
)
def test_a_name_with_thinking_behind_it_turns_thinking_on_by_the_lists(
    listed: str, policy: ReasoningPolicy | None
) -> None:
    assert asyncio.run(asked_of(listed)) == (listed, policy)
