"""Split a text into thinking and answer by the delimiters of its format, or by the messages that stand in it."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from types import MappingProxyType
from typing import Literal

import msgspec

from bardo.reasoning.formats import ReasoningFormat, spellings
from bardo.reasoning.mentions import is_mention, is_plain_tag
from bardo.reasoning.phases import (
    MatchedText,
    Move,
    Moves,
    OptionalParts,
    Part,
    Phase,
    Phases,
    Shape,
    content,
    reasoning,
    stripped,
)
from bardo.streams.fences import FenceTracker


def delimiter_phases(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name."""
    multi, anywhere = row.blocks == "multi", row.opens == "anywhere"
    openers = {start: Move("opened", opens=True) for start in row.starts}
    leading = {end: Move("after") for end in row.ends} if row.leading_closer else {}
    after = "closed" if row.answer_start else "after"
    ends = {end: Move(after) for end in row.ends}
    implicit = {
        marker: Move("called" if marker in _calls_of(row) else after, "again", unless_mentioned=is_plain_tag(marker))
        for marker in row.implicit_ends
    }
    # A delimiter that ends a block in both ways is consumed.
    closing = implicit | ends | {start: Move("calling", "entered") for start in spellings(row.call_start)}
    again = openers if multi else {}

    def dropping(phase: str) -> dict[str, Move]:
        return {marker: Move(phase) for marker in row.dropped}

    return {
        "before": content(
            {**stripped(row.stripped), **leading, **openers, **dropping("before")}, settles="outside", fenced=anywhere
        ),
        "outside": content((openers if anywhere else {}) | dropping("outside"), fenced=anywhere),
        "opened": reasoning({start: Move("inside") for start in row.starts} | closing, settles="inside"),
        "inside": reasoning(closing),
        "after": content(
            again | dropping("after"), settles="outside" if multi and not anywhere else None, fenced=anywhere
        ),
        **_interrupted(row, openers if anywhere else {}, dropping("called")),
        **_wrapper(row, again, dropping("closed")),
        **_calling(row, closing),
    }


def _calls_of(row: ReasoningFormat) -> dict[str, str]:
    """Return what ends each call that ends a block: its own tag, closed."""
    if row.answer_start:
        return {}
    ends = {marker: _closed(marker) for marker in row.implicit_ends if marker not in (*row.ends, *row.dropped)}
    return {marker: end for marker, end in ends.items() if end}


def _closed(marker: str) -> str:
    """Return the marker that closes what this one opens; empty where its spelling does not say."""
    for opens, closes in (("begin", "end"), ("START", "END"), ("open", "close")):
        if opens in marker:
            return marker.replace(opens, closes)
    head, tag, rest = marker.rpartition("<")
    if not tag or rest.startswith("|"):
        return ""
    # A tag with attributes is closed by its name.
    name = rest if rest.endswith(">") else f"{rest.partition(' ')[0]}>"
    return f"{head}</{name}"


def _interrupted(row: ReasoningFormat, openers: Moves, dropping: Moves) -> dict[str, Phase]:
    """A call ends a block, and models that called inside it still close it behind: that closer is none of the answer's.

    What a call says is text, and so is a closer behind anything but a call, which an answer may name.
    """
    calls = _calls_of(row)
    if not calls:
        return {}
    closers = {end: Move("after") for end in row.ends}
    begun = {marker: Move("calls", "left") for marker in calls}
    ended = {end: Move("called", "left") for end in calls.values()}
    fenced = row.opens == "anywhere"
    settles = "outside" if row.blocks == "multi" and not fenced else "after"
    return {
        "calls": content(ended, fenced=fenced),
        "called": content({**openers, **dropping, **closers, **begun}, settles=settles, fenced=fenced),
    }


def _wrapper(row: ReasoningFormat, again: Moves, dropping: Moves) -> dict[str, Phase]:
    """Only the first thing after a block opens the wrapper of the answer, and the first end closes it."""
    if not row.answer_start:
        return {}
    opening = {start: Move("wrapped") for start in spellings(row.answer_start)}
    return {
        "closed": content({**again, **dropping, **opening}, settles="after"),
        "wrapped": content({end: Move("after") for end in spellings(row.answer_end)}),
    }


