"""What is told of a call that nobody made: its route, the exact upstream request, where each field comes from, and what differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any

import msgspec

from bardo.structured.modes import Form, Mode
from bardo.structured.plan import Skipped
from bardo.structured.rewrite import Rewrite
from bardo.values.degradation import Degradation
from bardo.values.notebook import one_line
from bardo.values.profile import InferenceProfile
from bardo.values.request import Intent

__all__ = ["AnswerForm", "Candidate", "Explanation", "FieldSource", "PlannedReceipt", "Route", "TextReading"]


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A provider that may serve the model, and why it may. `passed_over` says why it is not asked, empty where it could be.

    `address` names the one of its servers, where it has several.

    Of a request that says what it needs: `reasons` are the words for programs (`lacks:visible_thinking`) of `passed_over`, `relaxed`
    says that it does not meet every requirement, and `degraded` names what it lacks. `score` and `estimated_cost_usd` (of the call, in
    USD) are None if they are not known.
    """

    provider: str
    model: str
    why: str
    passed_over: str = ""
    reasons: tuple[str, ...] = ()
    relaxed: bool = False
    score: float | None = None
    estimated_cost_usd: float | None = None
    degraded: tuple[str, ...] = ()
    address: str = ""

    def __repr__(self) -> str:
        """Return who it is and what is known of it, without what is not."""
        return one_line("Candidate", _known(self))


class Route(msgspec.Struct, frozen=True, kw_only=True):
    """Who is asked first, for which model there, in which dialect; and every candidate in order.

    `endpoint` says why in this dialect, where the provider has endpoints of several; else it is empty. `strategy` is how the candidates
    were put in order where the request says what it needs, else empty; `more` candidates were refused beside those that are listed.
    """

    provider: str
    model: str
    dialect: str
    candidates: tuple[Candidate, ...]
    endpoint: str = ""
    strategy: str = ""
    more: int = 0
    address: str = ""

    def __repr__(self) -> str:
        """Return who is asked first, and how many may be."""
        parts = (
            ("provider", self.provider), ("model", self.model), ("dialect", self.dialect), ("endpoint", self.endpoint),
            ("strategy", self.strategy), ("candidates", len(self.candidates) + self.more), ("address", self.address),
        )  # fmt: skip
        return one_line("Route", parts)


class FieldSource(msgspec.Struct, frozen=True, kw_only=True):
    """Where a field of the upstream body comes from: a dotted path, the layer that decided (empty: nobody had to), and why."""

    path: str
    layer: str = ""
    reason: str = ""

    def __repr__(self) -> str:
        return one_line("FieldSource", _known(self))


class TextReading(msgspec.Struct, frozen=True, kw_only=True):
    """How the reply's text would be read: the format of thinking and of tool calls in it, empty where the text is only text.

    `starts_inside`: it begins inside thinking, or probably does where that is `undecided`, which the reply itself decides.
    """

    reasoning: str = ""
    starts_inside: bool = False
    undecided: bool = False
    tool_calls: str = ""

    def __repr__(self) -> str:
        return one_line("TextReading", _known(self))


class AnswerForm(msgspec.Struct, frozen=True, kw_only=True):
    """How an answer in a schema would be asked for: the mode and the form of it, what was passed over for it, and the schema as sent.

    `rewrites` are the changes to the caller's schema. `guidance` is what the system prompt says of it, `tool` the tool that carries it.
    """

    mode: Mode
    wanted: Mode
    form: Form
    name: str
    schema: dict[str, Any] | None = None
    tool: str = ""
    guidance: str = ""
    rewrites: tuple[Rewrite, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    def __repr__(self) -> str:
        return one_line("AnswerForm", _known(self))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PlannedReceipt(Mapping[str, Any]):
    """The receipt as far as it is known before a reply. Its parts are attributes, and items as in the receipt of a reply.

    `emitted` holds the exact fields, and `emitted_word` names them in a word. `thinks`: whether the model is expected to; None if unknown.
    `assumed` is the model that this one is taken to be like where no row is about it.
    """

    intent: str
    emitted: dict[str, Any]
    layer: str
    reason: str
    emitted_word: str
    form: str
    thinks: bool | None
    assumed: str | None = None

    def __repr__(self) -> str:
        """Return what was asked and how it is written, without what is not known."""
        return one_line("PlannedReceipt", ((name, getattr(self, name)) for name in self if name != "emitted_word"))

    def __getitem__(self, name: str) -> Any:
        if name not in tuple(self):
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """What would be sent, and why so.

    `path` is that of the address `url`, with its query; `body` is `body_bytes` as parsed JSON, and exact. `headers` hold no key:
    `key_variables` names the environment variables it would be read from. `fields` says of each part of the body where it comes from.
    `intent` is what the call needs and `profile` how it is answered, where the request, or the workload that it names, says so.
    `forwarded`: the reply's frames would go to the client as they come. `structured` tells how an answer in a schema is asked for.
    `pipeline` are the receipts of the layers that worked on the request, or None if it has none.
    """

    url: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    body_bytes: bytes
    route: Route
    receipt: PlannedReceipt
    fields: tuple[FieldSource, ...]
    degraded: tuple[Degradation, ...]
    reading: TextReading
    key_variables: tuple[str, ...] = ()
    forwarded: bool = False
    intent: Intent | None = None
    profile: InferenceProfile | None = None
    structured: AnswerForm | None = None
    pipeline: dict[str, Any] | None = None

    def __repr__(self) -> str:
        """Return where the request would go and how its reasoning is written, without the body and what led to it."""
        parts = (
            ("provider", self.route.provider), ("model", self.route.model), ("path", self.path),
            ("intent", self.receipt.intent), ("emitted", self.receipt.emitted), ("degraded", len(self.degraded)),
        )  # fmt: skip
        return one_line("Explanation", parts)


def _known(value: msgspec.Struct) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a value that say something."""
    return ((name, part) for name in value.__struct_fields__ if (part := getattr(value, name)) is not False)
