"""What a bot needs of a chat service: to send, edit and delete messages in one place, and to show that it is at work."""

from __future__ import annotations

from typing import Protocol, TypeVar

Part = TypeVar("Part", contravariant=True)


class RetryLater(Exception):
    """The service asks to be left alone for so many seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"try again in {seconds:g} s")
        self.seconds = seconds


class ChatUnavailable(Exception):
    """Nothing more can be said there: the message or the chat is gone, or the bot was blocked."""


class ChatFailure(Exception):
    """The service cannot be reached, or fails. The same may work later."""


class ChatPort(Protocol[Part]):
    """One place of a chat in which a message is answered. Its methods raise RetryLater, ChatUnavailable and ChatFailure."""

    @property
    def typing_seconds(self) -> float:
        """For how long the service shows that somebody types."""

    async def send(self, part: Part) -> str:
        """Send a message and return its id."""

    async def edit(self, message: str, part: Part) -> None:
        """Replace what a message of the bot shows."""

    async def delete(self, message: str) -> None:
        """Remove a message of the bot."""

    async def typing(self) -> None:
        """Show that an answer is being written."""

    async def notice(self, text: str) -> None:
        """Send a sentence of bardo's own."""
