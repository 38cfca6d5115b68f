"""Read reasoning out of the text of one reply, with results that hold reasoning and answer side by side.

Callers who need the exact order of pieces use the `Splitter` below it.
"""

from __future__ import annotations

from codecs import utf_8_decode
from collections.abc import Sequence
from copy import copy
from typing import Self

import msgspec

from bardo.reasoning.formats import ReasoningFormat, check_delimiters, check_pair
from bardo.reasoning.machines import splitter_for
from bardo.reasoning.splitter import Segment, Splitter


class Utf8Feed:
    """Decodes UTF-8 in pieces; a code point that is not complete yet is held.

    `held` is what has come of it. Bytes that are not UTF-8 become U+FFFD, and `replaced` says for the whole reply that this happened.
    """

    __slots__ = ("held", "replaced")

    def __init__(self) -> None:
        self.held = b""
        self.replaced = False

    def feed(self, data: bytes) -> str:
        return self._decode(data, final=False)

    def finish(self) -> str:
        return self._decode(b"", final=True) if self.held else ""

    def _decode(self, data: bytes, *, final: bool) -> str:
        data = self.held + data
        try:
            text, used = utf_8_decode(data, "strict", final)
        except UnicodeDecodeError:
            self.replaced = True
            text, used = utf_8_decode(data, "replace", final)
        self.held = data[used:]
        return text


class ParserConfig(msgspec.Struct, frozen=True):
    """How a reply is read: its tags, where it begins, and whether reasoning is given as it arrives.

    With `stream_reasoning=False` a block is given in one piece when it ends, or as soon as `max_buffer_size`
    characters of it have gathered.
    """

    think_start_token: str = "<think>"
    think_end_token: str = "</think>"
    stream_reasoning: bool = True
    max_buffer_size: int = 65536
    initial_in_reasoning: bool = False

    def __post_init__(self) -> None:
        """Raise BadDelimiter for a token that is empty or too long, and where both are the same."""
        start, end = ("think_start_token", self.think_start_token), ("think_end_token", self.think_end_token)
        for key, token in (start, end):
            check_delimiters("ParserConfig", key, token)
        check_pair("ParserConfig", start, end)


class ParserResult(msgspec.Struct, frozen=True, gc=False):
    """The parts that a chunk added to the answer and to the reasoning."""

    normal_text: str = ""
    reasoning_text: str = ""

    @classmethod
    def new(cls, normal: str, reasoning: str) -> Self:
        """Return a result of an answer and of reasoning (004, `ParserResult::new`)."""
        return cls(normal, reasoning)

    @classmethod
    def normal(cls, text: str) -> Self:
        """Return a result that is only answer (004, `ParserResult::normal`)."""
        return cls(text)

    @classmethod
    def reasoning(cls, text: str) -> Self:
        """Return a result that is only reasoning (004, `ParserResult::reasoning`)."""
        return cls("", text)

    @property
    def is_empty(self) -> bool:
        return not self.normal_text and not self.reasoning_text


EMPTY = ParserResult()
DEFAULTS = ParserConfig()


class ReasoningParser:
    """Reads one reply; `reset` makes it ready for the next.

    A `format` takes the place of the tags and the beginning that `config` names; `starts_inside` overrules both.
    """

    def __init__(
        self,
        config: ParserConfig = DEFAULTS,
        *,
        format: ReasoningFormat | None = None,  # noqa: A002
        starts_inside: bool | None = None,
        model_type: str = "",
    ) -> None:
        self.config = config
        self.format = format or _format_of(config)
        self.starts_inside = starts_inside
        self._model_type = model_type or self.format.name
        self.reset()

    @property
    def model_type(self) -> str:
        return self._model_type

    def with_model_type(self, model: str) -> Self:
        """Return a parser of its own that reads as this one does, under another `model_type` (004, `with_model_type`)."""
        named = copy(self)
        named._model_type = model
        named.reset()
        return named

    @property
    def replaced(self) -> bool:
        """Whether bytes of this reply were not UTF-8 and became U+FFFD."""
        return self._bytes.replaced

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes for the caller on this reply so far: headers that could not be read, tokens that are missing."""
        return tuple(getattr(self._splitter, "notes", ()))

    def detect_and_parse_reasoning(self, text: str | bytes) -> ParserResult:
        """Read a whole reply, apart from the one that is being streamed."""
        parser = copy(self)
        parser.reset()
        results = (parser.parse_reasoning_streaming_incremental(text), parser.finish())
        return ParserResult(
            "".join([result.normal_text for result in results]), "".join([result.reasoning_text for result in results])
        )

    def parse_reasoning_streaming_incremental(self, chunk: str | bytes) -> ParserResult:
        """Read the next chunk. Bytes may be cut anywhere, inside a code point too."""
        fast = self._fast
        if fast is not None and type(chunk) is str:
            passing = fast.passing
            if passing and chunk and passing not in chunk:
                return ParserResult("", chunk) if fast.inside else ParserResult(chunk)
        return self._result(self._splitter.feed(self._text_of(chunk)))

    def finish(self) -> ParserResult:
        """Return all that was held; the reply is over."""
        return self._result([*self._splitter.feed(self._bytes.finish()), *self._splitter.finish()])

    def reset(self) -> None:
        """Forget the reply."""
        splitter = self._splitter = splitter_for(self.format, starts_inside=self.starts_inside)
        # Most chunks need no more than one look, as long as they are text and nothing is gathered.
        self._fast = splitter if isinstance(splitter, Splitter) and self.config.stream_reasoning else None
        self._bytes = Utf8Feed()
        self._withheld: list[str] = []
        self._withheld_size = 0

    def _text_of(self, chunk: str | bytes) -> str:
        if isinstance(chunk, str):
            return self._bytes.finish() + chunk
        self._fast = None
        return self._bytes.feed(chunk)

    def _result(self, segments: Sequence[Segment]) -> ParserResult:
        if not segments:
            return EMPTY
        if not self.config.stream_reasoning:
            segments = [self._gathered(segment) for segment in segments]
        if len(segments) == 1:
            only = segments[0]
            return ParserResult("", only.text) if only.reasoning else ParserResult(only.text)
        return ParserResult(
            "".join([segment.text for segment in segments if not segment.reasoning]),
            "".join([segment.text for segment in segments if segment.reasoning]),
        )

    def _gathered(self, segment: Segment) -> Segment:
        """Withhold a piece of reasoning until its block ends or the buffer is full."""
        if not segment.reasoning:
            return segment
        self._withheld.append(segment.text)
        self._withheld_size += len(segment.text)
        full = self._withheld_size >= self.config.max_buffer_size
        return Segment(True, self._release() if segment.closes or full else "", segment.closes)

    def _release(self) -> str:
        text = "".join(self._withheld)
        self._withheld.clear()
        self._withheld_size = 0
        return text


def _format_of(config: ParserConfig) -> ReasoningFormat:
    return ReasoningFormat(
        name="base",
        start=config.think_start_token,
        end=config.think_end_token,
        starts_inside=config.initial_in_reasoning,
    )
