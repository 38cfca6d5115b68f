"""The Discord bot against a fake of REST v10 and the gateway v10 that refuses what the real ones refuse."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bardo.adapters.config.settings import Settings
from bardo.simulators import Fault, Script, Turn
from bardo.surfaces.chat.discord_format import discord_messages
from bardo.values.errors import ConfigError
from support.any_model import Simulator
from support.chat_server import RateWindow
from support.discord_api import CHANNEL, EPHEMERAL, GUILD, SUPPRESS_EMBEDS, THREAD, TOKEN, FakeDiscord
from support.hostile_text import HOSTILE
from surfaces.chat.conftest import KEY, asked_of

discord_bot = pytest.importorskip("bardo.surfaces.chat.discord_bot", reason="discord.py is not installed")

ENVIRONMENT = {"DISCORD_BOT_TOKEN": TOKEN, "SIM_KEY": KEY}
ALLOWED = f"allowed_users = [7, 8]\nallowed_guilds = [{GUILD}]\nedit_seconds = 0.2\n"
MakeSettings = Callable[[str], Settings]


@asynccontextmanager
async def bot_of(
    make: MakeSettings, toml: str = ALLOWED, *, fake: FakeDiscord | None = None
) -> AsyncIterator[FakeDiscord]:
    async with fake or FakeDiscord() as api:
        settings = make(f'[discord]\nmodel = "sim/m1"\napi_url = "{api.api_url}"\n{toml}')
        stop, ready = asyncio.Event(), asyncio.Event()
        task = api.bot = asyncio.create_task(
            discord_bot.serve_discord(settings, stop, ENVIRONMENT, announce=lambda _: ready.set())
        )
        try:
            await api.until(ready.is_set)
            yield api
        finally:
            stop.set()
            await task


def run(test: Any) -> None:
    asyncio.run(test)


def test_a_button_reveals_the_thinking_to_whoever_presses_it(simulator: Simulator, make_settings: MakeSettings) -> None:
    simulator.play(Script((Turn(reasoning="Hm, a thought for @everyone.", text="**Hello** @everyone <@7>."),)))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.shown and api.shown[0].buttons)
            (shown,) = api.shown
            assert shown.content == "**Hello** @\u200beveryone <\u200b@7>."
            assert shown.buttons[0]["label"] == "Show reasoning"
            assert shown.flags == SUPPRESS_EMBEDS
            assert not any("thought" in version for version in shown.versions)
            pressed = await api.press(shown, user=8)
            await api.until(lambda: pressed.seen)
        assert pressed.seen == ["Hm, a thought for @\u200beveryone."]
        assert all(flags & EPHEMERAL for flags in pressed.flags)
        assert len(api.shown) == 1
        assert api.typed > 0
        assert not api.pinged
        assert not api.refused

    run(test())


def test_an_answer_grows_by_edits_and_ends_whole(make_settings: MakeSettings, simulator: Simulator) -> None:
    text = " ".join(f"word{number}" for number in range(60))
    simulator.play(Script((Turn(text=text),)))
    gate = simulator.hold(after=8)

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.in_channel())
            assert text.startswith(api.in_channel()[0])
            gate.release()
            await api.until(lambda: api.in_channel() == [text])
        assert len(api.shown[0].versions) > 1
        assert not api.shown[0].buttons
        assert not api.refused

    run(test())


def test_a_long_answer_is_several_messages(make_settings: MakeSettings, simulator: Simulator) -> None:
    code = "x = 1  # 😀\n" * 400
    simulator.play(Script((Turn(reasoning="Hm.", text=f"Look:\n\n```python\n{code}```\nDone."),)))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Code!")
            await api.until(lambda: api.shown and api.shown[-1].buttons)
        contents = api.in_channel()
        assert len(contents) == 3
        assert all("```python\n" in content and content.count("```") == 2 for content in contents)
        assert contents[-1].endswith("Done.")
        assert [bool(one.buttons) for one in api.shown] == [False, False, True]

    run(test())


def test_the_bot_waits_as_long_as_discord_asks(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="word " * 60 + "end"),)))
    gate = simulator.hold(after=4)

    async def test() -> None:
        fake = FakeDiscord(window=RateWindow(3, 1.0))
        async with bot_of(make_settings, fake=fake) as api:
            api.limit_next = 1
            await api.say("Hi")
            await api.until(lambda: api.in_channel())
            gate.release()
            await api.until(lambda: api.in_channel()[-1].endswith("end"))
        assert any(refusal.endswith(": 0") for refusal in api.refused)
        assert len(api.shown) == 1

    run(test())


def test_two_people_are_answered_at_once_and_apart(make_settings: MakeSettings, simulator: Simulator) -> None:
    gate = simulator.hold()

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("What is 2 * 3?", user=7)
            await api.say("What is 4 * 5?", user=8)
            await api.until(lambda: len(simulator.requests) == 2)
            gate.release()
            await api.until(lambda: api.in_channel(10_007) and api.in_channel(10_008))
        asked = [one["messages"][-1]["content"] for one in asked_of(simulator)]
        assert sorted(asked) == ["What is 2 * 3?", "What is 4 * 5?"]

    run(test())


def test_in_a_server_it_answers_who_names_it_and_goes_on_by_replies(
    make_settings: MakeSettings, simulator: Simulator
) -> None:
    simulator.play(Script((Turn(text="One."), Turn(text="Two."))))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("not to the bot", user=9, channel=CHANNEL)
            asked = await api.say("<@500> Hi", user=9, channel=CHANNEL)
            await api.until(lambda: api.in_channel(CHANNEL) == ["One."])
            assert api.shown[0].reply_to == asked
            await api.say("And?", user=8, channel=CHANNEL, **api.reply_to(api.shown[0]))
            await api.until(lambda: api.in_channel(CHANNEL) == ["One.", "Two."])
            await api.say("<@500> Hi", user=9, channel=THREAD)
            await api.until(lambda: api.in_channel(THREAD) == ["One."])
            await api.say("<@500> And?", user=9, channel=THREAD)
            await api.until(lambda: api.in_channel(THREAD) == ["One.", "Two."])
        assert [len(one["messages"]) for one in asked_of(simulator)] == [1, 3, 1, 3]
        assert asked_of(simulator)[0]["messages"][0]["content"] == "Hi"
        assert not api.pinged

    run(test())


def test_who_is_not_allowed_gets_no_answer_and_no_thinking(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(reasoning="A thought.", text="One."),)))

    async def test() -> None:
        async with bot_of(make_settings, "allowed_users = [7]\nedit_seconds = 0.2\n") as api:
            await api.say("Hi", user=9)
            await api.say("Hi again", user=9)
            await api.say("<@500> Hi", user=9, channel=CHANNEL)
            await api.say("<@500> Hi", user=7, channel=CHANNEL)
            await api.until(lambda: api.shown and api.shown[-1].buttons)
            pressed = await api.press(api.shown[-1], user=9)
            await api.until(lambda: pressed.seen)
            command = await api.command("model", user=9)
            await api.until(lambda: command.seen)
        assert len(api.in_channel(10_009)) == 1
        assert "Your id is 9" in api.in_channel(10_009)[0]
        assert pressed.seen == command.seen == ["You may not use this bot."]
        assert len(simulator.requests) == 1

    run(test())


def test_thinking_that_is_long_comes_as_a_file(make_settings: MakeSettings, simulator: Simulator) -> None:
    thought = "Let me think. " * 600
    simulator.play(Script((Turn(reasoning=thought, text="Yes."),)))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.shown and api.shown[0].buttons)
            pressed = await api.press(api.shown[0])
            await api.until(lambda: pressed.files)
        assert pressed.files[0].decode().strip() == thought.strip()
        assert all(flags & EPHEMERAL for flags in pressed.flags)

    run(test())


def test_a_button_after_a_restart_says_that_the_thinking_is_gone(
    make_settings: MakeSettings, simulator: Simulator
) -> None:
    simulator.play(Script((Turn(reasoning="Hm.", text="Yes."),)))

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.shown and api.shown[0].buttons)
            (shown,) = api.shown
        async with bot_of(make_settings) as other:
            pressed = await other.press(shown)
            await other.until(lambda: pressed.seen)
        assert pressed.seen == ["The reasoning of this answer is no longer kept."]

    run(test())


def test_a_press_that_comes_too_late_harms_nothing(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(reasoning="Hm.", text="Yes."),)))

    async def test() -> None:
        async with bot_of(make_settings, fake=FakeDiscord(deadline=-1)) as api:
            await api.say("Hi")
            await api.until(lambda: api.shown and api.shown[0].buttons)
            await api.press(api.shown[0])
            await api.until(lambda: "POST callback: 10062" in api.refused)
            await api.say("Again")
            await api.until(lambda: len(api.shown) == 2)

    run(test())


def test_commands_are_answered_for_their_user_alone(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="One."), Turn(text="Two."))))

    async def test() -> None:
        async with bot_of(make_settings, ALLOWED + 'models = ["sim/m2"]\n') as api:
            assert {one["name"] for one in api.commands} == {"new", "model"}
            await api.say("Hi")
            await api.until(lambda: api.in_channel() == ["One."])
            new = await api.command("new")
            chosen = await api.command("model", name="sim/m2")
            await api.until(lambda: new.seen and chosen.seen)
            await api.say("Hi")
            await api.until(lambda: api.in_channel() == ["One.", "One."])
        assert new.seen == ["This is a new conversation."]
        assert chosen.seen == ["sim/m2 answers from now on."]
        assert new.flags == chosen.flags == [EPHEMERAL | SUPPRESS_EMBEDS]
        assert asked_of(simulator)[-1]["model"] == "m2"
        assert len(asked_of(simulator)[-1]["messages"]) == 1

    run(test())


PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40


def test_pictures_go_with_the_question(make_settings: MakeSettings) -> None:
    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.send_file("a.png", PNG, "What is 1 + 1?")
            await api.until(lambda: api.in_channel())
            await api.send_file("b.pdf", b"%PDF-1.7")
            await api.until(lambda: any("no picture" in text for text in api.in_channel()))

    run(test())


def test_the_bot_takes_its_session_up_again(make_settings: MakeSettings) -> None:
    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.drop_connection()
            await api.say("What is 1 + 1?")
            await api.until(lambda: api.resumed and api.in_channel())
            assert api.identified == 1

    run(test())


def test_errors_are_told_in_plain_words(make_settings: MakeSettings, simulator: Simulator) -> None:
    async def test() -> None:
        async with bot_of(make_settings) as api:
            simulator.fail(Fault("status", status=401))
            await api.say("Hi")
            await api.until(lambda: api.in_channel())
        (told,) = api.in_channel()
        assert told.startswith("The model cannot be reached just now.")
        assert KEY not in told

    run(test())


def test_a_bot_that_stops_says_so_in_its_answer(make_settings: MakeSettings, simulator: Simulator) -> None:
    simulator.play(Script((Turn(text="word " * 100),)))
    simulator.hold(after=6)

    async def test() -> None:
        async with bot_of(make_settings) as api:
            await api.say("Hi")
            await api.until(lambda: api.in_channel())
        assert api.in_channel()[0].endswith("(bardo was stopped before the answer was complete.)")

    run(test())


def test_a_wrong_token_is_told_without_it(make_settings: MakeSettings) -> None:
    async def test() -> None:
        async with FakeDiscord() as api:
            settings = make_settings(f'[discord]\nmodel = "sim/m1"\napi_url = "{api.api_url}"\n{ALLOWED}')
            wrong = {**ENVIRONMENT, "DISCORD_BOT_TOKEN": "wrong-token"}
            await discord_bot.serve_discord(settings, asyncio.Event(), wrong)

    with pytest.raises(ConfigError) as caught:
        run(test())
    assert "does not take the token in DISCORD_BOT_TOKEN" in str(caught.value)
    assert "wrong-token" not in str(caught.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_discord_takes_every_hostile_text(name: str) -> None:
    """No text of a model makes the API refuse a message, or pings anybody, even without `allowed_mentions`."""

    async def test() -> None:
        async with FakeDiscord() as api:
            for part in discord_messages(HOSTILE[name]):
                api._create(10_007, {"content": part.text}, [])
            prose = "".join(re.sub(r"```.*?```", "", one.content, flags=re.DOTALL) for one in api.shown)
            assert not re.search(r"@(everyone|here)|<@", prose)

    run(test())
