"""The Telegram bot, over python-telegram-bot, which is loaded with this module. Messages come by long polling."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

import telegram
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError
from telegram.ext import Updater
from telegram.request import HTTPXRequest

from bardo.adapters.config.chat import TelegramSettings
from bardo.adapters.config.settings import Settings
from bardo.surfaces.chat import notices
from bardo.surfaces.chat.bot import Attachment, ChatBot, IncomingMessage, RenderedAnswer
from bardo.surfaces.chat.conversations import Place
from bardo.surfaces.chat.engine import ChatEngine
from bardo.surfaces.chat.live_answer import retry_when_limited
from bardo.surfaces.chat.port import ChatFailure, ChatUnavailable, RetryLater
from bardo.surfaces.chat.running import token_of
from bardo.surfaces.chat.telegram_format import TelegramPart, plain_message, telegram_messages
from bardo.values.errors import ConfigError

SERVICE = "telegram"
LOGGERS = ("telegram", "httpx", "httpcore")
_TYPING_SECONDS = 4.0
_POLL_SECONDS = 30
_CONNECTIONS = 64
_COMMANDS = (("new", "Begin a new conversation"), ("model", "Show or change the model"), ("help", "What I can do"))
_NO_PREVIEW = telegram.LinkPreviewOptions(is_disabled=True)
# A page that a preview loads learns all that its address holds.
_PRIVATE = "private"

T = TypeVar("T")
_log = logging.getLogger("bardo.chat")


async def serve_telegram(
    settings: Settings,
    stop: asyncio.Event,
    environment: Mapping[str, str] | None = None,
    *,
    announce: Callable[[str], None] = lambda _: None,
) -> None:
    """Answer the messages to the bot until `stop` is set. `announce` gets its name once it listens. Raises ConfigError."""
    # Has the library give times as spans, which it will do by default.
    os.environ.setdefault("PTB_TIMEDELTA", "true")
    chat = settings.telegram
    bot = _build_bot(chat, token_of(chat, "Telegram", environment))
    async with ChatEngine(settings, chat, SERVICE, environment) as engine:
        updates: asyncio.Queue[object] = asyncio.Queue()
        updater = Updater(bot, updates)
        handler = TelegramBot(bot, chat, ChatBot(engine, chat, SERVICE, _render))
        try:
            await _log_in(updater, chat)
            await retry_when_limited(lambda: call_api(bot.set_my_commands(_COMMANDS)))
            await updater.start_polling(
                timeout=_POLL_SECONDS, bootstrap_retries=-1, allowed_updates=["message"], error_callback=_note
            )
            announce(f"@{bot.username}")
            await _handle(handler, updates, stop)
        finally:
            if updater.running:
                await updater.stop()
            await handler.chat.stop()
            await updater.shutdown()
            await bot.shutdown()


async def _log_in(updater: Updater, chat: TelegramSettings) -> None:
    """Ask Telegram who the bot is. Raises ConfigError."""
    try:
        await updater.initialize()
    except InvalidToken as problem:
        hint = "copy it again from BotFather"
        raise ConfigError(f"Telegram does not take the token in {chat.token_env}", hint=hint) from problem
    except TelegramError as problem:
        raise ConfigError("Telegram cannot be reached", hint="look at the network, and at api_url") from problem


def _build_bot(chat: TelegramSettings, token: str) -> telegram.Bot:
    address = chat.api_url.rstrip("/") or "https://api.telegram.org"
    return telegram.Bot(
        token,
        base_url=f"{address}/bot",
        base_file_url=f"{address}/file/bot",
        request=HTTPXRequest(connection_pool_size=_CONNECTIONS, pool_timeout=30.0, read_timeout=20.0),
        get_updates_request=HTTPXRequest(connection_pool_size=1),
    )


def _render(answer: RenderedAnswer) -> list[TelegramPart]:
    return telegram_messages(answer.text)


def _note(problem: TelegramError) -> None:
    """Log why messages cannot be fetched for now: the library tries again."""
    if isinstance(problem, Conflict):
        _log.warning("another program takes this bot's messages: stop it, or use a bot of its own")
    else:
        _log.warning("Telegram cannot be asked for messages, and is asked again: %s", type(problem).__name__)


async def _handle(handler: TelegramBot, updates: asyncio.Queue[object], stop: asyncio.Event) -> None:
    stopped = asyncio.create_task(stop.wait())
    try:
        while not stopped.done():
            update = asyncio.create_task(updates.get())
            await asyncio.wait({update, stopped}, return_when=asyncio.FIRST_COMPLETED)
            if not update.done():
                update.cancel()
                continue
            found = update.result()
            if isinstance(found, telegram.Update) and found.message is not None:
                handler.take(found.message)
    finally:
        stopped.cancel()


class TelegramBot:
    """Decides what a message to the bot is, and has it answered."""

    def __init__(self, bot: telegram.Bot, settings: TelegramSettings, chat: ChatBot[TelegramPart]) -> None:
        self._bot = bot
        self._settings = settings
        self.chat = chat

    def take(self, message: telegram.Message) -> None:
        """Begin to answer a message, where it is one to the bot."""
        user = message.from_user
        if user is None or user.is_bot:
            return
        text = (message.text or message.caption or "").strip()
        is_shared = message.chat.type != _PRIVATE
        command, argument = _command(text, self._bot.username)
        if is_shared and not command and not self._is_addressed(message, text):
            return
        port = TelegramPort(self._bot, message)
        if not self._may_ask(user.id, message.chat.id):
            if not is_shared and self.chat.is_first_refusal(str(user.id)):
                self._send_text(port, f"{notices.NOT_ALLOWED} Your id is {user.id}: whoever runs it can allow you.")
            return
        place = Place(_place_name(message), is_shared)
        if command:
            self._send_text(port, self._answer_command(command, argument, str(user.id), place))
            return
        incoming = IncomingMessage(
            user=str(user.id),
            place=place,
            text=text.replace(f"@{self._bot.username}", "").strip() if is_shared else text,
            reply_to=str(message.reply_to_message.message_id) if message.reply_to_message else "",
            attachments=tuple(_attachments(message)),
        )
        self.chat.begin(self.chat.answer(incoming, port))

    def _may_ask(self, user: int, chat: int) -> bool:
        settings = self._settings
        return settings.open_to_all or user in settings.allowed_users or chat in settings.allowed_chats

    def _is_addressed(self, message: telegram.Message, text: str) -> bool:
        """Whether a message in a group is to the bot: it names the bot, or replies to it."""
        replied = message.reply_to_message
        if replied is not None and replied.from_user is not None and replied.from_user.id == self._bot.id:
            return True
        return f"@{self._bot.username}".lower() in text.lower()

    def _answer_command(self, command: str, argument: str, user: str, place: Place) -> str:
        if command == "new":
            return self.chat.new_conversation(place)
        if command == "model":
            return self.chat.choose_model(user, place, argument)
        return notices.HELP

    def _send_text(self, port: TelegramPort, text: str) -> None:
        async def tell() -> None:
            await retry_when_limited(lambda: port.notice(text))

        self.chat.begin(tell())


class TelegramPort:
    """The chat of one message. In groups the first message of an answer replies to it."""

    typing_seconds = _TYPING_SECONDS

    def __init__(self, bot: telegram.Bot, message: telegram.Message) -> None:
        self._bot = bot
        self._chat = message.chat.id
        self._thread = message.message_thread_id if message.is_topic_message else None
        self._reply_to = None if message.chat.type == _PRIVATE else message.message_id

    async def send(self, part: TelegramPart) -> str:
        """Send a message and return its id."""
        reply, self._reply_to = self._reply_to, None
        parameters = telegram.ReplyParameters(reply, allow_sending_without_reply=True) if reply else None
        try:
            sent = await call_api(
                self._bot.send_message(
                    self._chat,
                    part.text,
                    entities=_entities(part),
                    message_thread_id=self._thread,
                    reply_parameters=parameters,
                    link_preview_options=_NO_PREVIEW,
                )
            )
        except RetryLater:
            self._reply_to = reply
            raise
        return str(sent.message_id)

    async def edit(self, message: str, part: TelegramPart) -> None:
        """Replace what a message shows."""
        await call_api(
            self._bot.edit_message_text(
                part.text,
                chat_id=self._chat,
                message_id=int(message),
                entities=_entities(part),
                link_preview_options=_NO_PREVIEW,
            )
        )

    async def delete(self, message: str) -> None:
        """Remove a message."""
        await call_api(self._bot.delete_message(self._chat, int(message)))

    async def typing(self) -> None:
        """Show that an answer is being written."""
        await call_api(self._bot.send_chat_action(self._chat, "typing", message_thread_id=self._thread))

    async def notice(self, text: str) -> None:
        """Send a sentence of bardo's own."""
        await self.send(plain_message(text))


