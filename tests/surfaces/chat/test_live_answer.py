"""An answer while it grows, in a chat of the test's own."""

from __future__ import annotations

import asyncio

import pytest

from bardo.surfaces.chat.live_answer import LiveAnswer


class Chat:
    """A chat whose first message takes until `goes_on` to be sent."""

    typing_seconds = 1.0

    def __init__(self) -> None:
        self.messages: dict[str, str] = {}
        self.sends, self.goes_on = asyncio.Event(), asyncio.Event()

    async def send(self, part: str) -> str:
        name = str(len(self.messages))
        self.messages[name] = part
        self.sends.set()
        await self.goes_on.wait()
        return name

    async def edit(self, message: str, part: str) -> None:
        self.messages[message] = part

    async def delete(self, message: str) -> None:
        del self.messages[message]

    async def typing(self) -> None:
        """Nobody looks."""

    async def notice(self, text: str) -> None:
        """Nobody looks."""


def test_a_bot_that_stops_while_the_last_edit_is_under_way_shows_its_last_words_in_the_same_message() -> None:
    async def run() -> None:
        chat = Chat()
        live = LiveAnswer(chat, lambda text: [text], seconds=0)
        live.add("Hello")
        await chat.sends.wait()
        ending = asyncio.ensure_future(live.finish(["Hello there"]))
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        chat.goes_on.set()
        await live.finish(["Hello (stopped)"])
        await live.abandon()
        assert chat.messages == {"0": "Hello (stopped)"}

    asyncio.run(run())
