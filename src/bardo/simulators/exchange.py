"""One request and the turn chosen for it: all that a provider needs to encode its reply."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bardo.simulators import marks
from bardo.simulators.conversation import Conversation
from bardo.simulators.fields import Fields
from bardo.simulators.turns import ToolCall, Turn, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """`seed` makes ids; `created` is in seconds since 1970; `delta_size` is the characters of one streamed delta."""

    body: Fields
    conversation: Conversation
    model: str
    turn: Turn
    usage: Usage
    seed: str
    created: int
    delta_size: int

    def token(self, label: str, length: int, alphabet: str = marks.ALPHANUMERIC) -> str:
        """Return letters for an id, the same for the same label."""
        return marks.token(f"{self.seed}/{label}", length, alphabet)

    def uuid(self, label: str) -> str:
        """Return an id in the form of a UUID."""
        return marks.uuid(f"{self.seed}/{label}")

    def pieces(self, text: str) -> Iterator[str]:
        """Cut a text into the deltas it is streamed in."""
        for start in range(0, len(text), self.delta_size):
            yield text[start : start + self.delta_size]

    def calls(self) -> Iterator[tuple[int, ToolCall]]:
        """Yield the turn's tool calls with their places."""
        yield from enumerate(self.turn.tool_calls)
