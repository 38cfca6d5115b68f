"""What the bots of all chat services have in common: a message comes in, and its answer is shown while it grows.

A bot's own words on errors, limits and commands are plain. No sentence holds a provider's words, which may be a secret.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Generic, TypeVar

import msgspec

from bardo.adapters.config.chat import ChatSettings
from bardo.surfaces.chat.conversations import Conversation, Conversations, Place, RecentMapping
from bardo.surfaces.chat.live_answer import LiveAnswer, retry_when_limited, typing_indicator
from bardo.surfaces.chat.port import ChatFailure, ChatPort
from bardo.surfaces.chat.running import ChatEngine
from bardo.surfaces.chat.text import is_blank
from bardo.values.blocks import Block, ImageBlock, TextBlock
from bardo.values.errors import (
    BardoError,
    ContextOverflow,
    InternalError,
    OperatorError,
    OverBudget,
    ProviderError,
    RateLimited,
    Unavailable,
    UnknownModel,
    UpstreamRefused,
    UpstreamTimeout,
)
from bardo.values.file_kinds import picture_kind
from bardo.values.reasoning import ReasoningChain, ReasoningVisibility
from bardo.values.request import Message
from bardo.values.response import Response

NEW = "This is a new conversation."
BUSY = "I am still answering your earlier questions here. Please wait for them."
STOPPED = "(bardo was stopped before the answer was complete.)"
NO_TEXT = "I can read text and pictures only."
TOO_LARGE = "One picture is too large for me, and I left it out."
NOT_A_PICTURE = "One file is no picture that I can read, and I left it out."
NOT_KEPT = "The reasoning of this answer is no longer kept."
NOT_ALLOWED = "You may not use this bot."
UNREADABLE = "I could not read your message. Please send it again."
HELP = "Ask me anything. /new begins a new conversation, /model shows or changes the model that answers."
SHARED_NEW = "Mention me to begin a new conversation, and reply to my answers to go on with one."


def error_text(problem: BardoError) -> str:
    """Return what a user is told of an error."""
    sentence = _sentence(problem)
    return (
        f"{sentence} (Request {problem.request_id})" if problem.request_id and _is_for_operator(problem) else sentence
    )


def _sentence(problem: BardoError) -> str:
    match problem:
        case RateLimited():
            return f"You have asked as often as you may for now. Try again in {_span(problem.retry_after)}."
        case OverBudget(retry_after=None):
            return "The budget of this conversation is used up. Begin a new one with /new."
        case OverBudget():
            return f"Your budget for today is used up. It starts again in {_span(problem.retry_after or 0)}."
        case ContextOverflow():
            return "This conversation is longer than the model can read. Begin a new one with /new."
        case UpstreamRefused() if problem.overflow is not None:
            return "This conversation is longer than the model can read. Begin a new one with /new."
        case UpstreamRefused() if problem.status == 429:
            return "The model is asked too often just now. Try again in a minute."
        case UpstreamTimeout():
            return "The model took too long to answer. Try again."
        case UnknownModel():
            return "This model cannot be asked. /model shows which can."
        case ProviderError() | Unavailable():
            return "The model cannot be reached just now. Try again in a moment."
        case OperatorError():
            return "This bot is not set up completely. Please tell whoever runs it."
        case _:
            return "This could not be answered. Please tell whoever runs this bot."


def _is_for_operator(problem: BardoError) -> bool:
    return not isinstance(problem, RateLimited | OverBudget | ContextOverflow)


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} minutes" if minutes < 90 else f"{round(minutes / 60)} hours"


def finish_notice(response: Response) -> str:
    """Return what is said below an answer that is not a whole one; empty below others."""
    if response.finish.reason == "length":
        return "(The answer is cut: the model reached its output limit.)"
    if is_blank(response.text) and is_blank(response.refusal):
        return "(The model gave no answer.)"
    return ""


def model_list(current: str, choices: Sequence[str]) -> str:
    """Return which model answers and which may be chosen."""
    if not choices:
        return f"{current} answers."
    return "\n".join([f"{current} answers. You may choose:", *(f"/model {name}" for name in choices)])


Part = TypeVar("Part")

_MOST_REVEALED = 1000
_MOST_CHOICES = 10_000
_MOST_TOLD = 10_000
_STOP_SECONDS = 5.0

_log = logging.getLogger("bardo.chat")


class Attachment(msgspec.Struct, frozen=True):
    """A file that came with a message. `read` gives its bytes; `size` is None if the service does not say."""

    size: int | None
    read: Callable[[], Awaitable[bytes]]


class IncomingMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message to the bot, which its user may ask. `reply_to` is the message it replies to."""

    user: str
    place: Place
    text: str
    reply_to: str = ""
    attachments: tuple[Attachment, ...] = ()


class RenderedAnswer(msgspec.Struct, frozen=True):
    """What is to be shown of an answer: its text so far, and at its end the key by which its thinking can be revealed."""

    text: str
    reveals: str = ""


