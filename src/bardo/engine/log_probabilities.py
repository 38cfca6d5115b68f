"""Give a client the log probabilities of an answer's tokens in its own dialect's form and place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.dialects import dialect
from bardo.dialects.shared.content_forms import Entry, LogprobForm
from bardo.engine.reply_stages import TextObserver
from bardo.values.events import BlockFields, ContentChunk, Event, Failed, Finish, ReplyFields


class TranslateLogprobs(TextObserver):
    """Writes the log probabilities of a reply, which came as `given` in the dialect `source`, as `wanted` in the dialect `client`.

    Where the client has them at blocks and the provider does not, they stand at the last block of text.
    """

    acts_on: frozenset[type] = frozenset((BlockFields, ReplyFields))

    def __init__(self, source: str, given: LogprobForm, client: str, wanted: LogprobForm) -> None:
        self._source, self._given = source, given
        self._client, self._wanted = client, wanted
        self._text_blocks: dict[int, int] = {}
        self._held: dict[int, list[Entry]] = {}

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with log probabilities as the client reads them in place of those that came."""
        match item:
            case ContentChunk():
                self._text_blocks[item.choice] = item.block
            case BlockFields() | ReplyFields() if item.dialect == self._source and self._given.field in item.fields:
                return self._translated(item)
            case Finish():
                return (*self._release(item.choice), item)
            case Failed():
                return (*self.finish(), item)
        return (item,)

    def passes_run(self, piece: Any) -> bool:
        """Whether text passes as it is: always."""
        return True

    def observe_run(self, pieces: Sequence[Any]) -> None:
        """Take pieces of the answer."""
        if type(pieces[0]) is ContentChunk:
            self._text_blocks[pieces[0].choice] = pieces[0].block

    def finish(self) -> Sequence[Event]:
        """Give what is still held."""
        return [event for choice in list(self._held) for event in self._release(choice)]

    def _translated(self, item: BlockFields | ReplyFields) -> Sequence[Event]:
        entries = self._given.read(item.fields[self._given.field])
        if not entries:
            return (item,)
        fields = {name: value for name, value in item.fields.items() if name != self._given.field}
        choice = item.choice or 0
        kept: tuple[Event, ...] = ()
        if fields and isinstance(item, BlockFields):
            kept = (BlockFields(item.block, item.dialect, fields, item.choice),)
        elif fields:
            kept = (ReplyFields(item.dialect, fields, item.choice),)
        if isinstance(item, BlockFields) and self._wanted.of == "block":
            return (*kept, self._at(choice, item.block, entries))
        self._held.setdefault(choice, []).extend(entries)
        return kept if self._wanted.of == "block" else (*kept, *self._release(choice))

    def _release(self, choice: int) -> Sequence[Event]:
        held = self._held.pop(choice, [])
        return [self._at(choice, self._text_blocks.get(choice, 0), held)] if held else []

    def _at(self, choice: int, block: int, entries: Sequence[Entry]) -> Event:
        fields = {self._wanted.field: self._wanted.write(entries)}
        if self._wanted.of == "block":
            return BlockFields(block, self._client, fields, choice)
        return ReplyFields(self._client, fields, choice if self._wanted.of == "choice" else None)


def logprobs_between(source: str, client: str) -> list[TranslateLogprobs]:
    """Return the stage that gives a client the log probabilities of a provider's dialect, where both have them."""
    given, wanted = logprob_form(source), logprob_form(client)
    if source == client or given is None or wanted is None:
        return []
    return [TranslateLogprobs(source, given, client, wanted)]


def logprob_form(name: str) -> LogprobForm | None:
    """Return how a dialect has log probabilities; None where it has none, and for a caller without a dialect."""
    declared = dialect(name).reply if name else None
    return declared.logprobs if declared is not None else None
