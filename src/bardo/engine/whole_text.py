"""A whole reply that is one text and nothing else, as most are: its response is made at once, without the stages of a reply.

What it says is what `ReplyReader` says of the same body. A test compares the two over all recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bardo.catalog.features import shows_summaries
from bardo.dialects import dialect
from bardo.engine.reply_reader import ReplyReader
from bardo.engine.reply_stages import LONGEST_NAME, FillMissingFields, pass_whole
from bardo.engine.route import Target
from bardo.engine.written_tokens import WrittenTokens
from bardo.reasoning.inline import ThinkingPlace
from bardo.streams.frames import MAX_FRAME_BYTES
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError
from bardo.values.events import ContentChunk, Degraded, Event, Finish, ReplyFields, ReplyStart, UsageUpdate
from bardo.values.fold import ResponseFold, response_of_text
from bardo.values.response import Response
from bardo.values.secrets import Secrets
from bardo.values.usage import Usage

_OF_TEXTS = frozenset({ReplyStart, ContentChunk, Finish, UsageUpdate, ReplyFields, Degraded})
"""The events of a reply without thinking, calls and state."""


class WholeText:
    """A reply that was read, as `ReplyReader` gives it. Its events are folded only where somebody adds to them."""

    __slots__ = ("__weakref__", "_degraded", "_fold", "_response", "_target", "events")

    failure: BardoError | None = None
    lacks_ids = broke_off = switches = reframed = False
    over = holds_all = True
    thinking_place: ThinkingPlace | None = None

    def __init__(self, events: Sequence[Event], target: Target, degraded: tuple[Degradation, ...]) -> None:
        self.events = events
        self._target = target
        self._degraded = degraded
        self._fold: ResponseFold | None = None
        provider = target.provider
        self._response = response_of_text(
            events,
            degraded=degraded,
            provider=provider.id,
            model=target.model,
            billed_as_output=provider.row.billed_as_output,
        )

    @property
    def fold(self) -> ResponseFold:
        """The reply, for whoever adds to it."""
        if self._fold is None:
            provider = self._target.provider
            self._fold = ResponseFold(
                provider=provider.id,
                model=self._target.model,
                billed_as_output=provider.row.billed_as_output,
                summarizes=shows_summaries,
            )
            for event in (*map(Degraded, self._degraded), *self.events):
                self._fold.feed(event)
        return self._fold

    @property
    def usage(self) -> Usage:
        """What the reply has used."""
        return self.response().usage

    @property
    def written(self) -> WrittenTokens:
        """What the model wrote."""
        written = WrittenTokens()
        written.feed(self.events)
        return written

    def unfinished_usage(self, correction: float = 1.0) -> Usage:
        """Return what the reply used: all of it came."""
        return self.usage

    def response(self) -> Response:
        """Return the reply."""
        return self.fold.response() if self._fold is not None or self._response is None else self._response

    def response_with_reasoning(self) -> Response:
        """Return the reply: nothing of it is left out for a client."""
        return self.response()

    def unfiltered_response(self) -> Response | None:
        """Return None: nothing of the reply is left out for a client."""
        return None

    def fields_to_return(self) -> dict[int, dict[str, Any]]:
        """Return nothing: a text has no fields that the provider takes back."""
        return {}

    def settle(self, events: Sequence[Event]) -> list[Event]:
        """Take events that were made behind the reply."""
        for event in events:
            self.fold.feed(event)
        return [*events]


Reader = ReplyReader | WholeText
"""What has read a reply, or reads it."""


def read_text(
    body: bytes,
    target: Target,
    *,
    stamp: ReplyStart,
    degraded: tuple[Degradation, ...],
    stages: Sequence[Stage[Event, Event]],
    secrets: Secrets,
) -> WholeText | None:
    """Return a body that is one text and nothing else; None for any other, and for one that quotes a secret.

    `degraded` is what the attempt gave up, `stages` look at the events last, and `stamp` fills what the provider leaves out.
    """
    row = target.provider.row
    read = dialect(row.dialect).read_text
    events = None if read is None or len(body) > MAX_FRAME_BYTES else read(body, row)
    if not events or not _is_one_text(events) or (secrets.longest and secrets.stand_in(body)):
        return None
    start = events[0]
    if type(start) is ReplyStart and start.id and start.model and start.created is not None and _is_short(start):
        events = pass_whole(events, stages) if stages else events
    else:
        events = pass_whole(events, (FillMissingFields(stamp), *stages))
    return WholeText(events, target, degraded)


def _is_short(start: ReplyStart) -> bool:
    return len(start.id) <= LONGEST_NAME and len(start.model) <= LONGEST_NAME


def _is_one_text(events: Sequence[Event]) -> bool:
    kinds = [*map(type, events)]
    return kinds.count(ContentChunk) == 1 and _OF_TEXTS.issuperset(kinds)
