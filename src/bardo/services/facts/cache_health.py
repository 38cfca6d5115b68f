"""How well the prompt caches of providers work: counts for each model and server, and prompts that no cache can hold."""

from __future__ import annotations

import logging
from array import array
from collections import OrderedDict
from collections.abc import Callable
from operator import eq, ne
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.stores.log.columns import WATCHED
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.request import Request

if TYPE_CHECKING:
    from bardo.context.affinity.server_order import CacheSurvival
    from bardo.context.affinity.warm_prefixes import Place

SHORTEST = 2000
"""Characters of a system prompt from which on a cache would be worth it: about the fewest tokens that any provider caches."""
MOST_CHARACTERS = 16_384
MOST_USERS = 512
_PIECE = 128
_AFTER = 5
_KEPT = 4


class ChangingHead(msgspec.Struct, frozen=True):
    """One user's prompts to one model begin anew each time: they differ within the piece of the system prompt from this character on."""

    position: int


class _Pieces:
    """Digests of the pieces of one head, counted from its beginning and from its end."""

    __slots__ = ("ahead", "back")

    def __init__(self, head: str) -> None:
        size = len(head)
        self.ahead = array("q", [hash(head[at : at + _PIECE]) for at in range(0, size, _PIECE)])
        self.back = array("q", [hash(head[max(0, at - _PIECE) : at]) for at in range(size, 0, -_PIECE)])

    def alike(self, other: _Pieces) -> int:
        """Return how many pieces two heads have in common: in their places, or before and behind one change that moved the rest."""
        in_place: int = sum(map(eq, self.ahead, other.ahead))
        return max(in_place, _common(self.ahead, other.ahead) + _common(self.back, other.back))

    def first_difference(self, other: _Pieces) -> int:
        """Return from about which character on two heads differ."""
        return _common(self.ahead, other.ahead) * _PIECE


class _Prompt:
    """One prompt of a user in its versions: the digest and the pieces of the last one, and how many were new in a row."""

    __slots__ = ("digest", "new_in_a_row", "pieces", "position")

    def __init__(self, digest: int, pieces: _Pieces) -> None:
        self.digest = digest
        self.pieces = pieces
        self.new_in_a_row = 1
        self.position = 0

    def renew(self, digest: int, pieces: _Pieces) -> None:
        """Take the next version."""
        self.position = pieces.first_difference(self.pieces)
        self.new_in_a_row += 1
        self.digest, self.pieces = digest, pieces


class PromptHeads:
    """Watches how prompts begin. Prompts of different users and models are never compared.

    A prompt whose beginning changes with every call, by a clock or a random id, can be read from no cache. Of each prompt only digests are
    kept, of its head as a whole and of pieces of it, and only so many of each.
    """

    def __init__(self) -> None:
        self._prompts: OrderedDict[tuple[str, str], list[_Prompt]] = OrderedDict()

    def note(self, user: str, request: Request) -> ChangingHead | None:
        """Take a request, and return where its prompt begins to differ, once several in a row were all new.

        Nothing is returned of prompts that differ in their second half only: what comes before is read from the cache.
        """
        texts: list[str] = []
        for message in request.messages:
            if message.role != "system":
                break
            texts += [block.text for block in message.blocks if isinstance(block, TextBlock)]
        # One text itself, whose digest Python keeps.
        head = texts[0] if len(texts) == 1 and len(texts[0]) <= MOST_CHARACTERS else "\n".join(texts)[:MOST_CHARACTERS]
        if len(head) < SHORTEST:
            return None
        prompts, digest = self._of(user, request.model), hash(head)
        for prompt in prompts:
            if prompt.digest == digest:
                prompt.new_in_a_row = 1
                return None
        pieces = _Pieces(head)
        alike = [prompt.pieces.alike(pieces) for prompt in prompts]
        nearest = prompts[alike.index(max(alike))] if prompts else None
        if nearest is None or max(alike) * 2 < len(pieces.ahead):
            prompts.append(_Prompt(digest, pieces))
            del prompts[:-_KEPT]
            return None
        nearest.renew(digest, pieces)
        told = nearest.new_in_a_row >= _AFTER and nearest.position * 2 < len(head)
        return ChangingHead(nearest.position) if told else None

    def _of(self, user: str, model: str) -> list[_Prompt]:
        prompts = self._prompts.get((user, model))
        if prompts is not None:
            self._prompts.move_to_end((user, model))
            return prompts
        made = self._prompts[user, model] = []
        if len(self._prompts) > MOST_USERS:
            self._prompts.popitem(last=False)
        return made


