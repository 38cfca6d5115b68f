"""A call is told where the prompts of its client begin anew each time, so that no cache holds them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.net.fake import FakeReply, FakeTransport
from bardo.adapters.net.keys import Keyring
from bardo.adapters.stores.log.columns import WATCHED
from bardo.call.open import open_call
from bardo.services.facts.directory import ProviderDirectory
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request
from bardo.wiring import make_services
from support.failover import NO_PAUSES

SETTINGS = """
[[providers]]
id = "lab"
preset = "deepseek"
dialect = "openai_chat"
models = ["m"]
"""
WHOLE = {
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "4"}, "finish_reason": "stop"}],
}
RULES = "".join(f"Rule {number} of the house says what to do. " for number in range(150))


async def degraded(prompts: Sequence[tuple[Message, ...]]) -> list[bool]:
    """Return of each call whether its client is told that no cache holds its prompt."""
    settings, keyring = parse_settings(SETTINGS), Keyring({"DEEPSEEK_API_KEY": "k"})
    transport = FakeTransport(
        lambda call: FakeReply(headers={"content-type": "application/json"}, chunks=[msgspec.json.encode(WHOLE)])
    )
    directory = ProviderDirectory.of(settings, transport, keyring, clock=lambda: 1.0)
    services = make_services(
        directory, transport, keyring, clock=lambda: 1.0, watch=lambda: 1.0, failover=NO_PAUSES, log=None
    )
    told: list[bool] = []
    for messages in prompts:
        live = await open_call(services, Request(model="m", messages=messages, dialect="openai_chat"))
        await live.read()
        told.append(WATCHED in [one.what for one in live.response().degraded])
        await live.close()
    return told


@pytest.mark.parametrize(("role", "told"), [("system", True), ("user", False)])
def test_a_call_is_told_of_a_system_prompt_that_begins_anew_each_time(role: str, told: bool) -> None:
    heads = [f"It is {number:02}:00:{number * 7:02}. {RULES}" for number in range(6)]
    asked = Message(role="user", blocks=(TextBlock("hi"),))
    prompts = [(msgspec.structs.replace(asked, role=role, blocks=(TextBlock(head),)), asked) for head in heads]
    assert asyncio.run(degraded(prompts)) == [False] * 4 + [told] * 2
