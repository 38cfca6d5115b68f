"""The results of the layers of one call: receipts, degradations, findings, parts in the reply, and counts of its prompts."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from types import CoroutineType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from bardo.adapters.work_budget import WorkBudget
from bardo.context.layer import (
    Effect,
    EffectFailed,
    KeptReply,
    LaterPart,
    Layer,
    LayerFacts,
    MaskingPart,
    Passed,
    Receipt,
    ReplyPart,
    TargetFacts,
)
from bardo.context.own_functions import AnswersCalls, OwnFunctions
from bardo.planning.route import Target
from bardo.planning.token_counting import PromptEstimates
from bardo.services.pipeline.effects import Effects
from bardo.streams.stage import Stage
from bardo.values.degradation import Degradation
from bardo.values.errors import Unsupported
from bardo.values.events import Event
from bardo.values.request import Message, Request
from bardo.values.response import Response

CACHE = "cache"
"""The name of the layer that answers out of kept replies."""
if TYPE_CHECKING:
    from bardo.planning.route import Target

_log = logging.getLogger("bardo.pipeline")


class LayerPlan(msgspec.Struct, frozen=True):
    """The layers of one profile, those before the route and those after it. Made once, and shared by all calls."""

    profile: str
    before: tuple[Layer, ...] = ()
    after: tuple[Layer, ...] = ()
    reads_session: bool = False
    masking: frozenset[str] = frozenset()
    """The names of the layers that mask texts."""
    names: tuple[str, ...] = ()

    def of_every_operation(self) -> LayerPlan:
        """Return the plan without the layers that are about replies."""
        before, after = (tuple([part for part in group if _works_on_all(part)]) for group in (self.before, self.after))
        names = tuple([layer.name for layer in (*before, *after)])
        return LayerPlan(self.profile, before, after, False, self.masking.intersection(names), names)

    def has(self, name: str) -> bool:
        """Whether a layer is one of them."""
        return name in self.names


def _works_on_all(layer: Layer) -> bool:
    """Whether a layer works on whatever is sent: also on what gets vectors, a count of tokens, or a reply in a batch."""
    return bool(getattr(layer, "every_operation", False))


class LayerSelection(NamedTuple):
    """The layers of a call, the workload that it is (empty where it is none), and what it asked for in vain."""

    plan: LayerPlan
    workload: str = ""
    lost: tuple[Degradation, ...] = ()


class PendingLayers(msgspec.Struct, frozen=True):
    """The results of the layers of a call, as stored until its reply comes: receipts, degradations, and the parts in the reply."""

    profile: str
    receipts: tuple[Receipt, ...]
    degraded: tuple[Degradation, ...]
    parts: tuple[tuple[str, bytes], ...]

    def fields(self) -> dict[str, Any]:
        """Return the receipts as they are shown and logged."""
        return {"profile": self.profile, "layers": msgspec.to_builtins(self.receipts)}


class CallLayers:
    """The layers of one call, while they work and afterwards. `answer` is the reply that a layer had, or None if none had one."""

    __slots__ = (
        "_budget",
        "_effects",
        "_masking",
        "_parts",
        "answer",
        "answered",
        "counter",
        "dry",
        "facts",
        "facts_model",
        "found",
        "lost",
        "masked",
        "most_bytes",
        "plan",
        "receipts",
        "sent",
        "session",
        "tenant",
        "workload",
    )

    def __init__(
        self,
        selection: LayerSelection,
        effects: Effects,
        counter: PromptCounter,
        *,
        tenant: str = "",
        session: str = "",
        dry: bool = False,
        work_seconds: float = math.inf,
    ) -> None:
        self.plan = selection.plan
        self.lost = selection.lost
        self.tenant = tenant
        self.session = session
        self.workload = selection.workload
        self.dry = dry
        self.receipts: list[Receipt] = []
        self.found: Mapping[str, Any] = {}
        self.facts: LayerFacts | None = None
        """What the layers before the route knew of the call, when it asked for `facts_model`, or None if there was no such layer."""
        self.facts_model = ""
        self.sent: Request | None = None
        """The request with all that layers changed."""
        self.answer: KeptReply | None = None
        self.answered: tuple[Target, str] | None = None
        """The target that answered, with the label of the key that the call used, or None if none did."""
        self.most_bytes = 0
        """How large the body of a reply may be that layers get as it came; 0 where none asks for it."""
        self._budget: WorkBudget | float = work_seconds
        self._effects = effects
        self.counter = counter
        self._parts: list[tuple[str, ReplyPart]] = []
        self._masking: list[MaskingPart] = []
        self.masked = False
        """Whether the layer that masks has passed the call on."""

    @property
    def budget(self) -> WorkBudget:
        """The processor time that the layers may take together."""
        if isinstance(self._budget, WorkBudget):
            return self._budget
        # Short requests need none.
        made = self._budget = WorkBudget(self._budget)
        return made

    def take(self, layer: str, passed: Passed) -> None:
        """Keep what a layer leaves for the layers behind it and for the reply."""
        result, part = passed.found, passed.reply
        if result is not None:
            self.found = {**self.found, layer: result}
        if self.plan.masking and layer in self.plan.masking:
            self.masked = True
        if part is None:
            return
        self._parts.append((layer, part))
        if _is_masking(type(part)):
            self._masking.append(cast("MaskingPart", part))
        if part.most_bytes > self.most_bytes:
            self.most_bytes = part.most_bytes

    def kept(self, degraded: tuple[Degradation, ...]) -> bytes:
        """Return what the layers need where the reply comes much later, and what they lost.

        Raises Unsupported where a layer cannot keep its part.
        """
        for layer, part in self._parts:
            if not isinstance(part, LaterPart):
                raise Unsupported(
                    f"the layer {layer} cannot work on a reply that comes later",
                    hint="leave it out of the profile of batches",
                )
        parts = tuple([(layer, cast("LaterPart", part).kept()) for layer, part in self._parts])
        return msgspec.msgpack.encode(PendingLayers(self.plan.profile, tuple(self.receipts), degraded, parts))

    @property
    def masks(self) -> bool:
        """Whether a layer masks texts, so that only the masked ones are stored."""
        return bool(self.plan.masking)

    def as_sent(self, request: Request) -> Request:
        """Return the request with all that layers changed."""
        return request if self.sent is None else self.sent

    def as_said(self, response: Response) -> Response:
        """Return a reply as its provider said it, where layers have put values into it."""
        for part in self._masking:
            response = part.masked(response)
        return response

    def masked_turns(self, turns: tuple[Message, ...]) -> tuple[Message, ...]:
        """Return further turns of the call as its provider may see them."""
        for part in self._masking:
            turns = tuple([part.masked_turn(turn) for turn in turns])
        return turns

    def as_shown(self, response: Response) -> Response:
        """Return a reply as its client gets it."""
        for part in reversed(self._masking):
            response = part.shown(response)
        return response

    def stages(self) -> Sequence[Stage[Event, Event]]:
        """Return new stages for the events of one reply: the layer that changed the request last sees the reply first."""
        made = [part.stage() for _, part in reversed(self._parts)]
        return [stage for stage in made if stage is not None]

    @property
    def changes_reply(self) -> bool:
        """Whether a layer looks at the events of the reply, so that these are written anew for the client."""
        return any(part.stage() is not None for _, part in self._parts)

    def note_answered(self, target: Target, key: str) -> None:
        """Note who answered, with the label of the key that the call used."""
        self.answered = target, key

    def learn(self, target: Target, counted: int | None) -> None:
        """Correct the estimates by what a provider counted for the prompt that was sent, where a layer asked for estimates."""
        if counted and self.sent is not None and self.counter.asked:
            self.counter.learn(self.sent, target, counted)

    def functions(self) -> list[OwnFunctions]:
        """Return the functions that layers offer the model and answer themselves, for one reply."""
        return [cast("AnswersCalls", part).functions() for _, part in self._parts if _answers_calls(type(part))]

    async def perform(self, effect: Effect) -> Any:
        """Return the result of an effect that answers a call of such a function. Raises EffectFailed."""
        return await self._effects.perform(effect, dry=self.dry)

    @property
    def needs(self) -> Mapping[str, Any]:
        """Fields of an intent that a layer found the call to need, for those that neither the caller nor its workload sets."""
        return getattr(self.found.get("classify"), "needs", {})

    async def end(self, request: Request, response: Response, cached: KeptReply | None) -> None:
        """Do what layers want done after a whole reply. What fails is noted in the program's own log and changes nothing of the reply."""
        parts, self._parts = self._parts, []
        for layer, part in parts:
            await self._perform(layer, partial(part.ended, self.sent or request, response, cached))

    async def fail(self) -> None:
        """Do what layers want done after a call that ended in any other way; nothing where `end` was called."""
        parts, self._parts = self._parts, []
        for layer, part in parts:
            await self._perform(layer, part.failed)

    async def _perform(self, layer: str, effects: Callable[[], Iterable[Effect]]) -> None:
        begin = self._effects.begin
        try:
            for effect in effects():
                result = begin(effect, dry=self.dry, call=self)
                if type(result) is CoroutineType:
                    await result
        except EffectFailed as problem:
            _warn(layer, problem.__cause__ or problem)
        except Exception as problem:  # noqa: BLE001 - the call is over: a layer's mistake must not change it.
            _warn(layer, problem)

    @property
    def cache_result(self) -> tuple[str | None, int | None]:
        """What the cache of replies did, and what the reply that it gave had cost, in nano-dollars: as its receipt says under `cache` and
        `saved_nanos`."""
        for receipt in self.receipts:
            if receipt.layer == CACHE:
                return receipt.saw.get("cache"), receipt.saw.get("saved_nanos")
        return None, None

    @property
    def cache_header(self) -> str:
        """The value of the header `X-Bardo-Cache`, empty without a cache."""
        result = self.found.get(CACHE)
        return "" if result is None else str(result.header)

    def fields(self) -> dict[str, Any]:
        """Return the receipts as they are shown and logged."""
        return {"profile": self.plan.profile, "layers": msgspec.to_builtins(self.receipts)}


