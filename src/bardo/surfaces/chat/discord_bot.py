"""The Discord bot, over discord.py, which is loaded with this module. It needs no privileged intent: what is said to it has its text."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

import aiohttp
import discord
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route
from yarl import URL

from bardo.adapters.config.chat import DiscordSettings
from bardo.adapters.config.settings import Settings
from bardo.surfaces.chat import bot
from bardo.surfaces.chat.bot import Attachment, ChatBot, IncomingMessage, RenderedAnswer
from bardo.surfaces.chat.conversations import Place
from bardo.surfaces.chat.discord_format import DiscordPart, discord_messages, discord_reasoning
from bardo.surfaces.chat.live_answer import retry_when_limited
from bardo.surfaces.chat.port import ChatFailure, ChatUnavailable, RetryLater
from bardo.surfaces.chat.running import ChatEngine, token_of
from bardo.values.errors import ConfigError

SERVICE = "discord"
LOGGERS = ("discord", "aiohttp")
_TYPING_SECONDS = 8.0
_REVEAL = "bardo:reasoning:"
_MOST_REVEALED_MESSAGES = 3
"""Longer thinking is a file."""
_MOST_FILE_BYTES = 7_000_000

T = TypeVar("T")
_log = logging.getLogger("bardo.chat")


async def serve_discord(
    settings: Settings,
    stop: asyncio.Event,
    environment: Mapping[str, str] | None = None,
    *,
    announce: Callable[[str], None] = lambda _: None,
) -> None:
    """Answer the messages to the bot until `stop` is set. `announce` gets its name once it listens. Raises ConfigError."""
    chat = settings.discord
    token = token_of(chat, "Discord", environment)
    async with ChatEngine(settings, chat, SERVICE, environment) as engine:
        client = DiscordBot(chat, ChatBot(engine, chat, SERVICE, _render), announce)
        if chat.api_url:
            Route.BASE = chat.api_url.rstrip("/")
        stopped = asyncio.create_task(stop.wait())
        serving = asyncio.create_task(_serve(client, token, chat))
        try:
            await asyncio.wait({stopped, serving}, return_when=asyncio.FIRST_COMPLETED)
            if serving.done():
                serving.result()
        finally:
            stopped.cancel()
            await client.chat.stop()
            await client.close()
            await asyncio.wait({serving})


async def _serve(client: DiscordBot, token: str, chat: DiscordSettings) -> None:
    try:
        await client.login(token)
        if chat.api_url:
            # The library knows the address of Discord's own gateway alone.
            _, address, _ = await client.http.get_bot_gateway()
            DiscordWebSocket.DEFAULT_GATEWAY = URL(address)
        await client.connect()
    except discord.LoginFailure as problem:
        hint = "copy it again from the developer portal"
        raise ConfigError(f"Discord does not take the token in {chat.token_env}", hint=hint) from problem
    except (discord.HTTPException, discord.GatewayNotFound, discord.ConnectionClosed, aiohttp.ClientError) as problem:
        raise ConfigError(
            f"Discord cannot be used: {type(problem).__name__}", hint="look at the network, and at api_url"
        ) from problem


def _render(answer: RenderedAnswer) -> list[DiscordPart]:
    return discord_messages(answer.text, reveals=answer.reveals)


class DiscordBot(discord.Client):
    """Decides what an event of Discord's gateway is, and has it answered."""

    def __init__(self, settings: DiscordSettings, chat: ChatBot[DiscordPart], announce: Callable[[str], None]) -> None:
        intents = discord.Intents.none()
        intents.guilds = intents.guild_messages = intents.dm_messages = True
        super().__init__(
            intents=intents,
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            chunk_guilds_at_startup=False,
        )
        self.chat = chat
        self._settings = settings
        self._announce = announce
        self._tree = app_commands.CommandTree(self)
        self._tree.add_command(
            app_commands.Command(name="new", description="Begin a new conversation", callback=self._start_conversation)
        )
        self._tree.add_command(
            app_commands.Command(
                name="model", description="Show or change the model that answers", callback=self._choose_model
            )
        )

    async def setup_hook(self) -> None:
        """Register the commands with Discord."""
        await retry_when_limited(lambda: call_api(self._tree.sync()))

    async def on_ready(self) -> None:
        """Announce that the bot is ready."""
        self._announce(str(self.user))

    async def on_message(self, message: discord.Message) -> None:
        """Begin to answer a message, where it is one to the bot."""
        if message.author.bot or self.user is None or not (message.content or message.attachments):
            return
        is_shared = message.guild is not None and not isinstance(message.channel, discord.Thread)
        if message.guild is not None and not self._is_addressed(message):
            return
        port = DiscordPort(message)
        if not self._may_ask(message.author.id, message.guild, message.channel):
            if message.guild is None and self.chat.is_first_refusal(str(message.author.id)):
                text = f"{bot.NOT_ALLOWED} Your id is {message.author.id}: whoever runs it can allow you."
                await retry_when_limited(lambda: port.notice(text))
            return
        reference = message.reference
        incoming = IncomingMessage(
            user=str(message.author.id),
            place=Place(str(message.channel.id), is_shared),
            text=_without_mention(message.content, self.user.id),
            reply_to=str(reference.message_id or "") if reference else "",
            attachments=tuple(Attachment(one.size, _reader(one)) for one in message.attachments),
        )
        self.chat.begin(self.chat.answer(incoming, port))

    async def on_interaction(self, interaction: discord.Interaction[Any]) -> None:
        """Reveal the thinking of an answer to whoever pressed its button."""
        data: Mapping[str, Any] = interaction.data or {}
        key = str(data.get("custom_id", ""))
        if interaction.type is discord.InteractionType.component and key.startswith(_REVEAL):
            self.chat.begin(self._reveal(interaction, key.removeprefix(_REVEAL)))

    async def on_error(self, event_method: str, /, *args: Any, **kwargs: Any) -> None:
        """Log a mistake without what it happened with."""
        _log.exception("a mistake in bardo, at the event %s", event_method)

    async def _reveal(self, interaction: discord.Interaction[Any], key: str) -> None:
        """Show thinking to one user alone. Discord wants a first answer within three seconds: nothing is asked before it."""
        if not self._may_ask(interaction.user.id, interaction.guild, interaction.channel):
            await _say_privately(interaction, bot.NOT_ALLOWED)
            return
        chain = self.chat.reasoning(key)
        if chain is None:
            await _say_privately(interaction, bot.NOT_KEPT)
            return
        await retry_when_limited(lambda: call_api(interaction.response.defer(ephemeral=True, thinking=True)))
        parts = await asyncio.to_thread(discord_reasoning, chain)
        if len(parts) <= _MOST_REVEALED_MESSAGES:
            for part in parts:
                await _follow_up(interaction, part.text)
        else:
            await _follow_up(interaction, "The reasoning is long:", chain.content or "")

    async def _start_conversation(self, interaction: discord.Interaction[Any]) -> None:
        await self._command(interaction, self.chat.new_conversation)

    async def _choose_model(self, interaction: discord.Interaction[Any], name: str = "") -> None:
        user = str(interaction.user.id)
        await self._command(interaction, lambda place: self.chat.choose_model(user, place, name.strip()))

    async def _command(self, interaction: discord.Interaction[Any], answer: Callable[[Place], str]) -> None:
        if not self._may_ask(interaction.user.id, interaction.guild, interaction.channel):
            await _say_privately(interaction, bot.NOT_ALLOWED)
            return
        is_shared = interaction.guild_id is not None and not isinstance(interaction.channel, discord.Thread)
        await _say_privately(interaction, answer(Place(str(interaction.channel_id), is_shared)))

    def _is_addressed(self, message: discord.Message) -> bool:
        """Whether a message in a server is to the bot: it names the bot, or replies to it, which Discord counts as naming."""
        return self.user is not None and any(one.id == self.user.id for one in message.mentions)

    def _may_ask(self, user: int, guild: discord.Guild | None, channel: Any) -> bool:
        settings = self._settings
        channels = {getattr(channel, "id", None), getattr(channel, "parent_id", None)}
        return (
            settings.open_to_all
            or user in settings.allowed_users
            or (guild is not None and guild.id in settings.allowed_guilds)
            or not channels.isdisjoint(settings.allowed_channels)
        )


