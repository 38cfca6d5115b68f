"""The bot on Telegram: updates by long polling, and answers in Telegram's own markup, from lines of Markdown as runs of one style."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import msgspec
import telegram
from telegram.error import BadRequest, ChatMigrated, Conflict, Forbidden, InvalidToken, RetryAfter, TelegramError
from telegram.ext import Updater
from telegram.request import HTTPXRequest

from bardo.adapters.config.chat import TelegramSettings
from bardo.adapters.config.settings import Settings
from bardo.surfaces.chat import bot
from bardo.surfaces.chat.bot import Attachment, ChatBot, IncomingMessage, RenderedAnswer
from bardo.surfaces.chat.conversations import Place
from bardo.surfaces.chat.live_answer import retry_when_limited
from bardo.surfaces.chat.port import ChatFailure, ChatUnavailable, RetryLater
from bardo.surfaces.chat.running import ChatEngine, token_of
from bardo.surfaces.chat.text import cleaned, cut_place, is_blank, utf16_length
from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_STYLES = {"strong": "bold", "em": "italic", "s": "strikethrough"}
_SCHEMES = ("http://", "https://")
_LONGEST_ADDRESS = 2000
_LOOKS_LIKE_ADDRESS = re.compile(r"://|www\.|[^\s.]\.[A-Za-z]{2}")


class Form(msgspec.Struct, frozen=True):
    """How a run looks: `bold`, `italic`, `strikethrough`, `code`, `pre`, `blockquote` or `text_link`.

    `number` keeps apart what is not one although it touches, such as two blocks of code.
    """

    kind: str
    url: str = ""
    language: str = ""
    number: int = 0


class TextRun(msgspec.Struct, frozen=True):
    """A piece of text whose letters have the same forms. `is_mark`: it is the mark of an item of a list."""

    text: str
    forms: tuple[Form, ...] = ()
    is_mark: bool = False

    @property
    def is_code(self) -> bool:
        """Whether it is code, which has no other form in Telegram."""
        return any(form.kind in ("code", "pre") for form in self.forms)


def inline_runs(tokens: Sequence[Token]) -> list[TextRun]:
    """Return the runs of the tokens of one line of text."""
    return [run for run in _runs(tokens) if run.text]


def _runs(tokens: Sequence[Token]) -> Iterator[TextRun]:
    styles: list[Form] = []
    addresses: list[str] = []
    labels: list[str] = [""]
    for place, token in enumerate(tokens):
        style = _STYLES.get(token.tag)
        if style:
            styles.append(Form(style)) if token.nesting == 1 else styles.remove(Form(style))
        elif token.type == "link_open":
            addresses.append(str(token.attrGet("href") or ""))
            labels.append("")
            styles.append(Form("text_link", addresses[-1], number=place))
        elif token.type == "link_close":
            link = next(form for form in reversed(styles) if form.kind == "text_link")
            styles.remove(link)
            yield TextRun(_address_beside(labels.pop(), addresses.pop()), _visible_forms(styles))
        else:
            text = _text_of(token)
            labels[-1] += text
            yield TextRun(text, (Form("code"),) if token.type == "code_inline" else _visible_forms(styles))


def _visible_forms(styles: Sequence[Form]) -> tuple[Form, ...]:
    """Return each form once, and of links only those that lead to a web page."""
    return tuple(dict.fromkeys(form for form in styles if form.kind != "text_link" or _is_page(form.url)))


def _is_page(address: str) -> bool:
    return address.lower().startswith(_SCHEMES) and len(address) <= _LONGEST_ADDRESS


def _address_beside(label: str, address: str) -> str:
    """Return what is written behind the label of a link: its address, where the label hides it or looks like another one."""
    if not address or label == address:
        return ""
    if _is_page(address) and not _LOOKS_LIKE_ADDRESS.search(label):
        return ""
    return f" ({address})"


def _text_of(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return "\n"
    if token.type == "image":
        return f"{token.content or 'picture'} ({token.attrGet('src')})"
    return token.content


_DEEPEST = 40
"""Text with lists and quotes nested deeper is shown as it is: the parser would leave out what is in them."""
_RULE = "———"
_WIDEST_CELL = 30
_MOST_INDENT = 6


def runs_of(markdown: str) -> list[TextRun]:
    """Return the text that a reader of the Markdown sees, in runs."""
    tokens = _parser().parse(markdown)
    if any(token.level >= _DEEPEST - 2 for token in tokens):
        return [TextRun(markdown)]
    return BlockWriter().write(tokens)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": _DEEPEST}).enable(["strikethrough", "table"])
    # The first parse compiles the rules, which is not thread-safe: a second thread would parse with some of them missing.
    parser.parse("text")
    return parser


class BlockWriter:
    """Writes the blocks of one text. They are kept apart by blank lines, the items of a list by line ends."""

    def __init__(self) -> None:
        self._runs: list[TextRun] = []
        self._gap = ""
        self._lists: list[int | None] = []
        """The next number of each list that is open, or None if it has none."""
        self._quotes = 0
        self._quote: tuple[Form, ...] = ()
        self._is_heading = False
        self._blocks = 0
        self._rows: list[list[str]] = []

    def write(self, tokens: Sequence[Token]) -> list[TextRun]:
        """Return the runs of a text."""
        for token in tokens:
            action = _ACTIONS.get(token.type)
            if action is not None:
                action(self, token)
        return self._runs

    def _add_text(self, text: str, *forms: Form) -> None:
        """Add text after the gap that is due."""
        if self._gap and self._runs:
            self._runs.append(TextRun(self._gap, self._quote))
        self._gap = ""
        self._runs.append(TextRun(text, (*self._quote, *forms)))

    def _require_gap(self, gap: str) -> None:
        """Require at least this many line breaks before the next text."""
        self._gap = max(self._gap, gap, key=len)

    def _numbered(self, kind: str, language: str = "") -> Form:
        """Return a form that is not joined with another of its kind that touches it."""
        self._blocks += 1
        return Form(kind, language=language, number=self._blocks)

    def begin_paragraph(self, token: Token) -> None:
        """Keep it apart from what is before it; the first one of an item stands beside its mark."""
        self._is_heading = token.type == "heading_open"
        if self._runs and not self._runs[-1].is_mark:
            self._require_gap("\n" if token.hidden or self._lists else "\n\n")

    def end_paragraph(self, _: Token) -> None:
        """Keep what follows apart from it."""
        self._is_heading = False
        self._require_gap("\n" if self._lists else "\n\n")

    def inline(self, token: Token) -> None:
        """Add a line of text, or a cell of a table."""
        runs = inline_runs(token.children or ())
        if self._rows:
            self._rows[-1].append("".join(run.text for run in runs).replace("\n", " "))
            return
        for run in runs:
            heading = (Form("bold"),) if self._is_heading and not run.is_code else ()
            self._add_text(run.text, *dict.fromkeys((*heading, *run.forms)))

    def begin_list(self, token: Token) -> None:
        """Begin a list, maybe inside another."""
        self._require_gap("\n" if self._lists else "\n\n")
        start = token.attrGet("start")
        self._lists.append(None if token.type == "bullet_list_open" else 1 if start is None else int(start))

    def end_list(self, _: Token) -> None:
        """End the innermost list."""
        self._lists.pop()
        self._require_gap("\n" if self._lists else "\n\n")

    def begin_item(self, token: Token) -> None:
        """Write the mark of an item."""
        self._require_gap("\n")
        number = self._lists[-1]
        mark = "•" if number is None else f"{number}{token.markup or '.'}"
        if number is not None:
            self._lists[-1] = number + 1
        indent = "  " * min(len(self._lists) - 1, _MOST_INDENT)
        self._add_text(f"{indent}{mark} ")
        self._runs[-1] = msgspec.structs.replace(self._runs[-1], is_mark=True)

    def begin_quote(self, _: Token) -> None:
        """Begin a quote. Telegram has none inside another."""
        self._quotes += 1
        if self._quotes == 1:
            if self._runs:
                self._runs.append(TextRun(max(self._gap, "\n", key=len), is_mark=True))
            self._gap = ""
            self._quote = (self._numbered("blockquote"),)

    def end_quote(self, _: Token) -> None:
        """End a quote."""
        self._quotes -= 1
        if not self._quotes:
            self._quote = ()
        self._require_gap("\n" if self._quotes else "\n\n")

    def code(self, token: Token) -> None:
        """Add a block of code."""
        self._block(token.content.removesuffix("\n"), _language(token.info))

    def rule(self, _: Token) -> None:
        """Add a line across."""
        self._require_gap("\n\n")
        self._add_text(_RULE)
        self._require_gap("\n\n")

    def begin_row(self, _: Token) -> None:
        """Begin a row of a table."""
        self._rows.append([])

    def end_table(self, _: Token) -> None:
        """Add a table, as a block whose letters have one width."""
        rows, self._rows = self._rows, []
        self._block(_aligned(rows))

    def _block(self, text: str, language: str = "") -> None:
        self._require_gap("\n" if self._lists else "\n\n")
        # Inside a quote Telegram has no block of code.
        kind = self._numbered("code") if self._quotes else self._numbered("pre", language)
        if text:
            quote, self._quote = self._quote, ()
            if self._gap and self._runs:
                self._runs.append(TextRun(self._gap, quote))
            self._gap = ""
            self._add_text(text, kind)
            self._quote = quote
        self._require_gap("\n" if self._lists else "\n\n")


def _language(info: str) -> str:
    """Return the language of a block of code, empty for what is no name of one."""
    word = info.strip().partition(" ")[0]
    return word if 0 < len(word) <= 20 and all(letter.isalnum() or letter in "+-.#_" for letter in word) else ""


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [min(_WIDEST_CELL, max(map(len, column))) for column in _columns(rows)]
    return "\n".join(
        " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip() for row in rows
    )


def _columns(rows: Sequence[Sequence[str]]) -> Iterator[list[str]]:
    for place in range(max(map(len, rows), default=0)):
        yield [row[place] for row in rows if place < len(row)]


_ACTIONS: dict[str, Callable[[BlockWriter, Token], None]] = {
    "paragraph_open": BlockWriter.begin_paragraph,
    "paragraph_close": BlockWriter.end_paragraph,
    "heading_open": BlockWriter.begin_paragraph,
    "heading_close": BlockWriter.end_paragraph,
    "inline": BlockWriter.inline,
    "bullet_list_open": BlockWriter.begin_list,
    "ordered_list_open": BlockWriter.begin_list,
    "bullet_list_close": BlockWriter.end_list,
    "ordered_list_close": BlockWriter.end_list,
    "list_item_open": BlockWriter.begin_item,
    "blockquote_open": BlockWriter.begin_quote,
    "blockquote_close": BlockWriter.end_quote,
    "fence": BlockWriter.code,
    "code_block": BlockWriter.code,
    "hr": BlockWriter.rule,
    "tr_open": BlockWriter.begin_row,
    "table_close": BlockWriter.end_table,
}


LIMIT = 4096
"""UTF-16 units of a message, without markup."""
MOST_ENTITIES = 100
"""Telegram leaves out the forms of further ones."""
_WORD_JOINER = "\u2060"
# Users, and commands of another bot.
_MENTION = re.compile(r"(?<![\w.@])@(?=[A-Za-z0-9_])|(?<![\w/<>.])/(?=[A-Za-z0-9_]{1,64}@)")


class Entity(msgspec.Struct, frozen=True):
    """A range of a message with a form, by Telegram's name of it. `offset` and `length` are in UTF-16 units."""

    kind: str
    offset: int
    length: int
    url: str = ""
    language: str = ""


