"""What a dialect can express of a reply, declared. `engine/foreign_content.py` reports everything else that a reply holds.

A new event, count or reason to finish that a dialect does not name fails `tests/dialects/test_reply_declarations.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any, get_args

from bardo.dialects.citations import CitationForm
from bardo.dialects.declaration import Limitation
from bardo.dialects.log_probabilities import LogprobForm
from bardo.dialects.pictures import PictureForm
from bardo.dialects.searches import SearchForm
from bardo.values import events
from bardo.values.events import Event, FinishReason
from bardo.values.usage import Usage

EVENTS: dict[type, str] = {
    events.ThinkStart: "reasoning",
    events.ContentChunk: "text",
    events.RefusalChunk: "refusal",
    events.ToolCallStart: "tool_call",
    events.OpaqueState: "opaque",
}
"""The events that begin or hold content, by the names they are declared under."""

EVENTS_NOT_DECLARED: dict[type, str] = {
    events.ReplyStart: "an id and a model stand in every reply, or are named in the request",
    events.ThinkChunk: "belongs to a ThinkStart",
    events.ThinkEnd: "belongs to a ThinkStart",
    events.EmptyThought: "says that nothing was thought",
    events.WithheldThought: "says what the caller did not want",
    events.ToolCallChunk: "belongs to a ToolCallStart",
    events.ToolCallEnd: "belongs to a ToolCallStart",
    events.BlockFields: "fields of one dialect: those of another are reported by their names",
    events.UnknownContent: "a block of one dialect: those of another are reported by their kinds",
    events.ReplyFields: "fields of one dialect: those of another are reported by their names",
    events.UsageUpdate: "declared count by count",
    events.Degraded: "what is reported",
    events.Finish: "declared reason by reason",
    events.Failed: "every dialect has errors",
    events.Extension: "what bardo itself says",
    events.Partial: "what bardo itself says",
}
"""The other events, and why no dialect declares them."""

USAGE_NOT_DECLARED = frozenset({"raw", "cost_usd", "details", "approx"})
"""Counts that bardo itself gives beside the reply, or that are the provider's own."""

COMMON = frozenset(
    {
        "text", "reasoning", "tool_call", "opaque", "usage.input_tokens", "usage.output_tokens", "finish.stop", "finish.length",
        "finish.tool_calls",
    }
)  # fmt: skip
"""What a dialect expresses unless it declares otherwise."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplyDeclaration:
    """What one dialect can express of a reply, beside what all can (COMMON).

    `expresses` is what else it can, `lacks` what it cannot; of a reason to finish `sent` is the one that its clients read instead.
    `finish_words` are words of the dialect's own, which are written as they came. `counts` are those that its clients must get, as 0 where
    nobody counted; `counts_always`: also where nothing at all was counted. `counts_instead` are those that its clients read from another
    count where nobody gave them. `framing` are fields of its own replies that hold nothing for
    clients of other dialects: what the request said, ids, times, bills, and how blocks are wrapped. `within` names content inside of such
    fields, `usual` the values of other fields that say nothing; a type stands for all of its values. `logprobs` is where log probabilities
    of tokens stand, `citations` where web pages that the answer cites do, `searches` how searches of the web are shown, and `pictures` how
    pictures are. `shared` are fields of the reply as a whole that the dialects which declare them
    have under one name, with the same words.
    `refusal_words` is the dotted path of the field that says in words why a reply was refused, where the words are not the model's own,
    and `refusal_field` the field of the choice where clients read such words beside the reason to finish.
    """

    expresses: frozenset[str] = frozenset()
    lacks: Mapping[str, Limitation]
    finish_words: frozenset[str] = frozenset()
    counts: tuple[str, ...] = ()
    counts_always: bool = False
    counts_instead: Mapping[str, str] = field(default_factory=dict)
    framing: frozenset[str] = frozenset()
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    usual: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    logprobs: LogprobForm | None = None
    citations: CitationForm | None = None
    searches: SearchForm | None = None
    pictures: PictureForm | None = None
    refusal_words: str = ""
    refusal_field: str = ""

    @cached_property
    def lacked_counts(self) -> tuple[tuple[str, str], ...]:
        """The counts that the dialect has no place for: their names, and those of the fields of `Usage`."""
        fields = frozenset(Usage.__struct_fields__)
        split = [(name, name.partition(".")[2]) for name in self.lacks]
        return tuple([(name, count) for name, count in split if count in fields])

    @cached_property
    def lacked_reasons(self) -> dict[str, Limitation]:
        """What clients read instead of the reasons to finish that the dialect has no word for."""
        return {name.removeprefix("finish."): lack for name, lack in self.lacks.items() if name.startswith("finish.")}

    @property
    def declared(self) -> frozenset[str]:
        """All that is named."""
        return COMMON | self.expresses | self.lacks.keys()

    def content(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a reply's fields hold for clients of other dialects, by name; of a framing field the parts named in `within`."""
        found: dict[str, Any] = {}
        for name, value in fields.items():
            if name not in self.framing:
                found[name] = value
            elif name in self.within and isinstance(value, dict):
                found |= {f"{name}.{part}": value[part] for part in value if part in self.within[name]}
        return {name: value for name, value in found.items() if not (is_empty(value) or self._is_usual(name, value))}

    def _is_usual(self, name: str, value: Any) -> bool:
        usual = self.usual.get(name, ())
        return value in usual or type(value) in usual


def is_empty(value: Any, depth: int = 5) -> bool:
    """Whether a value says nothing: 0, an empty text, and an object or list of such. Anything nested deeper than `depth` is content."""
    if not value:
        return True
    if depth == 0 or not isinstance(value, dict | list):
        return False
    return all(is_empty(one, depth - 1) for one in (value.values() if isinstance(value, dict) else value))


@cache
def reply_vocabulary() -> frozenset[str]:
    """Return the names of all that a dialect must declare of replies."""
    counts = {f"usage.{name}" for name in Usage.__struct_fields__ if name not in USAGE_NOT_DECLARED}
    reasons = {f"finish.{reason}" for reason in get_args(FinishReason)}
    return frozenset({*EVENTS.values(), *counts, *reasons, "finish.stop_sequence", "choices"})


@cache
def events_named_nowhere() -> tuple[type, ...]:
    """Return the kinds of events that are neither declared nor excepted: a new one must be put under one of the two."""
    return tuple(kind for kind in get_args(Event) if kind not in EVENTS and kind not in EVENTS_NOT_DECLARED)
