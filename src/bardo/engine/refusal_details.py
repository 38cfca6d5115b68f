"""Say in the client's own form why a provider refused, where that stands in a field which only the provider's dialect has."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.catalog.fragments import value_at
from bardo.dialects import dialect
from bardo.streams.stage import Stage
from bardo.values.events import Event, Finish, RefusalChunk, ReplyFields


class ExplainedRefusal:
    """Adds the explanation of a refusal before the reply's end: in the `field` of the client's dialect, or as the words of a refusal.

    `path` is where it stands in fields of `source`.
    """

    passes_text = True

    def __init__(self, source: str, path: str, client: str, field: str) -> None:
        self._source = source
        self._path = path
        self._client = client
        self._field = field
        self._last = -1
        self._words: dict[int, str] = {}
        self._refused: set[int] = set()

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with the explanation where the model gave no words of its own for its refusal."""
        self._last = max(self._last, getattr(item, "block", -1))
        if type(item) is ReplyFields and item.dialect == self._source:
            words = value_at(item.fields, self._path)
            if isinstance(words, str) and words:
                self._words[item.choice or 0] = words
        elif type(item) is RefusalChunk:
            self._refused.add(item.choice)
        elif type(item) is Finish and item.reason == "refusal" and item.choice not in self._refused:
            words = self._words.pop(item.choice, "")
            return (self._explanation(words, item.choice), item) if words else (item,)
        return (item,)

    def _explanation(self, words: str, choice: int) -> Event:
        if self._field:
            return ReplyFields(self._client, {self._field: words}, choice)
        self._last += 1
        return RefusalChunk(self._last, words, choice)

    def finish(self) -> Sequence[Event]:
        """Nothing is held."""
        return ()


def refusal_stages(source: str, client: str) -> list[Stage[Event, Event]]:
    """Return what explains refusals of a provider that speaks `source` to a client of another dialect."""
    given, wanted = dialect(source).reply, dialect(client).reply if client else None
    if source == client or given is None or not given.refusal_words:
        return []
    return [ExplainedRefusal(source, given.refusal_words, client, "" if wanted is None else wanted.refusal_field)]
