"""An answer in a chat while it grows: edited no more often than the service allows, and whole at its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

from bardo.surfaces.chat.port import ChatFailure, ChatPort, ChatUnavailable, RetryLater

Part = TypeVar("Part")
T = TypeVar("T")

_IN_THREAD = 8000
"""A longer text is rendered in a thread, so that other chats do not wait for it."""
_RENDER_SHARE = 10
"""No more than this part of the time goes into rendering one answer."""
_LONGEST_PAUSE = 60.0
_FINAL_TRIES = 8
_BACKOFF = 1.0

_log = logging.getLogger("bardo.chat")


class LiveAnswer(Generic[Part]):
    """Shows an answer in one place of a chat. `render` makes messages of the text so far; `seconds` is the least time between edits.

    `on_sent` gets the id of each message as soon as it is there: somebody may reply to it at once.
    """

    def __init__(
        self,
        port: ChatPort[Part],
        render: Callable[[str], Sequence[Part]],
        *,
        seconds: float,
        on_sent: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._on_sent = on_sent
        self._port = port
        self._render = render
        self._pause = seconds
        self._pieces: list[str] = []
        self._shown: list[tuple[str, Part]] = []
        self._changed = asyncio.Event()
        self._ending = asyncio.Event()
        self._wait_until = 0.0
        self._task = asyncio.create_task(self._follow())
        self.is_gone = False
        """Whether nothing more can be shown there."""

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)

    def add(self, piece: str) -> None:
        """Add a piece of text, which is shown when it is time."""
        self._pieces.append(piece)
        self._changed.set()

    async def finish(self, parts: Sequence[Part]) -> None:
        """Show these messages in the place of what was shown, however long the service makes that take. Raises ChatFailure."""
        self._ending.set()
        self._changed.set()
        # A bot that stops shows its last words behind what is being sent, of which nobody would know the message.
        await asyncio.shield(self._task)
        for tried in range(_FINAL_TRIES):
            await self._sleep_until_allowed()
            try:
                if self.is_gone or await self._show(parts):
                    return
            except ChatFailure:
                if tried == _FINAL_TRIES - 1:
                    raise
                self._hold_back(_BACKOFF * 2**tried)
        raise ChatFailure("the service asked to wait too often")

    async def abandon(self) -> None:
        """Stop following the text; what is shown stays."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _follow(self) -> None:
        while not self.is_gone:
            await self._changed.wait()
            self._changed.clear()
            if self._ending.is_set():
                return
            began = _now()
            parts = await self._rendered()
            pause = max(self._pause, _RENDER_SHARE * (_now() - began))
            if not await self._try_to_show(parts):
                self._changed.set()
            await self._ended_within(max(pause, self._wait_until - _now()))

    async def _try_to_show(self, parts: Sequence[Part]) -> bool:
        """Return whether the chat shows these messages."""
        try:
            return await self._show(parts)
        except ChatFailure as problem:
            _log.warning("an answer cannot be shown for now: %s", problem)
            self._hold_back(_BACKOFF)
            return False

    async def _rendered(self) -> Sequence[Part]:
        text = self.text
        return self._render(text) if len(text) < _IN_THREAD else await asyncio.to_thread(self._render, text)

    async def _show(self, parts: Sequence[Part]) -> bool:
        """Bring the chat to show these messages, and return whether it does. Raises ChatFailure."""
        try:
            for place, part in enumerate(parts):
                if place == len(self._shown):
                    self._shown.append((await self._port.send(part), part))
                    self._on_sent(self._shown[-1][0])
                elif self._shown[place][1] != part:
                    message = self._shown[place][0]
                    await self._port.edit(message, part)
                    self._shown[place] = (message, part)
            while len(self._shown) > len(parts):
                await self._port.delete(self._shown[-1][0])
                self._shown.pop()
        except RetryLater as problem:
            self._hold_back(problem.seconds)
            return False
        except ChatUnavailable as problem:
            _log.info("an answer is shown no further: %s", problem)
            self.is_gone = True
        return True

    def _hold_back(self, seconds: float) -> None:
        """Wait as long as the service asks, and edit half as often from now on."""
        self._wait_until = _now() + seconds
        self._pause = min(_LONGEST_PAUSE, 2 * self._pause)

    async def _sleep_until_allowed(self) -> None:
        await asyncio.sleep(max(0.0, self._wait_until - _now()))

    async def _ended_within(self, seconds: float) -> None:
        """Wait for so long, or until the text is whole."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ending.wait()


@asynccontextmanager
async def typing_indicator(port: ChatPort[Any]) -> AsyncIterator[Callable[[], None]]:
    """Show that an answer is being written, until the block ends or the function it gives is called."""
    task = asyncio.create_task(_type(port))
    try:
        yield lambda: _cancel(task)
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _type(port: ChatPort[Any]) -> None:
    while True:
        try:
            await port.typing()
        except (ChatFailure, ChatUnavailable, RetryLater):
            return
        await asyncio.sleep(port.typing_seconds)


async def retry_when_limited(action: Callable[[], Awaitable[T]], *, tries: int = 3) -> T | None:
    """Return what an action gives, tried again where the service asks to wait, or None if it does not work in the end."""
    for tried in range(tries):
        try:
            return await action()
        except RetryLater as problem:
            await asyncio.sleep(problem.seconds)
        except ChatFailure as problem:
            _log.warning("a chat service failed: %s", problem)
            await asyncio.sleep(_BACKOFF * 2**tried)
        except ChatUnavailable as problem:
            _log.info("a message cannot be shown: %s", problem)
            return None
    return None


def _now() -> float:
    return asyncio.get_running_loop().time()
