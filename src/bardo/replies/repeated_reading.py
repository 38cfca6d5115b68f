"""The frames of one reply that are alike: read in one go, or postponed until somebody asks what they say."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.dialects.shared.repeated_text import is_text
from bardo.replies.frames import RepeatedFrames, ReplyBeginning
from bardo.replies.reply_stages import TextObserver, observe
from bardo.replies.written_tokens import WrittenTokens
from bardo.streams.sse import SseDecoder
from bardo.streams.stage import Stage
from bardo.values.events import Event, ToolCallChunk
from bardo.values.fold import ResponseFold

# Pieces of a text that are read together.
_MOST_POSTPONED = 64


class RepeatedReading:
    """Reads the frames of one reply that are alike, for its `ReplyReader`.

    `stages` are those of the reply, `fold` what its events are folded into, `written` what counts them, and `beginning` how it began.
    """

    __slots__ = ("_alone", "_beginning", "_fold", "_frames", "_observers", "_passes_text", "_postponed", "_written")

    def __init__(
        self,
        frames: RepeatedFrames,
        stages: Sequence[Stage[Event, Event]],
        fold: ResponseFold,
        written: WrittenTokens,
        beginning: ReplyBeginning,
    ) -> None:
        self._frames = frames
        self._fold = fold
        self._written = written
        self._beginning = beginning
        # Whether the stages pass each piece of a text on, and which of them look at it.
        self._passes_text = all(getattr(stage, "passes_text", False) for stage in stages)
        self._observers = [stage for stage in stages if isinstance(stage, TextObserver)]
        # Whether nobody but the fold looks at what goes on with the text that was read last.
        self._alone = False
        self._postponed: list[bytes] = []

    @property
    def framing(self) -> SseDecoder:
        """What cuts the reply into frames."""
        return self._frames.framing

    def read(self, chunk: bytes, place: int, *, joined: bool) -> tuple[Sequence[Event], int] | None:
        """Return the events of the frames at `place` of `chunk`, and where they end; None where it must be fed."""
        return self._frames.read(chunk, place, joined=joined)

    def read_all(self, chunk: bytes, *, joined: bool) -> Sequence[Event] | None:
        """Return the events of a chunk that holds nothing but such frames, all of them whole; None for any other."""
        return self._frames.read_all(chunk, joined=joined)

    def takes(self, events: Sequence[Event]) -> bool:
        """Take events of frames that repeat where no stage changes them; False where they must pass the stages."""
        if not events:
            return True
        if not self._beginning.has_token:
            self._beginning.note(events)
        passes = self._passes_text and type(events[0]) is not ToolCallChunk and observe(events, self._observers)
        self._alone = passes and not self._observers and self._beginning.has_token
        if passes:
            self._written.feed(events)
            self._fold.feed_run(events)
        return passes

    def may_postpone(self, chunk: bytes) -> bool:
        """Whether a chunk is one frame that goes on with the text that was read last, at which nobody but the fold looks."""
        value = self._frames.value_of(chunk) if self._alone else None
        return value is not None and is_text(value)

    def postpone(self, chunk: bytes) -> None:
        """Read a chunk later, of which `may_postpone` says that it can be."""
        self._postponed.append(chunk)
        if len(self._postponed) >= _MOST_POSTPONED:
            self.catch_up()

    def catch_up(self) -> None:
        """Read what was postponed."""
        if self._postponed:
            chunks, self._postponed = self._postponed, []
            events = self._frames.read_all(b"".join(chunks), joined=True)
            if events:
                self._written.feed(events)
                self._fold.feed_run(events)
