"""The layer `cache`: it answers a call with the reply to an earlier one that asked for the same.

It looks for the reply by the identity of the request; where there is none, it may look for that to a similar question. Else one of several
equal calls that come at once asks the provider, and the others wait for its reply. A reply is kept when it has come to its end.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

import msgspec

from bardo.catalog.matching import matches_glob
from bardo.context.cache.identity import identity_of
from bardo.context.cache.refusal import Refusal, refusal_of, refusal_of_reply
from bardo.context.cache.similar_lookup import ForgetSimilar, SimilarLookup, after_reply
from bardo.context.layer import Answered, Effect, EffectFailed, KeptReply, LayerFacts, LayerSteps, Passed, Receipt
from bardo.streams.stage import Stage
from bardo.values.cost import exact_dollars
from bardo.values.events import Event
from bardo.values.request import CacheOptions, Request
from bardo.values.response import Response

NAME = "cache"
_PLAIN = CacheOptions()


class CacheRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator wants of kept replies.

    A reply is kept for `ttl_seconds`; `ttl_seconds_at` has other times, by globs of models and workloads, and 0 keeps none. `allow` are
    reasons that do not count, `most_temperature` is the highest at which a call is answered so, and `most_bytes` how large a reply may
    be. `single_flight`: of equal calls at the same time one is sent.
    """

    ttl_seconds: float = 300.0
    ttl_seconds_at: Mapping[str, float] = {}
    allow: tuple[str, ...] = ()
    most_temperature: float = 1.0
    most_bytes: int = 1024 * 1024
    single_flight: bool = True

    def seconds(self, request: Request, facts: LayerFacts) -> float:
        """Return for how many seconds the reply to a request is kept."""
        asked = request.options.cache
        if asked is not None and asked.ttl_seconds is not None:
            return asked.ttl_seconds
        if not self.ttl_seconds_at:
            return self.ttl_seconds
        names = (facts.workload, request.model, *facts.models)
        found = (
            self.ttl_seconds_at[glob] for glob in self.ttl_seconds_at if any(matches_glob(one, glob) for one in names)
        )
        return next(found, self.ttl_seconds)


class CacheResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the cache had for one call. `age_seconds` and `saved_nanos` are those of the reply that is given."""

    outcome: Literal["hit", "similar", "miss", "refused"]
    reason: str = ""
    age_seconds: float = 0.0
    saved_nanos: int | None = None

    @property
    def word(self) -> str:
        """What the log says: the outcome, with the reason of a refusal."""
        return f"refused:{self.reason}" if self.outcome == "refused" else self.outcome

    @property
    def header(self) -> str:
        """What the header `X-Bardo-Cache` says."""
        if self.outcome in ("hit", "similar"):
            saved = "" if self.saved_nanos is None else f"; saved_usd={exact_dollars(self.saved_nanos)}"
            return f"{self.outcome}; age={self.age_seconds:.0f}{saved}"
        return f"{self.outcome}; reason={self.reason}" if self.reason else self.outcome


_MISS, _MISS_RECEIPT = CacheResult(outcome="miss"), Receipt(layer=NAME, saw={"cache": "miss"})


class FindReply(Effect, frozen=True):
    """Look for a kept reply: a KeptReply, or whether the call leads. One that was kept before `since`, in Unix time, is too old.

    `lead`: where there is none and an equal call is under way, its reply is waited for; where none is under way, this call leads, until
    it yields StoreReply or ReleaseWaitingCalls. `within`: no longer than so many seconds are waited; None is what is configured.
    """

    tenant: str
    identity: bytes
    since: float
    lead: bool
    within: float | None = None


class StoreReply(Effect, frozen=True):
    """Keep a reply until `expires`, in Unix time, and give it to those who wait for it."""

    tenant: str
    identity: bytes
    reply: KeptReply
    expires: float
    model: str
    tags: tuple[str, ...] = ()
    index: bytes = b""


class ReleaseWaitingCalls(Effect, frozen=True):
    """Release the calls that wait for a reply which is not kept, with the reason."""

    tenant: str
    identity: bytes
    reason: Refusal | Literal["similar"]


class Similar(Protocol):
    """Looks for similar questions: `bardo.context.cache.similar.SimilarAnswers`, which is loaded where it is configured."""

    def look(self, request: Request, facts: LayerFacts) -> Generator[Effect, Any, SimilarLookup | None]:
        """Return what may be given in place of the provider's reply, and what that is compared with."""
        ...


