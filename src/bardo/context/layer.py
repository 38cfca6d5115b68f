"""The one shape of a layer: it looks at a request before it is sent, and passes it on, changed or not, or answers it itself.

A layer decides and has no effects. What it needs from outside (a vector, a stored reply, the answer of another model) it yields as an
`Effect`, and is sent the result. Whoever runs it performs the effects, measures its time and keeps its receipt.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import msgspec

from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.events import Event
from bardo.values.request import Message, Request
from bardo.values.response import Response

__all__ = [
    "Answered",
    "Effect",
    "EffectFailed",
    "KeptReply",
    "LaterPart",
    "Layer",
    "LayerFacts",
    "LayerSteps",
    "Outcome",
    "Passed",
    "Pause",
    "Receipt",
    "ReplyPart",
    "TargetFacts",
    "changed",
]


class Receipt(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The report of one layer on one call. `did` is a clause for a person, empty where it changed nothing.

    `saw` holds what it looked at, as counts, names and scores: never what was said. `tokens_before` and `tokens_after` are estimates of
    the prompt, or None if the layer does not change its length. `microseconds` is how long it took, with the effects that it waited for,
    and `off` how it is turned off: whoever runs layers fills both in.
    """

    layer: str
    did: str = ""
    saw: dict[str, Any] = {}
    tokens_before: int | None = None
    tokens_after: int | None = None
    microseconds: int | None = None
    off: str = ""


class TargetFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts for layers about one target that may be asked. Tokens are counts; None is unknown.

    `window` is how many tokens prompt and answer may have together, `max_output_tokens` the answer alone. `input_nanos` and
    `cache_read_nanos` are prices of a million tokens in nano-dollars. `warm_tokens` is how many tokens of this conversation's prompt the
    target probably still has in its prompt cache. `row` is the id of the provider's row in the catalog; `address` names the server behind
    a provider that has several. `down`: calls to it fail now.
    """

    provider: str
    model: str
    dialect: str
    row: str = ""
    address: str = ""
    window: int | None = None
    max_output_tokens: int | None = None
    input_nanos: int | None = None
    cache_read_nanos: int | None = None
    warm_tokens: int = 0
    down: bool = False


class LayerFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts for layers beside the request.

    `session` is the same for all turns of one conversation of one tenant, and reveals nothing of their content. `now` is Unix time.
    `models` names what the request's model stands for, in order, and `targets` who will be asked, best first: empty until they are known.
    `count_tokens` estimates the tokens of a request's prompt for a target, or for none. `found` holds what earlier layers found, by the
    name of the layer; `layers` names all that work on this call. `routed` is the request as it was when it became known who is asked: the
    `warm_tokens` of targets are those of its prompt. `dry`: nothing is sent, so nothing may be learned either.
    """

    tenant: str
    session: str
    now: float
    profile: str
    count_tokens: Callable[[Request, TargetFacts | None], int]
    models: tuple[str, ...] = ()
    targets: tuple[TargetFacts, ...] = ()
    routed: Request | None = None
    workload: str = ""
    found: Mapping[str, Any] = {}
    layers: tuple[str, ...] = ()
    dry: bool = False


class Effect(msgspec.Struct, frozen=True):
    """Something that a layer needs from outside, or wants done there. Each kind is a subclass; whoever runs layers knows how."""


class Pause(Effect, frozen=True):
    """Let other calls have their turn, in the middle of work that takes milliseconds."""


class EffectFailed(Exception):
    """An effect could not be performed; the error is its cause. It is raised where the layer yielded the effect.

    A layer that does not catch it is passed over, and the call goes on without it.
    """


class KeptReply(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's whole reply to an earlier call, as it came. `kept_at` is Unix time; `cost_nanos` what it cost then, None if unknown."""

    provider: str
    model: str
    dialect: str
    content_type: str
    body: bytes
    streamed: bool
    kept_at: float
    cost_nanos: int | None = None


class ReplyPart(Protocol):
    """A layer's part in the reply to a call that it passed on. Of `ended` and `failed` one is asked, once for each call.

    `most_bytes` is how large the body of a reply may be that `ended` gets as it came; 0 where it needs none.
    """

    most_bytes: int

    def stage(self) -> Stage[Event, Event] | None:
        """Return a new stage for the events of one reply, or None if they pass as they are."""
        ...

    def ended(self, request: Request, response: Response, kept: KeptReply | None) -> Iterable[Effect]:
        """Return the effects to perform once a reply has come whole and without an error.

        `request` is the one that was sent, with all that layers changed. `kept` is the reply as it came: None if it is larger than
        `most_bytes`, and where bardo asked again to get an answer that fits its schema.
        """
        ...

    def failed(self) -> Iterable[Effect]:
        """Return the effects to perform if a call ended in any other way: with an error, or because its client left."""
        ...


@runtime_checkable
class MaskingPart(Protocol):
    """A ReplyPart that puts values into a reply which its provider must not learn, and which are not stored."""

    def masked(self, response: Response) -> Response:
        """Return a reply as its provider said it."""
        ...

    def masked_request(self, request: Request) -> Request:
        """Return the request as its provider got it."""
        ...

    def masked_turn(self, turn: Message) -> Message:
        """Return a further turn of the call with the same placeholders."""
        ...

    def shown(self, response: Response) -> Response:
        """Return a reply as its client gets it."""
        ...


@runtime_checkable
class LaterPart(Protocol):
    """A ReplyPart of a call whose reply may come hours later, and in another process. Its layer has `part_of`, which makes it again."""

    def kept(self) -> bytes:
        """Return what the part is made from again."""
        ...


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """A call goes on. `order` are the places of the targets that are still to be asked, best first; None leaves them as they are.

    `found` is told to the layers after this one.
    """

    request: Request
    receipt: Receipt
    degraded: tuple[Degradation, ...] = ()
    order: tuple[int, ...] | None = None
    reply: ReplyPart | None = None
    found: Any = None


class Answered(msgspec.Struct, frozen=True, kw_only=True):
    """A call is answered without being sent. `found` is told as that of a layer that passed the call on."""

    reply: KeptReply
    receipt: Receipt
    degraded: tuple[Degradation, ...] = ()
    found: Any = None


Outcome = Passed | Answered
LayerSteps = Generator[Effect, Any, Outcome]


class Layer(Protocol):
    """One layer with its settings. Immutable, and so shared by all calls. `name` is that of its row.

    With a true attribute `masks`, the log has the texts as the provider got and wrote them, once they passed. One with an attribute
    `every_operation` that is true works also on texts for vectors, on requests that are counted, and on items of batches.
    """

    name: str

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Decide about one request. Raises BardoError where the call must not be sent."""
        ...


def changed(request: Request, **fields: Any) -> Request:
    """Return a request with other fields, which is no longer what the client wrote: its bytes cannot be sent on."""
    return msgspec.structs.replace(request, body=None, body_bytes=b"", **fields)
