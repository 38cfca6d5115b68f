"""The layer `affinity`: who is asked is put in the order of what each probably has cached, how busy it is, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from bardo.context.affinity.server_order import LoadBounds, PromptPrefix, ServerState, order_targets, saved_nanos
from bardo.context.layer import Effect, KeptReply, LayerFacts, LayerSteps, Passed, Receipt, TargetFacts
from bardo.values.request import Request
from bardo.values.response import Response

NAME = "affinity"
_REASONS = {
    "warm": "has about {tokens} tokens of the prompt cached",
    "cheaper": "has about {tokens} tokens of the prompt cached and costs less so",
    "loaded": "is less busy than the one that has more of the prompt cached",
    "spread": "was sent the fewest new tokens lately",
}


class FindServerStates(Effect, frozen=True):
    """Ask what each target probably has cached of a session's prompt, and how busy it is. The answer is a `Servers`."""

    session: str
    request: Request
    targets: tuple[TargetFacts, ...]


class Servers(msgspec.Struct, frozen=True):
    """The state of each target now, and the beginning of the prompt that other sessions share."""

    states: tuple[ServerState, ...]
    prefix: PromptPrefix


class ExpectSession(Effect, frozen=True):
    """Note where a session is about to be sent that its server knows nothing of, with a prompt of about so many tokens."""

    session: str
    target: TargetFacts
    prefix: PromptPrefix
    messages: int
    tokens: int


class RecordSession(Effect, frozen=True):
    """Note that a session's call was answered, with what the reply says of its tokens.

    `prefix` is the beginning of the prompt that other sessions have too, or None if it is to be read from the `request`. `expected` is how
    many of the tokens each target was expected to have cached, by its provider, address and model.
    """

    session: str
    prefix: PromptPrefix | None
    messages: int
    tokens: int
    cached: int | None
    expected: Mapping[tuple[str, str, str], int] = {}
    request: Request | None = None


class ForgetSession(Effect, frozen=True):
    """Forget where a session was about to be sent: its call was not answered."""

    session: str


class AffinityPart:
    """The layer's part in the reply of one call: it records the tokens read from the cache.

    `expects`: it was noted where the call goes.
    """

    most_bytes = 0

    def __init__(
        self, session: str, messages: int, targets: Sequence[TargetFacts], servers: Servers | None, *, expects: bool
    ) -> None:
        self._expects = expects
        self._session = session
        self._messages = messages
        self._targets = targets
        self._servers = servers

    def stage(self) -> None:
        """Nothing of the reply is changed."""
        return

    def ended(self, request: Request, response: Response, kept: KeptReply | None) -> Iterable[Effect]:
        """Note who answered, and what was read from its cache; nothing where the provider counts no tokens."""
        usage = response.usage
        if usage.input_tokens is None:
            return self.failed()
        tokens, cached, servers = usage.input_tokens, usage.cached_input_tokens, self._servers
        warm = [state.warm_tokens for state in (self._targets if servers is None else servers.states)]
        expected = {
            (target.provider, target.address, target.model): tokens
            for target, tokens in zip(self._targets, warm, strict=True)
        }
        prefix = None if servers is None else servers.prefix
        return (RecordSession(self._session, prefix, self._messages, tokens, cached, expected, request),)

    def failed(self) -> Iterable[Effect]:
        """Forget what was expected of the call."""
        return (ForgetSession(self._session),) if self._expects else ()


class Affinity:
    """The layer. `bounds` says when a warm prefix is not waited for, `most_servers` how many servers of one provider a call is put to."""

    name = NAME

    def __init__(self, bounds: LoadBounds | None = None, *, most_servers: int = 4) -> None:
        self._bounds = bounds or LoadBounds()
        self._most_servers = most_servers

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        """Put the targets in order, and note where the call goes."""
        targets = facts.targets
        if len(targets) == 1 and request is facts.routed:
            # How busy it is changes nothing, and what it has cached was told before. The calls that come before the
            # reply have no other place to go, so that none has to be expected.
            warm = targets[0].warm_tokens
            return Passed(
                request=request,
                receipt=_receipt(targets, 0, warm, "warm" if warm else ""),
                reply=AffinityPart(facts.session, len(request.messages), targets, None, expects=False),
            )
        servers: Servers = yield FindServerStates(facts.session, request, targets)
        ordered = order_targets(targets, servers.states, self._bounds, lambda: facts.count_tokens(request, None))
        places = first_of_each(targets, ordered.places, self._most_servers)
        first, messages = places[0], len(request.messages)
        expects = not servers.states[first].session_tokens
        if expects:
            tokens = facts.count_tokens(request, targets[first])
            yield ExpectSession(facts.session, targets[first], servers.prefix, messages, tokens)
        return Passed(
            request=request,
            receipt=_receipt(targets, first, servers.states[first].warm_tokens, ordered.why),
            order=None if places == tuple(range(len(targets))) else places,
            reply=AffinityPart(facts.session, messages, targets, servers, expects=expects),
        )


def first_of_each(targets: Sequence[TargetFacts], places: Sequence[int], most: int) -> tuple[int, ...]:
    """Return the places with no more than `most` servers of each provider and model."""
    if len(places) <= most:
        return tuple(places)
    counts: dict[tuple[str, str], int] = {}
    firsts: list[int] = []
    for place in places:
        name = (targets[place].provider, targets[place].model)
        counts[name] = counts.get(name, 0) + 1
        if not targets[place].address or counts[name] <= most:
            firsts.append(place)
    return tuple(firsts)


def _receipt(targets: Sequence[TargetFacts], place: int, warm_tokens: int, why: str) -> Receipt:
    """Return the receipt of a call whose target at a place comes first, and why it does."""
    first = targets[place]
    chosen = f"{first.provider} at {first.address}" if first.address else first.provider
    saw: dict[str, object] = {"chosen": chosen, "model": first.model, "warm_tokens": warm_tokens}
    if why:
        saw["why"] = why
    if first.address:
        saw["servers"] = sum(target.provider == first.provider and target.model == first.model for target in targets)
    value = saved_nanos(first, warm_tokens) if warm_tokens else 0
    if value:
        saw["worth_usd"] = round(value / 1_000_000_000, 9)
    decided = first.address or place
    reason = _REASONS[why].format(tokens=f"{warm_tokens:,}") if why and decided else ""
    return Receipt(layer=NAME, did=f"put {chosen} first, which {reason}" if reason else "", saw=saw)
