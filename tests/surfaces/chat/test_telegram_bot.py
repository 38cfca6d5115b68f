"""The Telegram bot against a fake of the Bot API that refuses what the real one refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bardo.edge.log import LogReader
from bardo.edge.settings import Settings
from bardo.simulators import Script, Simulator, Turn
from support.chat_server import RateWindow
from support.telegram_api import TOKEN, FakeTelegram
from surfaces.chat.conftest import KEY

telegram_bot = pytest.importorskip("bardo.surfaces.chat.telegram_bot", reason="python-telegram-bot is not installed")

ENVIRONMENT = {"TELEGRAM_BOT_TOKEN": TOKEN, "SIM_KEY": KEY}
ALLOWED = "allowed_users = [7, 8]\nallowed_chats = [-100]\nedit_seconds = 0.2\n"
MakeSettings = Callable[[str], Settings]


@asynccontextmanager
async def bot_of(
    make: MakeSettings, toml: str = ALLOWED, *, fake: FakeTelegram | None = None
) -> AsyncIterator[FakeTelegram]:
    async with fake or FakeTelegram() as api:
        settings = make(f'[telegram]\nmodel = "sim/m1"\napi_url = "{api.address}"\n{toml}')
        stop = asyncio.Event()
        task = asyncio.create_task(telegram_bot.serve_telegram(settings, stop, ENVIRONMENT))
        try:
            yield api
        finally:
            stop.set()
            await task


def run(test: Any) -> None:
    asyncio.run(test)


def test_a_message_is_answered_without_its_thinking(simulator: Simulator, make_settings: MakeSettings) -> None:
    simulator.play(Script((Turn(reasoning="Hm, a secret thought.", text="**Hello** from `bardo`."),)))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.in_chat() == ["Hello from bardo."])
        (shown,) = api.shown
        assert [(one["type"], one["offset"], one["length"]) for one in shown.entities] == [("bold", 0, 5), ("code", 11, 5)]
        assert not any("secret" in version for version in shown.versions)
        assert api.asked("sendChatAction")
        assert api.asked("sendMessage")[0]["link_preview_options"] == {"is_disabled": True}

    run(test())