class DiscordPort:
    """The channel of one message. In servers the first message of an answer replies to it, without naming its author."""

    typing_seconds = _TYPING_SECONDS

    def __init__(self, message: discord.Message) -> None:
        self._channel = message.channel
        self._reply_to = None if message.guild is None else message.to_reference(fail_if_not_exists=False)
        self._sent: dict[str, discord.Message] = {}

    async def send(self, part: DiscordPart) -> str:
        """Send a message and return its id."""
        options: dict[str, Any] = {}
        if part.reveals:
            options["view"] = _button(part.reveals)
        if self._reply_to is not None:
            options |= {"reference": self._reply_to, "mention_author": False}
        # A page that a preview loads learns all that its address holds.
        sent = await call_api(self._channel.send(part.text, suppress_embeds=True, **options))
        self._reply_to = None
        self._sent[str(sent.id)] = sent
        return str(sent.id)

    async def edit(self, message: str, part: DiscordPart) -> None:
        """Replace what a message shows."""
        view = _button(part.reveals) if part.reveals else None
        self._sent[message] = await call_api(self._sent[message].edit(content=part.text, view=view))

    async def delete(self, message: str) -> None:
        """Remove a message."""
        await call_api(self._sent[message].delete())

    async def typing(self) -> None:
        """Show that an answer is being written."""
        await call_api(self._channel._state.http.send_typing(self._channel.id))

    async def notice(self, text: str) -> None:
        """Send a sentence of bardo's own."""
        await self.send(discord_messages(text)[0])


