"""A reply is kept when it finishes; one that goes on for long after that is kept a bounded number of times, and once more at its end."""

from __future__ import annotations

import asyncio
import gc
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from bardo.adapters.config.settings import Settings
from bardo.adapters.net.client import HttpTransport
from bardo.adapters.net.keys import Keyring
from bardo.call.reply import _MOST_TIMES_KEPT, LiveReply, ReasoningKeeper
from bardo.services.facts.directory import ProviderDirectory
from bardo.values.blocks import Opaque
from bardo.values.events import ContentChunk, Event, Finish, OpaqueState, ThinkChunk
from bardo.values.fold import ResponseFold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.wiring import make_services

THOUGHT = ThinkChunk(0, "Hm.")


class Reader:
    """A reader of a reply that is never too long, which counts how often the whole reply is looked at."""

    def __init__(self) -> None:
        self.fold = ResponseFold()
        self.looked = 0

    @property
    def fold_with_reasoning(self) -> ResponseFold:
        self.looked += 1
        return self.fold

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        return {}


class Call:
    """A call as far as its reasoning is kept."""

    layers = None
    tenant = request_id = ""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.services = SimpleNamespace(replay=self)

    async def remember(self, response: Response, *_: object, **__: object) -> None:
        self.kept.append(response.text)


async def keep(events: list[Event]) -> tuple[Call, Reader]:
    call, reader = Call(), Reader()
    keeper = ReasoningKeeper(call, Request(model="m", messages=()))  # type: ignore[arg-type]
    for event in events:
        reader.fold.feed(event)
        if keeper.is_due([event]):
            await keeper.keep(reader, None)  # type: ignore[arg-type]
    await keeper.keep_rest(reader, None)  # type: ignore[arg-type]
    return call, reader


@pytest.mark.parametrize("after", [0, 1, 5, 1_000, 20_000])
def test_what_is_kept_last_is_the_whole_reply(after: int) -> None:
    events: list[Event] = [THOUGHT, ContentChunk(1, "a"), Finish("stop"), *(ContentChunk(1, "b") for _ in range(after))]
    call, reader = asyncio.run(keep(events))
    assert call.kept[-1] == "a" + "b" * after
    assert reader.looked <= _MOST_TIMES_KEPT + 1


def test_a_reply_is_kept_at_its_finish_and_not_before() -> None:
    call, _ = asyncio.run(keep([THOUGHT, ContentChunk(1, "a"), ContentChunk(1, "b")]))
    assert call.kept == []
    call, _ = asyncio.run(keep([THOUGHT, ContentChunk(1, "a"), Finish("stop")]))
    assert call.kept == ["a"]


def test_nothing_is_kept_of_text_until_more_comes() -> None:
    text: list[Event] = [ContentChunk(0, "a"), Finish("stop")]
    call, _ = asyncio.run(keep(text))
    assert call.kept == []
    call, _ = asyncio.run(keep([*text, OpaqueState(0, Opaque("signature", "signed"))]))
    assert call.kept == ["a"]


def test_what_is_kept_of_a_call_goes_with_the_call() -> None:
    transport, keyring = HttpTransport(), Keyring({})
    directory = ProviderDirectory.of(Settings(), transport, keyring, clock=time.monotonic)
    services = make_services(directory, transport, keyring)
    live = LiveReply(services, Request(model="m", messages=()))
    reply = weakref.ref(live)
    gc.disable()
    try:
        del live
        assert reply() is None, "a circle of references waits for the garbage collector"
    finally:
        gc.enable()