@cache
def _is_masking(kind: type) -> bool:
    """Whether parts of a class mask; to ask a protocol takes microseconds."""
    return issubclass(kind, MaskingPart)


@cache
def _answers_calls(kind: type) -> bool:
    """Whether parts of a class answer calls of functions."""
    return issubclass(kind, AnswersCalls)


def skipped(layer: str, problem: BaseException) -> Degradation:
    """Note that a layer failed and was passed over, and return the degradation. Neither holds texts of the request."""
    _warn(layer, problem)
    return Degradation(
        f"pipeline.{layer}", why=f"the layer failed ({type(problem).__name__}), and the call goes on without it"
    )


def left_out(layer: str, seconds: float) -> Degradation:
    """Return the losses where a layer is left out, because there was no time for it."""
    return Degradation(
        f"pipeline.{layer}",
        why=f"the layers of one request may take {seconds:g} s of the processor together, and the call goes on without it",
    )


def _warn(layer: str, problem: BaseException) -> None:
    name = type(problem).__name__
    _log.warning("the layer %s failed: %s", layer, name, extra={"layer": layer, "error": name})


class PromptCounter:
    """Estimates the tokens of the prompts of one call of a tenant. The text is measured once for each request that layers make of it."""

    __slots__ = ("_count", "_estimates", "_request", "_tenant")

    def __init__(self, estimates: PromptEstimates, tenant: str = "") -> None:
        self._estimates = estimates
        self._tenant = tenant
        self._request: Request | None = None
        self._count = 0

    def count(self, request: Request, target: TargetFacts | None) -> int:
        """Return about how many tokens the prompt of a request has for a target, or for none in particular."""
        estimates = self._estimates
        if target is not None and estimates.exact_counters is not None:
            exact = estimates.exact(request, target.model)
            if exact is not None:
                return exact
        measured = self._count if request is self._request else self._measured(request)
        return (
            measured if target is None else estimates.corrected(measured, target.provider, target.model, self._tenant)
        )

    @property
    def asked(self) -> bool:
        """Whether a layer wanted to know the length of the call's prompt."""
        return self._request is not None

    def learn(self, request: Request, target: Target, counted: int) -> None:
        """Correct the estimates by the tokens that a target counted for the prompt of a request."""
        measured = self._measured(request)
        self._estimates.learn_measured(measured, counted, target.provider.id, target.model, self._tenant)

    def _measured(self, request: Request) -> int:
        if request is not self._request:
            self._request, self._count = request, self._estimates.measure(request)
        return self._count