def _common(one: array[int], other: array[int]) -> int:
    """Return how many digests two rows have alike before the first that differs."""
    return next((place for place, differs in enumerate(map(ne, one, other)) if differs), min(len(one), len(other)))


_FIRST_GUESS = 1000.0
"""How many new tokens a call is taken to bring before any was seen."""
_LATEST = 0.05
"""The share of the latest call in the mean."""


class CacheUse(msgspec.Struct, kw_only=True):
    """The calls that one place answered, and how many of their tokens it read from its cache.

    `expected_tokens` is how many were expected to be there, and `off_tokens` the sum of how far each expectation was off.
    """

    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    expected_tokens: int = 0
    off_tokens: int = 0


class CacheHealth(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The prompt cache of a model at a provider, or at one of its servers, since this process began.

    `hit_rate` is the share of the prompts' tokens that were read from it. `half_life_seconds` is after which pause half of a prompt is
    left there: as measured after `observations` pauses, or None if more than half is left after the longest.
    """

    model: str
    calls: int
    input_tokens: int
    cached_tokens: int
    expected_tokens: int
    mean_error_tokens: int
    hit_rate: float
    half_life_seconds: float | None = None
    observations: int = 0


class CacheUsage:
    """The tokens that calls to at most `most` places read from caches; of more places the first ones are forgotten."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._uses: dict[Place, CacheUse] = {}
        self._new_tokens: dict[Place, float] = {}

    def count(self, place: Place, tokens: int, cached: int, expected: int) -> Place | None:
        """Count one call. Returns the place that is forgotten for it, None for most."""
        use, forgotten = self._uses.get(place), None
        if use is None:
            if len(self._uses) >= self._most:
                forgotten = next(iter(self._uses))
                del self._uses[forgotten], self._new_tokens[forgotten]
            use = self._uses[place] = CacheUse()
        use.calls += 1
        use.input_tokens += tokens
        use.cached_tokens += cached
        use.expected_tokens += expected
        use.off_tokens += abs(expected - cached)
        before, new = self._new_tokens.get(place), max(0, tokens - cached)
        self._new_tokens[place] = new if before is None else before + _LATEST * (new - before)
        return forgotten

    def new_tokens(self, place: Place) -> float:
        """Return how many tokens a call to a place usually has that are in no cache."""
        return self._new_tokens.get(place, _FIRST_GUESS)

    def report(self, server: str, survival_of: Callable[[str], CacheSurvival]) -> tuple[CacheHealth, ...]:
        """Return the caches of all models at one server; `survival_of` says for a model how long they keep a prompt."""
        return tuple([_health(place[1], use, survival_of) for place, use in self._uses.items() if place[0] == server])


def _health(model: str, use: CacheUse, survival_of: Callable[[str], CacheSurvival]) -> CacheHealth:
    survival = survival_of(model)
    half_life = survival.half_life()
    return CacheHealth(
        model=model,
        calls=use.calls,
        input_tokens=use.input_tokens,
        cached_tokens=use.cached_tokens,
        expected_tokens=use.expected_tokens,
        mean_error_tokens=round(use.off_tokens / use.calls),
        hit_rate=round(use.cached_tokens / use.input_tokens, 4) if use.input_tokens else 0.0,
        half_life_seconds=round(half_life, 1) if half_life < float("inf") else None,
        observations=survival.observations,
    )


_log = logging.getLogger("bardo.caching")
_MOST_WARNED = 1024


class PromptTracker:
    """Notes the prompts of each user. The operator is warned once for each user and model."""

    def __init__(self) -> None:
        self._heads = PromptHeads()
        self._warned: set[tuple[str, str]] = set()

    def note(self, request: Request, user: str) -> Request:
        """Return the request, with a degradation if its prompts begin anew each time."""
        head = self._heads.note(user, request)
        if head is None:
            return request
        why = f"the system prompt differs in every call from about character {head.position} on, so that no cache holds it"
        self._warn(user, request.model, why)
        return msgspec.structs.replace(request, degraded=(*request.degraded, Degradation(WATCHED, why=why)))

    def _warn(self, user: str, model: str, why: str) -> None:
        if (user, model) in self._warned or len(self._warned) >= _MOST_WARNED:
            return
        self._warned.add((user, model))
        _log.warning("prompts to %s are never read from the prompt cache: %s", model, why, extra={"model": model})