class CacheLayer:
    """Answers with kept replies. Immutable, and shared by all calls."""

    name = NAME

    def __init__(self, rules: CacheRules, similar: Similar | None = None) -> None:
        self._rules = rules
        self._similar = similar

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Answer a call with a kept reply, or have its own reply kept."""
        asked, rules = request.options.cache or _PLAIN, self._rules
        allowed = _allowed(rules.allow, asked.allow) if rules.allow or asked.allow else ()
        refusal = refusal_of(request, allowed, rules.most_temperature)
        seconds = rules.seconds(request, facts)
        if refusal is not None or seconds <= 0:
            return _passed_refused(request, refusal or "no_store")
        try:
            identity = identity_of(request, facts.tenant, facts.profile, facts.workload, facts.models)
        except ValueError:
            return _passed_refused(request, "unreadable")
        leads, lookup = False, None
        if asked.mode == "use":
            since = 0.0 if asked.max_age_seconds is None else facts.now - asked.max_age_seconds
            lead = rules.single_flight and not facts.dry
            deadline = request.options.deadline_seconds
            # What is left of it then is for a provider.
            within = None if deadline is None else deadline / 2
            reply = yield FindReply(facts.tenant, identity, since, lead, within)
            if isinstance(reply, KeptReply):
                return _answer_outcome(reply, facts.now)
            leads = reply is True
            if self._similar is not None:
                lookup = yield from self._find_similar(self._similar, request, facts)
            if lookup is not None and lookup.serve is not None:
                reply = yield FindReply(facts.tenant, lookup.serve.identity, since, False)
                if isinstance(reply, KeptReply):
                    if leads:
                        yield ReleaseWaitingCalls(facts.tenant, identity, "similar")
                    return _answer_outcome(reply, facts.now, lookup)
                yield ForgetSimilar(lookup.scope, lookup.serve.identity)
        place = Place(facts.tenant, identity, request.model, asked.tags, facts.now + seconds, rules.most_bytes)
        found = _MISS if asked.mode == "use" else CacheResult(outcome="miss", reason=asked.mode)
        receipt = _MISS_RECEIPT if lookup is None else Receipt(layer=NAME, saw={"cache": "miss", **lookup.saw})
        return Passed(
            request=request, receipt=receipt, found=found, reply=ReplyStoringPart(place, leads=leads, lookup=lookup)
        )

    def _find_similar(
        self, similar: Similar, request: Request, facts: LayerFacts
    ) -> Generator[Effect, Any, SimilarLookup | None]:
        """Look for a similar question; None where that fails, which is no reason to fail the call."""
        try:
            return (yield from similar.look(request, facts))
        except EffectFailed:
            return None


class Place(NamedTuple):
    """Where the reply to one call is kept, and until when. A reply may have `most_bytes`."""

    tenant: str
    identity: bytes
    model: str
    tags: tuple[str, ...]
    expires: float
    most_bytes: int


class ReplyStoringPart:
    """Stores the reply to one call. `leads`: equal calls wait for it. `lookup` is what a lookup for similar questions gave."""

    def __init__(self, place: Place, *, leads: bool, lookup: SimilarLookup | None = None) -> None:
        self._lookup = lookup
        self.most_bytes = place.most_bytes
        self._place = place
        self._leads = leads

    def stage(self) -> Stage[Event, Event] | None:
        """Return None: the reply passes as it is."""
        return None

    def ended(self, request: Request, response: Response, reply: KeptReply | None) -> Iterable[Effect]:
        """Keep a reply that is whole, and tell those who wait for it."""
        place, refusal = self._place, refusal_of_reply(response, reply)
        if refusal is not None or reply is None:
            return self._release_waiting(refusal or "too_large")
        lookup, index = self._lookup, b""
        compared: Iterable[Effect] = ()
        if lookup is not None:
            index, compared = lookup.index(response.text), after_reply(lookup, response.text)
        keep = StoreReply(place.tenant, place.identity, reply, place.expires, place.model, place.tags, index)
        return (keep, *compared)

    def failed(self) -> Iterable[Effect]:
        """Release the calls that wait for this one's reply."""
        return self._release_waiting("error")

    def _release_waiting(self, reason: Refusal) -> Iterable[Effect]:
        return (ReleaseWaitingCalls(self._place.tenant, self._place.identity, reason),) if self._leads else ()


def _passed_refused(request: Request, refusal: Refusal) -> Passed:
    receipt = Receipt(layer=NAME, saw={"cache": f"refused:{refusal}"})
    return Passed(request=request, receipt=receipt, found=CacheResult(outcome="refused", reason=refusal))


def _answer_outcome(reply: KeptReply, now: float, lookup: SimilarLookup | None = None) -> Answered:
    age = max(0.0, now - reply.kept_at)
    found = CacheResult(outcome="hit" if lookup is None else "similar", age_seconds=age, saved_nanos=reply.cost_nanos)
    alike = "an equal call" if lookup is None else "a similar question"
    did = f"answered with the reply to {alike} {age:.0f} s ago"
    saw = {"cache": found.word, "saved_nanos": reply.cost_nanos, "age_seconds": round(age, 3)}
    saw |= {} if lookup is None else lookup.saw
    return Answered(reply=reply, receipt=Receipt(layer=NAME, did=did, saw=saw), found=found)


@lru_cache(maxsize=64)
def _allowed(configured: tuple[str, ...], asked: tuple[str, ...]) -> frozenset[str]:
    """Return the reasons that do not count for one call."""
    return frozenset((*configured, *asked))
