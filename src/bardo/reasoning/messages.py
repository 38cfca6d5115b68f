"""Compile formats that write a reply as messages with headers into the phases that a reply goes through.

    outside ─ header of reasoning ─> inside ─ end ─> outside ─ header of an answer ─> answer ─ end ─> outside …
    outside ─ header of a call ─> call: header, body and end stay in the text, for whoever reads the calls

A header whose end has not come is held; one that cannot be read is text where it stands, with a note.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

from bardo.reasoning.formats import ReasoningFormat
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

Kind = Literal["reasoning", "answer", "call"]

MALFORMED = "a message header that could not be read was kept as text"


@dataclass(frozen=True, slots=True)
class Grammar:
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
    row: ReasoningFormat,
    grammar: Grammar,
    ends: Collection[str],
    *,
    family: str,
    header_of_reasoning: Move | None,
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
    moves = {**_strays(grammar, "inside"), **closing}
    return reasoning(moves, shapes=grammar.headers, header=read, settles=settles)


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
        headers=(
            channels,
            ("<|start|>", *after_token, "assistant", _LINE, optional_channels, *channels[3:]),
        ),
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
