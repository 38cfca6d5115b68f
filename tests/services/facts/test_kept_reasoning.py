"""A reply is kept when it finishes; one that goes on for long after that is kept a bounded number of times, and once more at its end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from bardo.call.call_recorder import _MOST_TIMES_KEPT, CallRecorder
from bardo.services.facts.price_book import PriceBook
from bardo.values.blocks import Opaque
from bardo.values.events import ContentChunk, Event, Finish, OpaqueState, ThinkChunk
from bardo.values.fold import ResponseFold
from bardo.values.request import Request
from bardo.values.response import Response

THOUGHT = ThinkChunk(0, "Hm.")


class Reader:
    """A reader of a reply that is never too long, which counts how often the whole reply is looked at."""

    holds_all = True

    def __init__(self) -> None:
        self.fold = ResponseFold()
        self.looked = 0

    def response_with_reasoning(self) -> Response:
        self.looked += 1
        return self.fold.response()

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        return {}


class CallContext:
    """What a call needs of its runner, for what is kept of it."""

    payments = None

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.prices = PriceBook()

    def clock(self) -> float:
        return 0.0

    watch = clock

    async def remember(self, response: Response, *_: object, **__: object) -> None:
        self.kept.append(response.text)


async def keep(events: list[Event]) -> tuple[CallContext, Reader]:
    means, reader = CallContext(), Reader()
    call = CallRecorder(means, Request(model="m", messages=()), "req", "")  # type: ignore[arg-type]
    for event in events:
        reader.fold.feed(event)
        if call.is_due([event]):
            await call.remember(reader, None)  # type: ignore[arg-type]
    await call.remember_rest(reader, None)  # type: ignore[arg-type]
    return means, reader


@pytest.mark.parametrize("after", [0, 1, 5, 1_000, 20_000])
def test_what_is_kept_last_is_the_whole_reply(after: int) -> None:
    events: list[Event] = [THOUGHT, ContentChunk(1, "a"), Finish("stop"), *(ContentChunk(1, "b") for _ in range(after))]
    means, reader = asyncio.run(keep(events))
    assert means.kept[-1] == "a" + "b" * after
    assert reader.looked <= _MOST_TIMES_KEPT + 1


def test_a_reply_is_kept_at_its_finish_and_not_before() -> None:
    means, _ = asyncio.run(keep([THOUGHT, ContentChunk(1, "a"), ContentChunk(1, "b")]))
    assert means.kept == []
    means, _ = asyncio.run(keep([THOUGHT, ContentChunk(1, "a"), Finish("stop")]))
    assert means.kept == ["a"]


def test_nothing_is_kept_of_text_until_more_comes() -> None:
    text: list[Event] = [ContentChunk(0, "a"), Finish("stop")]
    means, _ = asyncio.run(keep(text))
    assert means.kept == []
    means, _ = asyncio.run(keep([*text, OpaqueState(0, Opaque("signature", "signed"))]))
    assert means.kept == ["a"]


def test_what_is_kept_of_a_call_goes_with_the_call() -> None:
    call = CallRecorder(CallContext(), Request(model="m", messages=()), "req", "")  # type: ignore[arg-type]
    recorder = weakref.ref(call)
    gc.disable()
    try:
        del call
        assert recorder() is None, "a circle of references waits for the garbage collector"
    finally:
        gc.enable()
