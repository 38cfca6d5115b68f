"""Attempts that run at once: one of them is the reply, and no other stays open."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from bardo.call.open import Race
from bardo.call.upstream import UpstreamReply


class Opened:
    """An attempt that was sent, and what became of it."""

    closed = lost = False

    def note_ended(self, *, lost: bool) -> None:
        self.lost = lost

    async def close(self) -> None:
        self.closed = True


def test_a_winner_that_nobody_gets_is_closed() -> None:
    async def run() -> None:
        first, second = Opened(), Opened()
        begins, hangs_up, has_hung_up = asyncio.Event(), asyncio.Event(), asyncio.Event()

        async def open_reply(opened: UpstreamReply) -> None:
            if opened is cast("UpstreamReply", first):
                await begins.wait()
                return
            begins.set()
            try:
                await asyncio.Event().wait()
            finally:
                hangs_up.set()
                await has_hung_up.wait()

        race = Race(open_reply)
        racing = asyncio.ensure_future(race.run(cast("UpstreamReply", first), 0, lambda: cast("UpstreamReply", second)))
        await hangs_up.wait()
        racing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await racing
        assert first.closed

    asyncio.run(run())