async def call_api(action: Awaitable[T]) -> T:
    """Return what a call of the Bot API gives. Raises RetryLater, ChatUnavailable and ChatFailure."""
    try:
        return await action
    except RetryAfter as problem:
        span = problem.retry_after
        raise RetryLater(float(span) if isinstance(span, int) else span.total_seconds()) from problem
    except (Forbidden, ChatMigrated) as problem:
        raise ChatUnavailable(type(problem).__name__) from problem
    except BadRequest as problem:
        if "not modified" in problem.message:
            return None  # type: ignore[return-value]  # An edit that changes nothing gives nothing that is looked at.
        raise ChatUnavailable(problem.message) from problem
    except TelegramError as problem:
        raise ChatFailure(type(problem).__name__) from problem


def _entities(part: TelegramPart) -> list[telegram.MessageEntity]:
    return [
        telegram.MessageEntity(one.kind, one.offset, one.length, url=one.url or None, language=one.language or None)
        for one in part.entities
    ]


def _command(text: str, username: str) -> tuple[str, str]:
    """Return the command of a message and what stands behind it; empty where it is none, or another bot's."""
    word, _, rest = text.partition(" ")
    name, _, bot = word.partition("@")
    known = name.removeprefix("/")
    is_ours = name.startswith("/") and known in ("new", "model", "help", "start")
    return (known, rest.strip()) if is_ours and bot.lower() in ("", username.lower()) else ("", "")


def _place_name(message: telegram.Message) -> str:
    thread = message.message_thread_id if message.is_topic_message else None
    return f"{message.chat.id}/{thread}" if thread else str(message.chat.id)


def _attachments(message: telegram.Message) -> list[Attachment]:
    """Return the pictures of a message. Other documents are told to be none, after a look at their bytes."""
    if message.photo:
        largest = message.photo[-1]
        return [Attachment(largest.file_size, lambda: _download(largest))]
    document = message.document
    if document is not None:
        return [Attachment(document.file_size, lambda: _download(document))]
    return []


async def _download(file: telegram.PhotoSize | telegram.Document) -> bytes:
    found = await call_api(file.get_file())
    return bytes(await call_api(found.download_as_bytearray()))
