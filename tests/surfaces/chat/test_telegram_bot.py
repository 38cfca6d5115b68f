"""The Telegram bot against a fake of the Bot API that refuses what the real one refuses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bardo.adapters.config.settings import Settings
from bardo.adapters.stores.log import LogReader
from bardo.simulators import Fault, Script, Turn
from bardo.surfaces.chat.telegram_bot import telegram_messages
from bardo.values.errors import ConfigError
from support.any_model import Simulator
from support.chat_server import RateWindow
from support.hostile_text import HOSTILE
from support.one_day import stay_in_one_day
from support.telegram_api import TOKEN, FakeTelegram
from surfaces.chat.conftest import KEY, asked_of

pytestmark = pytest.mark.each_python

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
        task = api.bot = asyncio.create_task(telegram_bot.serve_telegram(settings, stop, ENVIRONMENT))
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
        assert [(one["type"], one["offset"], one["length"]) for one in shown.entities] == [
            ("bold", 0, 5),
            ("code", 11, 5),
        ]
        assert not any("secret" in version for version in shown.versions)
        assert api.asked("sendChatAction")
        assert api.asked("sendMessage")[0]["link_preview_options"] == {"is_disabled": True}

    run(test())


def test_an_answer_grows_by_edits_and_ends_whole(make_settings: MakeSettings, simulator: Simulator) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    simulator.play(Script((Turn(text=text),)))
    gate = simulator.hold(after=8)

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.in_chat())
            assert text.startswith(api.in_chat()[0])
            assert api.in_chat()[0] != text
            gate.release()
            await api.until(lambda: api.in_chat() == [text])
        assert len(api.shown[0].versions) > 1
        assert not api.refused

    run(test())


def test_a_long_answer_is_several_messages(make_settings: MakeSettings, simulator: Simulator) -> None:
    code = "x = 1  # 😀\n" * 700
    simulator.play(Script((Turn(text=f"Look:\n\n```python\n{code}```\nDone."),)))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Code!")
            await api.until(lambda: api.in_chat() and api.in_chat()[-1].endswith("Done."))
        assert len(api.shown) == 3
        assert "".join(api.in_chat()).replace("\n", "") == f"Look:{code}Done.".replace("\n", "")
        assert all(one.entities[0]["language"] == "python" for one in api.shown)

    run(test())


def test_the_bot_waits_as_long_as_telegram_asks(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="a b c d e f g h i j k l m n o p q r s t u v w x y z " * 5),)))
    gate = simulator.hold(after=4)

    async def test() -> None:
        fake = FakeTelegram(window=RateWindow(2, 1.0))
        async with bot_of(make_settings, fake=fake) as api:
            api.fail("sendMessage", 429, "Too Many Requests: retry after 1", retry_after=1)
            await api.say("Hi")
            await api.until(lambda: api.in_chat())
            gate.release()
            await api.until(lambda: api.in_chat()[-1].endswith("x y z"))
        assert "sendMessage: Too Many Requests: retry after 1" in api.refused
        assert len(api.shown) == 1

    run(test())


def test_two_chats_are_answered_at_once_and_apart(make_settings: MakeSettings, simulator: Simulator) -> None:
    gate = simulator.hold()

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("What is 2 * 3?", user=7)
            await api.say("What is 4 * 5?", user=8)
            await api.until(lambda: len(simulator.requests) == 2)
            gate.release()
            await api.until(lambda: api.in_chat(7) and api.in_chat(8))
        asked = [one["messages"][-1]["content"] for one in asked_of(simulator)]
        assert sorted(asked) == ["What is 2 * 3?", "What is 4 * 5?"]
        assert all(len(one["messages"]) == 1 for one in asked_of(simulator))

    run(test())


def test_a_conversation_goes_on_with_its_thinking_until_new(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(reasoning="First thought.", text="One."), Turn(text="Two."))))

    async def test() -> None:
        async with bot_of(make_settings, ALLOWED + 'system = "Be brief."\n') as api:
            await api.say("Hi")
            await api.until(lambda: api.in_chat() == ["One."])
            await api.say("And?")
            await api.until(lambda: api.in_chat()[1:] == ["Two."])
            await api.say("/new")
            await api.until(lambda: len(api.in_chat()) == 3)
            await api.say("Again")
            await api.until(lambda: api.in_chat()[3:] == ["One."])
        first, second, third = [one["messages"] for one in asked_of(simulator)]
        assert [one["role"] for one in first] == ["system", "user"]
        assert [one["role"] for one in second] == ["system", "user", "assistant", "user"]
        assert second[2]["content"] == "One."
        assert [one["role"] for one in third] == ["system", "user"]

    run(test())


def test_who_is_not_allowed_is_told_once_and_costs_nothing(make_settings: MakeSettings, simulator: Simulator) -> None:
    async def test() -> None:
        async with bot_of(make_settings) as api:
            for text in ("Hi", "Please", "/model"):
                await api.say(text, user=9)
            await api.say("@bardo_bot hi", user=9, chat=-5, kind="group")
            await api.say("What is 1 + 1?", user=7)
            await api.until(lambda: api.in_chat(7))
        assert len(api.in_chat(9)) == 1
        assert "Your id is 9" in api.in_chat(9)[0]
        assert api.in_chat(-5) == []
        assert len(simulator.requests) == 1

    run(test())


def test_in_a_group_replies_go_on_with_a_conversation(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="One."), Turn(text="Two."))))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("not to the bot", user=9, chat=-100, kind="supergroup")
            asked = await api.say("@bardo_bot Hi", user=9, chat=-100, kind="supergroup")
            await api.until(lambda: api.in_chat(-100) == ["One."])
            assert api.shown[0].reply_to == asked
            await api.say("And?", user=8, chat=-100, kind="supergroup", **api.reply_to(api.shown[0].id))
            await api.until(lambda: api.in_chat(-100) == ["One.", "Two."])
            await api.say("@bardo_bot Hi", user=9, chat=-100, kind="supergroup")
            await api.until(lambda: api.in_chat(-100) == ["One.", "Two.", "One."])
        assert [len(one["messages"]) for one in asked_of(simulator)] == [1, 3, 1]
        assert asked_of(simulator)[0]["messages"][0]["content"] == "Hi"

    run(test())


def test_models_are_chosen_from_the_list(make_settings: MakeSettings, simulator: Simulator) -> None:
    async def test() -> None:
        async with bot_of(make_settings, ALLOWED + 'models = ["sim/m2"]\n') as api:
            await api.say("/model sim/other")
            await api.until(lambda: len(api.in_chat()) == 1)
            await api.say("/model sim/m2")
            await api.until(lambda: len(api.in_chat()) == 2)
            await api.say("What is 1 + 1?")
            await api.until(lambda: len(api.in_chat()) == 3)
        assert "There is no such choice" in api.in_chat()[0]
        assert "/model sim/m2" in api.in_chat()[0]
        assert asked_of(simulator)[-1]["model"] == "m2"

    run(test())


PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40


def test_pictures_go_with_the_question(make_settings: MakeSettings, simulator: Simulator) -> None:
    async def test() -> None:
        async with bot_of(make_settings, ALLOWED + "max_picture_megabytes = 1\n") as api:
            await api.send_photo(PNG, "What is this?")
            await api.until(lambda: api.in_chat())
            await api.send_photo(b"%PDF-1.7", "And this?")
            await api.until(lambda: any("no picture" in text for text in api.in_chat()))
            await api.send_photo(PNG, size=2 * 1024 * 1024)
            await api.until(lambda: any("too large" in text for text in api.in_chat()))
            await api.say("", sticker={"file_id": "s", "file_unique_id": "s", "width": 1, "height": 1,
                                       "is_animated": False, "is_video": False, "type": "regular"})  # fmt: skip
            await api.until(lambda: any("text and pictures only" in text for text in api.in_chat()))
        assert not api.refused

    run(test())


def test_errors_are_told_in_plain_words(make_settings: MakeSettings, simulator: Simulator) -> None:
    async def test() -> None:
        async with bot_of(make_settings) as api:
            simulator.fail(Fault("status", status=401))
            await api.say("Hi")
            await api.until(lambda: api.in_chat())
        (told,) = api.in_chat()
        assert told.startswith("The model cannot be reached just now.")
        assert KEY not in told

    run(test())


def test_limits_hold_for_each_user_and_calls_are_in_the_log(make_settings: MakeSettings, simulator: Simulator) -> None:
    async def test() -> str:
        async with bot_of(make_settings, ALLOWED + "requests_per_minute = 1\nusd_per_day = 0\n") as api:
            await api.say("What is 1 + 1?", user=7)
            await api.until(lambda: api.in_chat(7))
            await api.say("What is 1 + 2?", user=7)
            await api.until(lambda: len(api.in_chat(7)) == 2)
            await api.say("What is 1 + 3?", user=8)
            await api.until(lambda: api.in_chat(8))
        return api.in_chat(7)[1]

    told = asyncio.run(test())
    assert told.startswith("You have asked as often as you may for now.")
    assert len(simulator.requests) == 2
    settings = make_settings("")
    with LogReader(settings.log.path) as reader:
        rows = reader.recent(10)
    assert {row.key_id for row in rows} == {"telegram:7", "telegram:8"}
    assert all(row.tags == ("telegram",) for row in rows)


PRICE = '\n[[prices]]\nmatch = ["m1"]\ninput = 1000.0\noutput = 1000.0\n'


def test_a_budget_holds_after_a_restart(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="word " * 100),)))
    toml = ALLOWED + f"requests_per_minute = 0\nusd_per_day = 1.05\n{PRICE}"

    async def ask(wanted: str, times: int) -> str:
        async with bot_of(make_settings, toml) as api:
            await api.say("Hi")
            # An answer that is not whole yet costs less than the budget.
            await api.until(lambda: api.in_chat() and api.in_chat()[-1].count(wanted) == times)
        return api.in_chat()[-1]

    stay_in_one_day()
    asyncio.run(ask("word", 100))
    assert "Your budget for today is used up" in asyncio.run(ask("budget", 1))
    assert len(simulator.requests) == 1


def test_a_bot_that_stops_says_so_in_its_answer(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="word " * 100),)))
    simulator.hold(after=6)

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.in_chat())
        assert api.in_chat()[0].endswith("(bardo was stopped before the answer was complete.)")

    run(test())


def test_a_chat_that_blocked_the_bot_ends_the_call(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="word " * 100),)))
    gate = simulator.hold(after=6)

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.in_chat())
            api.blocked.add(7)
            gate.release()
            await api.until(lambda: any("blocked" in one for one in api.refused))
            await api.say("What is 1 + 1?", user=8)
            await api.until(lambda: api.in_chat(8))

    run(test())


def test_a_message_that_somebody_deleted_ends_its_edits(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="word " * 100),)))
    gate = simulator.hold(after=6)

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.in_chat())
            api.shown.clear()
            gate.release()
            await api.until(lambda: any("to edit not found" in one for one in api.refused))
        assert sum("to edit not found" in one for one in api.refused) == 1

    run(test())


def test_the_bot_goes_on_when_telegram_fails_for_a_while(make_settings: MakeSettings) -> None:
    async def test() -> None:
        async with bot_of(make_settings) as api:
            api.fail("getUpdates", 502, "Bad Gateway")
            api.fail("sendMessage", 500, "Internal Server Error")
            await api.say("What is 1 + 1?")
            await api.until(lambda: api.in_chat())

    run(test())


def test_a_wrong_token_is_told_without_it(make_settings: MakeSettings) -> None:
    async def test() -> None:
        async with FakeTelegram() as api:
            settings = make_settings(f'[telegram]\nmodel = "sim/m1"\napi_url = "{api.address}"\n{ALLOWED}')
            wrong = {**ENVIRONMENT, "TELEGRAM_BOT_TOKEN": "1:wrong-token"}
            await telegram_bot.serve_telegram(settings, asyncio.Event(), wrong)

    with pytest.raises(ConfigError) as caught:
        run(test())
    assert "does not take the token in TELEGRAM_BOT_TOKEN" in str(caught.value)
    assert "wrong-token" not in str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_telegram_takes_every_hostile_text(name: str, make_settings: MakeSettings, simulator: Simulator) -> None:
    """No text of a model makes the API refuse a message."""

    async def test() -> None:
        async with FakeTelegram() as api:
            api._chats[7] = "private"
            for part in telegram_messages(HOSTILE[name]):
                fields = {"chat_id": 7, "text": part.text, "entities": [
                    {"type": one.kind, "offset": one.offset, "length": one.length} for one in part.entities
                ]}  # fmt: skip
                await api._answer("sendMessage", fields)

    run(test())