class ChatBot(Generic[Part]):
    """Answers the messages of one service. `render` makes the service's messages of an answer."""

    def __init__(
        self,
        engine: ChatEngine,
        settings: ChatSettings,
        service: str,
        render: Callable[[RenderedAnswer], Sequence[Part]],
    ) -> None:
        self._engine = engine
        self._settings = settings
        self._render = render
        self._conversations = Conversations(service, settings.history)
        self._choices: RecentMapping[tuple[str, Place], str] = RecentMapping(_MOST_CHOICES)
        self._revealed: RecentMapping[str, ReasoningChain] = RecentMapping(_MOST_REVEALED)
        self._refused_users: RecentMapping[str, bool] = RecentMapping(_MOST_TOLD)
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, work: Coroutine[Any, Any, None]) -> None:
        """Do something beside everything else, such as an answer. Its errors are logged."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (mistake := task.exception()) is not None:
            _log.error("a mistake in bardo, while a message was answered", exc_info=mistake)

    async def stop(self) -> None:
        """End what is being answered: each answer says so."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_STOP_SECONDS)

    def is_first_refusal(self, user: str) -> bool:
        """Whether somebody who may not use the bot was not told so yet."""
        is_first = self._refused_users.get(user) is None
        self._refused_users.put(user, True)
        return is_first

    def new_conversation(self, place: Place) -> str:
        """Begin a new conversation, and return what is said about it."""
        if place.is_shared:
            return SHARED_NEW
        self._conversations.begin(place)
        return NEW

    def choose_model(self, user: str, place: Place, name: str) -> str:
        """Switch the model that answers a user at a place, or list the choices; return the reply to the command."""
        current = self._choices.get((user, place)) or self._engine.model
        choices = tuple(dict.fromkeys((self._engine.model, *self._settings.models))) if self._settings.models else ()
        if not name:
            return model_list(current, choices)
        if name not in choices:
            return f"There is no such choice. {model_list(current, choices)}"
        self._choices.put((user, place), name)
        return f"{name} answers from now on."

    def reasoning(self, key: str) -> ReasoningChain | None:
        """Return the thinking that a button reveals, or None if it is no longer kept."""
        return self._revealed.get(key)

    async def answer(self, incoming: IncomingMessage, port: ChatPort[Part]) -> None:
        """Answer a message."""
        conversation = self._conversations.of(incoming.place, incoming.reply_to)
        if conversation.is_full:
            await retry_when_limited(lambda: port.notice(BUSY))
            return
        with conversation.queue_slot():
            async with conversation.turn:
                question = await self._question(incoming, port)
                if question is not None:
                    await self._answer(incoming, question, conversation, port)

    async def _question(self, incoming: IncomingMessage, port: ChatPort[Part]) -> Message | None:
        """Return the question of a message with its pictures, or None if there is nothing that can be asked."""
        blocks: list[Block] = []
        problems: list[str] = []
        for attachment in incoming.attachments:
            found = await self._picture(attachment)
            problems.append(found) if isinstance(found, str) else blocks.append(found)
        if incoming.text.strip():
            blocks.append(TextBlock(incoming.text))
        if not blocks and not problems:
            problems.append(NO_TEXT)
        for problem in dict.fromkeys(problems):
            await retry_when_limited(lambda problem=problem: port.notice(problem))  # type: ignore[misc]
        return Message("user", tuple(blocks)) if blocks else None

    async def _picture(self, attachment: Attachment) -> ImageBlock | str:
        """Return a picture, or what is said of a file that is none."""
        most = self._settings.max_picture_megabytes * 1024 * 1024
        if attachment.size is not None and attachment.size > most:
            return TOO_LARGE
        data = await retry_when_limited(attachment.read)
        if data is None:
            return UNREADABLE
        if len(data) > most:
            return TOO_LARGE
        kind = picture_kind(data)
        return ImageBlock(media_type=kind, data=b64encode(data).decode()) if kind else NOT_A_PICTURE

    async def _answer(
        self, incoming: IncomingMessage, question: Message, conversation: Conversation, port: ChatPort[Part]
    ) -> None:
        live = LiveAnswer(
            port,
            lambda text: self._render(RenderedAnswer(text)),
            seconds=self._settings.edit_seconds,
            on_sent=lambda message: self._conversations.note(incoming.place, message, conversation),
        )
        try:
            async with typing_indicator(port) as stop_typing:
                ending, reveals = await self._ask(incoming, question, conversation, live, stop_typing)
            text = "\n\n".join(part for part in (live.text, ending) if part)
            await live.finish(await asyncio.to_thread(self._render, RenderedAnswer(text, reveals)))
        except asyncio.CancelledError:
            text = "\n\n".join(part for part in (live.text, STOPPED) if part)
            await live.finish(self._render(RenderedAnswer(text)))
            raise
        except ChatFailure as problem:
            _log.warning("an answer could not be shown: %s", problem)
        finally:
            await live.abandon()

    async def _ask(
        self,
        incoming: IncomingMessage,
        question: Message,
        conversation: Conversation,
        live: LiveAnswer[Part],
        stop_typing: Callable[[], None],
    ) -> tuple[str, str]:
        """Ask the model, and return what is said below its answer, and the key that reveals its thinking."""
        model = self._choices.get((incoming.user, incoming.place)) or ""
        stream = self._engine.stream(
            conversation.prompt(question), user=incoming.user, session=conversation.session, model=model
        )
        try:
            async with stream as reply:
                async for piece in reply.text_stream:
                    live.add(piece)
                    stop_typing()
                    if live.is_gone:
                        return "", ""
                response = await reply.response()
        except BardoError as problem:
            if isinstance(problem, InternalError):
                _log.error("a message could not be answered: %s", problem)
            return error_text(problem), ""
        if response.refusal and not response.text:
            live.add(response.refusal)
        conversation.add(question, response)
        return finish_notice(response), self._revealable(response)

    def _revealable(self, response: Response) -> str:
        """Keep the thinking of an answer and return the key that reveals it; empty where there was none."""
        key = str(response.bardo.get("request_id", ""))
        if not key or response.reasoning.visibility is ReasoningVisibility.NONE:
            return ""
        self._revealed.put(key, response.reasoning)
        return key