class TelegramPart(msgspec.Struct, frozen=True):
    """One message."""

    text: str
    entities: tuple[Entity, ...] = ()


class _Range(msgspec.Struct, frozen=True):
    """A range of the whole text with a form, in characters."""

    form: Form
    start: int
    end: int


def telegram_messages(markdown: str) -> list[TelegramPart]:
    """Return the messages that show an answer; none where it shows nothing."""
    runs = [_without_mentions(run) for run in runs_of(cleaned(markdown))]
    text = "".join(run.text for run in runs)
    return [part for part in _cut(text, list(_ranges(runs))) if not is_blank(part.text)]


def plain_message(text: str) -> TelegramPart:
    """Return a message without forms, such as a notice of bardo's own, cut where it is too long."""
    whole = _MENTION.sub(rf"\g<0>{_WORD_JOINER}", cleaned(text))
    return TelegramPart(whole[: cut_place(whole, 0, LIMIT)])


def _without_mentions(run: TextRun) -> TextRun:
    """Return a run in which Telegram finds no mention; in code it looks for none. What Markdown wrote as a number is cleaned too."""
    text = cleaned(run.text)
    return TextRun(text if run.is_code else _MENTION.sub(rf"\g<0>{_WORD_JOINER}", text), run.forms)


def _ranges(runs: Sequence[TextRun]) -> Iterator[_Range]:
    """Yield the ranges of each form, those of neighbours joined, by their beginnings."""
    began: dict[Form, int] = {}
    place = 0
    found: list[_Range] = []
    for run in [*runs, TextRun("")]:
        for form in [form for form in began if form not in run.forms]:
            found.append(_Range(form, began.pop(form), place))
        for form in run.forms:
            began.setdefault(form, place)
        place += len(run.text)
    yield from sorted((one for one in found if one.end > one.start), key=lambda one: (one.start, -one.end))


