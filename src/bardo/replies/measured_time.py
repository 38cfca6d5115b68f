"""How long a reply took, in the fields of the client's dialect: Ollama's clients divide by durations, Converse's show a latency.

A provider that says it itself is believed: this is for replies of other dialects, which say nothing of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bardo.dialects import dialect
from bardo.streams.stage import Stage
from bardo.values.events import Event, Finish, ReplyFields, ReplyStart


class MeasuredTime:
    """Adds the time of a reply before it says why it ended. `seconds` returns how many have passed since the request was sent."""

    passes_text = True
    acts_on = touches = frozenset((ReplyStart, Finish))

    def __init__(self, client: str, seconds: Callable[[], float]) -> None:
        self._client = client
        self._fields = dialect(client).time_fields
        self._seconds = seconds
        self._begun: float | None = None

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, the end after the time that it took."""
        if type(item) is Finish and not item.choice and self._fields is not None:
            # A reply that came whole began when it ended.
            total = self._seconds()
            begun = total if self._begun is None else self._begun
            return (ReplyFields(self._client, self._fields(begun, total)), item)
        if self._begun is None:
            self._begun = self._seconds()
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


def time_stages(client: str, source: str, seconds: Callable[[], float]) -> list[Stage[Event, Event]]:
    """Return the stage that tells a client of another dialect how long its reply took; none where its dialect has no such field."""
    told = client and client != source and dialect(client).time_fields is not None
    return [MeasuredTime(client, seconds)] if told else []