def _calling(row: ReasoningFormat, closing: Moves) -> dict[str, Phase]:
    """A call inside a block belongs to the answer; then the block goes on, though often there is no more of it."""
    if not row.call_start:
        return {}
    resuming = {end: Move("resumed", "left") for end in spellings(row.call_end)}
    ends = {end: Move("after") for end in row.ends}
    return {"calling": content({**ends, **resuming}), "resumed": reasoning(closing, settles="inside", quiet=True)}


SUFFIX = re.compile(r":[\w-]+>$")
NAME = MatchedText(r"[\w-]{1,64}+")


def suffixed_phases(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name. Its delimiters are written without suffix, and end with `>`."""
    return {name: _suffixed(phase) for name, phase in delimiter_phases(row).items()}


def _suffixed(phase: Phase) -> Phase:
    moves: Mapping[str, Move] = phase.moves
    shapes = [(marker.removesuffix(">"), OptionalParts((":", NAME)), ">") for marker in moves]

    def read(marker: str) -> Move:
        return moves[SUFFIX.sub(">", marker)]

    if phase.reasoning:
        return reasoning(moves, shapes=shapes, header=read, settles=phase.settles)
    return content(moves, shapes=shapes, header=read, settles=phase.settles, fenced=phase.fenced)


Kind = Literal["reasoning", "answer", "call"]

MALFORMED = "a message header that could not be read was kept as text"


class Grammar(msgspec.Struct, frozen=True):
    """How a family writes the headers and ends of messages."""

    headers: tuple[Shape, ...]
    leads: tuple[Shape, ...]
    """Headers that go on with what the prompt began, so they count only at the beginning of a reply."""
    marks: tuple[str, ...]
    """Begin nothing but headers."""
    ends: tuple[str, ...]
    kind: Callable[[str], Kind | None]
    """Says which message a header begins; None if it is none."""


def message_phases(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name. In "single" formats those after the block have names of their own."""
    grammar = GRAMMARS[row.machine]
    ends = (*grammar.ends, *row.ends)
    spent = "spent " if row.blocks == "single" else ""
    phases = _contents(row, grammar, ends, family="", header_of_reasoning=Move("inside", opens=True))
    if spent:
        phases = _contents(row, grammar, ends, family=spent, header_of_reasoning=None) | phases
    closing = {end: Move(f"{spent}outside") for end in ends}
    return {
        **phases,
        "opened": _inside(grammar, closing, partial(_in_block, row, grammar, spent, True), settles="inside"),
        "inside": _inside(grammar, closing, partial(_in_block, row, grammar, spent, False)),
        "after": phases["outside"],
    }


def _contents(
    row: ReasoningFormat, grammar: Grammar, ends: Collection[str], *, family: str, header_of_reasoning: Move | None
) -> dict[str, Phase]:
    outside, answer, call = f"{family}outside", f"{family}answer", f"{family}call"

    def phase(
        here: str, moves: Mapping[str, Move], shapes: tuple[Shape, ...], settles: str | None, fenced: bool
    ) -> Phase:
        read = partial(_in_content, grammar, family, here, header_of_reasoning)
        return content({**_strays(grammar, here), **moves}, shapes=shapes, header=read, settles=settles, fenced=fenced)

    dropped = {marker: Move(outside) for marker in row.dropped}
    return {
        "before": phase(
            outside, {**stripped(row.stripped), **dropped}, (*grammar.leads, *grammar.headers), outside, True
        ),
        outside: phase(outside, dropped, grammar.headers, None, True),
        answer: phase(answer, {end: Move(outside) for end in ends}, grammar.headers, None, True),
        call: phase(call, {end: Move(outside, "left") for end in ends}, grammar.headers, None, False),
    }


def _inside(grammar: Grammar, closing: Moves, read: Callable[[str], Move], settles: str | None = None) -> Phase:
    return reasoning({**_strays(grammar, "inside"), **closing}, shapes=grammar.headers, header=read, settles=settles)


def _strays(grammar: Grammar, here: str) -> dict[str, Move]:
    return {mark: Move(here, "entered", opens=True, note=MALFORMED) for mark in grammar.marks}


def _in_content(grammar: Grammar, family: str, here: str, thinking: Move | None, header: str) -> Move:
    match grammar.kind(header):
        case "reasoning":
            return thinking or Move(here, "entered", opens=True)
        case "answer":
            return Move(f"{family}answer", opens=True)
        case "call":
            return Move(f"{family}call", "entered", opens=True)
        case None:
            return Move(here, "entered", opens=True, note=MALFORMED)


def _in_block(row: ReasoningFormat, grammar: Grammar, spent: str, echo: bool, header: str) -> Move:
    match grammar.kind(header):
        case "reasoning" if echo:
            return Move("inside")
        case "reasoning" if header in row.starts or spent:
            # A bare opener in an open block is nested, and nested tags are text.
            return Move("inside", "entered")
        case "reasoning":
            return Move("inside", anew=True)
        case "answer":
            return Move(f"{spent}answer")
        case "call":
            return Move(f"{spent}call", "entered")
        case None:
            return Move("inside", "entered", note=MALFORMED)


# --- Harmony: <|start|>assistant to=… <|channel|>name to=… <|constrain|>json<|message|> … <|end|> --------------------

RECIPIENT = re.compile(r"(?<!\w)to=([^\s<]+)")
CHANNEL = re.compile(r"<\|channel\|>[ \t]*(\w*)")
# A header may be addressed to who reads the answer; all others are tools.
PEOPLE = ("assistant", "user", "all")
CHANNELS: Mapping[str, Kind] = {"analysis": "reasoning", "commentary": "answer", "final": "answer"}


def _harmony_kind(header: str) -> Kind | None:
    header = header.replace("<|start|> ", "<|start|>", 1)
    recipient = RECIPIENT.search(header)
    if header.startswith("<|start|>assistant") and re.match(r"\w", header[len("<|start|>assistant") :]):
        return None
    if recipient and recipient[1] not in PEOPLE:
        return "call"
    # A stray header without a message may come before the one that counts.
    channels = CHANNEL.findall(header)
    return CHANNELS.get(channels[-1]) if channels else "answer"


_LINE = MatchedText(r"[^<\n]{0,200}+")
_ONE_CHANNEL = ("<|channel|>", _LINE)
_CONSTRAIN = OptionalParts(("<|constrain|>", _LINE))
_TO = MatchedText(r"[^\s<]{0,128}+ ?+")


def _harmony(after_token: tuple[Part, ...] = ()) -> Grammar:
    """Return the grammar; `after_token` is what may stand between a special token and the text after it."""
    channels = (*_ONE_CHANNEL, OptionalParts(_ONE_CHANNEL), _CONSTRAIN, "<|message|>", *after_token)
    optional_channels = OptionalParts((*_ONE_CHANNEL, OptionalParts(_ONE_CHANNEL)))
    return Grammar(
        headers=(channels, ("<|start|>", *after_token, "assistant", _LINE, optional_channels, *channels[3:])),
        leads=(
            (" to=", _TO, *channels),
            ("to=", _TO, *channels),
            ("assistant", OptionalParts((" to=", _TO)), *channels),
        ),
        marks=("<|start|>", "<|channel|>"),
        ends=("<|end|>", "<|return|>", "<|call|>"),
        kind=_harmony_kind,
    )


HARMONY = _harmony()
SPACED_HARMONY = _harmony((OptionalParts((" ",)),))


# --- Muse: <|start|>assistant to=recipient<|message|> … <|eom|> ------------------------------------------------------

# What a model tells the developer is not for the user: it is shown as thinking, so that nothing is lost.
MUSE_RECIPIENTS: Mapping[str, Kind] = {
    "self": "reasoning",
    "developer": "reasoning",
    "user": "answer",
    "commentary": "answer",
}


def _muse_kind(bare: Kind, header: str) -> Kind | None:
    """Return the kind of a message of Muse; `bare` is that of one without a recipient."""
    recipient = RECIPIENT.search(header)
    if recipient is None:
        return None if "to=" in header else bare
    return MUSE_RECIPIENTS.get(recipient[1], "call")


_NAME = MatchedText(r"[\w.:/-]{0,128}+")


def _muse(bare: Kind) -> Grammar:
    return Grammar(
        headers=(("<|start|>assistant", OptionalParts((" to=", _NAME)), "<|message|>"), (" to=", _NAME, "<|message|>")),
        leads=(("to=", _NAME, "<|message|>"), ("<|message|>",)),
        marks=("<|start|>",),
        ends=("<|eom|>", "<|eot|>"),
        kind=partial(_muse_kind, bare),
    )


# --- Inkling: <|message_model|><|content_text|> … <|end_message|> ----------------------------------------------------

CONTENTS: Mapping[str, Kind] = {
    "<|content_thinking|>": "reasoning",
    "<|content_text|>": "answer",
    "<|content_tool_error|>": "answer",
    "<|content_invoke_tool_json|>": "call",
    "<|content_invoke_tool_text|>": "call",
}


def _inkling_kind(header: str) -> Kind | None:
    return next((kind for marker, kind in CONTENTS.items() if header.endswith(marker)), None)


INKLING = Grammar(
    headers=(*((marker,) for marker in CONTENTS), *(("<|message_model|>", _LINE, marker) for marker in CONTENTS)),
    leads=(),
    marks=("<|message_model|>",),
    ends=("<|end_message|>", "<|content_model_end_sampling|>"),
    kind=_inkling_kind,
)

GRAMMARS: Mapping[str, Grammar] = {
    "harmony": HARMONY,
    "spaced_harmony": SPACED_HARMONY,
    "muse": _muse("reasoning"),
    "muse_glimmer": _muse("answer"),
    "inkling": INKLING,
}


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A piece of a reply.

    Reasoning segments belong to one block until one of them `closes` it; every block that began is closed once, by
    its end or by the end of the reply. A block that is empty, or has only begun, shows as a segment with no text.
    """

    reasoning: bool
    text: str
    closes: bool = False


# Where nothing decides any more, all text without this passes, and text with it does too.
UNHEARD_OF = "\0\0"


@lru_cache(maxsize=256)
def phases_of(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name, the same to every reply in it."""
    if row.machine in GRAMMARS:
        return MappingProxyType(dict(message_phases(row)))
    return MappingProxyType(dict(suffixed_phases(row) if row.machine == "suffixed" else delimiter_phases(row)))


class Splitter:
    """Splits one reply. `starts_inside` overrules the format, which cannot know how the prompt ended.

    `inside` says whether the text read so far ends inside a block; true before `finish` means that no end came. `passing` is
    the text without which the next piece passes as it is, empty where the piece has to be read. `notes` says what the caller
    should be told of this reply, each thing once.
    """

    __slots__ = ("_begun", "_fence", "_held", "_phase", "_phases", "format", "inside", "notes", "passing")

    def __init__(
        self,
        format: ReasoningFormat,  # noqa: A002
        *,
        starts_inside: bool | None = None,
    ) -> None:
        self.format = format
        inside = format.starts_inside is True if starts_inside is None else starts_inside
        self._phases = phases_of(format)
        self._phase = self._phases["opened" if inside else "before"]
        self._fence = FenceTracker()
        self._begun = False
        self.notes: list[str] = []
        self._hold("")

    def feed(self, text: str) -> Sequence[Segment]:
        phase = self._phase
        # Most chunks hold no marker, nor the beginning of one.
        if text and not self._held and phase.settles is None:
            absent = phase.first not in text if phase.first else phase.silent
            if absent or phase.growing.search(text) is None:
                if phase.fenced:
                    self._fence.feed(text)
                return (Segment(phase.reasoning, text),)
        return self._scan(self._held + text, _Segments(), final=False).take()

    def finish(self) -> Sequence[Segment]:
        """Return what was held, and close an open block. Nothing may be fed afterwards."""
        segments = self._scan(self._held, _Segments(), final=True)
        if self._phase.reasoning and self._begun:
            segments.close()
        self._phase = self._phases["after"]
        self._hold("")
        return segments.take()

    def ends_inside(self, text: str) -> bool:
        """Say whether `text`, as the last that is fed, would end inside a block. Nothing may be fed afterwards."""
        self._scan(self._held + text, _Segments(), final=True)
        return self._phase.reasoning

    def _scan(self, text: str, segments: _Segments, *, final: bool) -> _Segments:
        """Read `text`, which begins with what was held, and hold again what cannot be decided yet."""
        start = search_from = 0
        while True:
            phase = self._phase
            pattern = phase.final if final else phase.growing
            match = None if phase.silent else pattern.search(text, search_from)
            edge = match.start() if match else len(text)
            if phase.settles and not _blank(text[start:edge]):
                self._phase = self._phases[phase.settles]
                continue
            self._pass(text[start:edge], phase, segments)
            start = edge
            if match is None:
                self._hold("")
                return segments
            if phase.fenced and self._fence.inside:
                # In fenced code an opener is text, and hides no shorter marker that begins with it.
                match = (phase.fenced_final if final else phase.fenced_growing).match(text, edge)
            if match is None:
                search_from = edge + 1
            elif match.lastindex is None or (mention := _mention(phase, match, final)) is None:
                self._hold(text[edge:])
                return segments
            elif mention:
                search_from = match.end()
            else:
                start = search_from = self._move(phase, match, segments)

    def _hold(self, text: str) -> None:
        phase = self._phase
        self._held = text
        self.inside = phase.reasoning
        decides = text or phase.settles or phase.fenced
        self.passing = "" if decides else UNHEARD_OF if phase.silent else phase.first

    def _pass(self, text: str, phase: Phase, segments: _Segments) -> None:
        if not text:
            return
        segments.add(phase.reasoning, text)
        self._begun = self._begun or phase.reasoning
        if phase.fenced:
            self._fence.feed(text)

    def _move(self, phase: Phase, match: re.Match[str], segments: _Segments) -> int:
        """Do what the marker says; return where reading goes on."""
        marker = match.group()
        move = phase.move(marker)
        entered = self._phase = self._phases[move.to]
        if move.note and move.note not in self.notes:
            self.notes.append(move.note)
        if move.text == "left":
            self._pass(marker, phase, segments)
        if phase.reasoning and (move.anew or not entered.reasoning):
            self._close(phase, segments)
        if entered.reasoning and not entered.quiet:
            segments.add(True, "")
            self._begun = True
        if move.text == "entered":
            self._pass(marker, entered, segments)
        return match.start() if move.text == "again" else match.end()

    def _close(self, phase: Phase, segments: _Segments) -> None:
        if self._begun or not phase.quiet:
            segments.close()
        self._begun = False
        self._fence = FenceTracker()


class _Segments:
    """Collects pieces in order, and joins neighbours of one kind."""

    __slots__ = ("_done", "_parts", "_reasoning")

    def __init__(self) -> None:
        self._done: list[Segment] = []
        self._parts: list[str] = []
        self._reasoning = False

    def add(self, reasoning: bool, text: str) -> None:
        if reasoning is not self._reasoning:
            self._end_run(closes=False)
            self._reasoning = reasoning
        self._parts.append(text)

    def close(self) -> None:
        self.add(True, "")
        self._end_run(closes=True)

    def take(self) -> list[Segment]:
        self._end_run(closes=False)
        return self._done

    def _end_run(self, *, closes: bool) -> None:
        if self._parts:
            self._done.append(Segment(self._reasoning, "".join(self._parts), closes))
            self._parts = []


def _mention(phase: Phase, match: re.Match[str], final: bool) -> bool | None:
    """Return whether a marker is only mentioned; None while that is not known."""
    if not phase.mentionable or not phase.move(match.group()).unless_mentioned:
        return False
    return is_mention(match.string, match.end(), final=final)


def _blank(text: str) -> bool:
    return not text or text.isspace()