def _cut(text: str, ranges: Sequence[_Range]) -> Iterator[TelegramPart]:
    """Yield the messages of a text. `ranges` are in the order of their beginnings; each message looks at those that it touches."""
    start = first = 0
    while start < len(text):
        end = cut_place(text, start, LIMIT)
        touched: list[_Range] = []
        for one in ranges[first:]:
            if one.start >= end:
                break
            if one.end > start:
                if len(touched) == MOST_ENTITIES and one.start > start:
                    end = one.start
                    break
                touched.append(one)
        yield TelegramPart(text[start:end], tuple(_format_entities(text, start, end, touched[:MOST_ENTITIES])))
        while first < len(ranges) and ranges[first].end <= end:
            first += 1
        start = end


def _format_entities(text: str, start: int, end: int, ranges: Sequence[_Range]) -> Iterator[Entity]:
    """Yield the entities of one message. Their beginnings only grow, so that the text is measured once up to each."""
    measured, units = start, 0
    for one in ranges:
        begin, finish = max(one.start, start), min(one.end, end)
        units += utf16_length(text[measured:begin])
        measured = begin
        length = utf16_length(text[begin:finish])
        if length:
            yield Entity(one.form.kind, units, length, one.form.url, one.form.language)


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
    token = token_of(chat, "Telegram", environment)
    address = chat.api_url.rstrip("/") or "https://api.telegram.org"
    bot = telegram.Bot(
        token,
        base_url=f"{address}/bot",
        base_file_url=f"{address}/file/bot",
        request=HTTPXRequest(connection_pool_size=_CONNECTIONS, pool_timeout=30.0, read_timeout=20.0),
        get_updates_request=HTTPXRequest(connection_pool_size=1),
    )
    async with ChatEngine(settings, chat, SERVICE, environment) as engine:
        updates: asyncio.Queue[object] = asyncio.Queue()
        updater = Updater(bot, updates)
        handler = TelegramBot(bot, chat, ChatBot(engine, chat, SERVICE, _render))
        try:
            # Telegram says who the bot is.
            try:
                await updater.initialize()
            except InvalidToken as problem:
                hint = "copy it again from BotFather"
                raise ConfigError(f"Telegram does not take the token in {chat.token_env}", hint=hint) from problem
            except TelegramError as problem:
                raise ConfigError("Telegram cannot be reached", hint="look at the network, and at api_url") from problem
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
                self._send_text(port, f"{bot.NOT_ALLOWED} Your id is {user.id}: whoever runs it can allow you.")
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
        return bot.HELP

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
