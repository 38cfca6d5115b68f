"""The conversations of a bot, in memory: which one a message belongs to, and what was said in it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

import msgspec

from bardo.values.blocks import ImageBlock, TextBlock
from bardo.values.request import Message
from bardo.values.response import Response

MOST_CONVERSATIONS = 2000
MOST_MESSAGES = 20_000
"""So many messages of the bot can be replied to."""
MOST_WAITING = 3
_WITH_PICTURES = 2
"""Pictures of so many last questions are sent again."""

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Place(msgspec.Struct, frozen=True):
    """Where people talk: a chat or channel and a thread of it. `is_shared`: several people, each of whom begins conversations."""

    name: str
    is_shared: bool = False


class RecentMapping(Generic[Key, Value]):
    """A mapping that forgets what was not used for longest, once it holds more than `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._items: OrderedDict[Key, Value] = OrderedDict()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Key) -> Value | None:
        """Return a value, which counts as a use of it, or None if there is none."""
        if key in self._items:
            self._items.move_to_end(key)
        return self._items.get(key)

    def put(self, key: Key, value: Value) -> Value:
        """Keep a value and return it."""
        self._items[key] = value
        self._items.move_to_end(key)
        if len(self._items) > self._most:
            self._items.popitem(last=False)
        return value

    def drop(self, key: Key) -> Value | None:
        """Forget a value and return it."""
        return self._items.pop(key, None)


class Conversation:
    """What was said in one conversation. `session` is its name for bardo; one question at a time is answered in it."""

    def __init__(self, session: str, history: int) -> None:
        self.session = session
        self._turns: deque[tuple[Message, Response]] = deque(maxlen=history)
        self._waiting = 0
        self.turn = asyncio.Lock()

    @property
    def is_full(self) -> bool:
        """Whether as many questions wait as may."""
        return self._waiting >= MOST_WAITING

    @contextmanager
    def queue_slot(self) -> Iterator[None]:
        """Count a question among those that wait or are being answered."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    def prompt(self, question: Message) -> list[Message | Response]:
        """Return a question with what was said before it, answers with their thinking."""
        earlier: list[Message | Response] = []
        first_with_pictures = len(self._turns) - _WITH_PICTURES
        for place, (asked, answer) in enumerate(self._turns):
            earlier += [asked if place >= first_with_pictures else _without_pictures(asked), answer]
        return [*earlier, question]

    def add(self, question: Message, answer: Response) -> None:
        """Keep a question and its answer for the turns to come."""
        self._turns.append((question, answer))


class Conversations:
    """Finds the conversation of a message. `service` is what the names of their sessions begin with."""

    def __init__(self, service: str, history: int) -> None:
        self._service = service
        self._history = history
        self._count = 0
        self._of_place: RecentMapping[Place, Conversation] = RecentMapping(MOST_CONVERSATIONS)
        self._of_message: RecentMapping[tuple[str, str], Conversation] = RecentMapping(MOST_MESSAGES)

    def of(self, place: Place, reply_to: str = "") -> Conversation:
        """Return the conversation of a message: that of the message it replies to, else of its place, else a new one.

        Where several people talk, a message that replies to none of the bot's begins a new one.
        """
        known = self._of_message.get((place.name, reply_to)) if reply_to else None
        if known is None and not place.is_shared:
            known = self._of_place.get(place)
        if known is not None:
            return known
        return self.begin(place)

    def begin(self, place: Place) -> Conversation:
        """Begin a new conversation at a place, and return it."""
        self._count += 1
        conversation = Conversation(f"{self._service}:{place.name}:{self._count}", self._history)
        return conversation if place.is_shared else self._of_place.put(place, conversation)

    def note(self, place: Place, message: str, conversation: Conversation) -> None:
        """Remember to which conversation a message of the bot belongs."""
        self._of_message.put((place.name, message), conversation)


def _without_pictures(question: Message) -> Message:
    """Return a question with a word in the place of each picture."""
    blocks = (TextBlock("[a picture]") if isinstance(block, ImageBlock) else block for block in question.blocks)
    return msgspec.structs.replace(question, blocks=tuple(blocks))