async def call_api(action: Awaitable[T]) -> T:
    """Return what a call of Discord's API gives. Raises RetryLater, ChatUnavailable and ChatFailure."""
    try:
        return await action
    except discord.RateLimited as problem:
        raise RetryLater(problem.retry_after) from problem
    except discord.DiscordServerError as problem:
        raise ChatFailure(f"HTTP {problem.status}") from problem
    except discord.HTTPException as problem:
        if problem.status == 429:
            raise RetryLater(_retry_after(problem)) from problem
        raise ChatUnavailable(f"HTTP {problem.status}, code {problem.code}") from problem
    except (TimeoutError, aiohttp.ClientError, OSError) as problem:
        raise ChatFailure(type(problem).__name__) from problem


def _retry_after(problem: discord.HTTPException) -> float:
    try:
        return min(600.0, max(1.0, float(problem.response.headers.get("Retry-After", "1"))))
    except ValueError:
        return 1.0


def _button(key: str) -> discord.ui.View:
    """Return the button that reveals thinking. Its presses come as events, so that it works after a restart too."""
    view = discord.ui.View(timeout=None)
    style = discord.ButtonStyle.secondary
    view.add_item(discord.ui.Button(label="Show reasoning", style=style, custom_id=f"{_REVEAL}{key}"))
    # The library holds each view that was not stopped for ever.
    view.stop()
    return view


def _reader(file: discord.Attachment) -> Callable[[], Awaitable[bytes]]:
    return lambda: call_api(file.read())


def _without_mention(text: str, bot: int) -> str:
    return text.replace(f"<@{bot}>", "").replace(f"<@!{bot}>", "").strip()


async def _say_privately(interaction: discord.Interaction[Any], text: str) -> None:
    (part, *_) = discord_messages(text)
    await retry_when_limited(
        lambda: call_api(interaction.response.send_message(part.text, ephemeral=True, suppress_embeds=True))
    )


async def _follow_up(interaction: discord.Interaction[Any], text: str, file: str = "") -> None:
    """Show a message to the user of an interaction alone; `file` is text that goes with it."""
    options: dict[str, Any] = {"ephemeral": True, "suppress_embeds": True}
    if file:
        from io import BytesIO

        data = file.encode("utf-8", "replace")[:_MOST_FILE_BYTES]
        options["file"] = discord.File(BytesIO(data), filename="reasoning.md")
    await retry_when_limited(lambda: call_api(interaction.followup.send(text, **options)))
