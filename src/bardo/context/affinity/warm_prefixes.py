"""Which prompts each server was sent last, and so how many tokens of another prompt it probably still has cached.

A session's own prompt is kept as a count of tokens, the beginning that it shares with others as numbers of blocks. Memory is bounded: what
was used longest ago is forgotten first. Nothing of what prompts say is kept.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from bardo.context.affinity.server_order import HALF_LIFE_SECONDS, LEAST_TOKENS, NO_PREFIX, CacheSurvival, PromptPrefix

MOST_SESSIONS = 20_000
MOST_PLACES_OF_A_SESSION = 4
MOST_BLOCKS = 4096
"""How many blocks are known of one place: about two million tokens, more than one server caches."""
_MOST_PLACES = 1024

K = TypeVar("K")
V = TypeVar("V")
Place = tuple[str, str]
"""A server of a provider, or a provider with one, and the model there."""


class WarmPrefix(NamedTuple):
    """The latest prompt of a session at one place: how many tokens and messages, which key of the provider, and when.

    `answered` False: it was decided to send it there, and its tokens are estimated.
    """

    tokens: int
    messages: int
    key: str
    at: float
    answered: bool = True


class ExpectedTokens(NamedTuple):
    """How many tokens of a prompt a place probably has cached. `session` of them are known from the session itself.

    `known` is how many it was sent, and `seconds` how long ago that was.
    """

    tokens: int = 0
    session: int = 0
    known: int = 0
    seconds: float = 0.0


NOTHING_EXPECTED = ExpectedTokens()


class WarmPrefixes:
    """The prefixes that each server has probably cached. `half_life` is the first estimate for a cache, in seconds."""

    def __init__(self, half_life: float = HALF_LIFE_SECONDS) -> None:
        self._half_life = half_life
        self._sessions: OrderedDict[str, dict[Place, WarmPrefix]] = OrderedDict()
        self._blocks: OrderedDict[Place, OrderedDict[int, float]] = OrderedDict()
        self._survival: OrderedDict[Place, CacheSurvival] = OrderedDict()
        self._sent_tokens: OrderedDict[Place, tuple[float, float]] = OrderedDict()
        self._restarted: OrderedDict[str, float] = OrderedDict()

    def places(self, session: str) -> dict[Place, WarmPrefix]:
        """Return what each place was sent of a session."""
        return self._sessions.get(session, _NO_PLACES)

    def adopt(self, session: str, places: Mapping[Place, WarmPrefix]) -> None:
        """Merge another process's entries for a session where they are newer than the ones here."""
        own_places = self._sessions.pop(session, None) or {}
        for place, warmth in sorted(places.items(), key=lambda item: item[1].at):
            before = own_places.get(place)
            if before is None or before.at < warmth.at:
                own_places.pop(place, None)
                own_places[place] = warmth
        while len(own_places) > MOST_PLACES_OF_A_SESSION:
            del own_places[next(iter(own_places))]
        if own_places:
            self._keep_session(session, own_places)

    def expected(
        self, place: Place, session: str, prefix: PromptPrefix, now: float, *, messages: int, kind: Place | None = None
    ) -> ExpectedTokens:
        """Return how many tokens of a session's prompt of so many `messages` a place probably has cached. `kind` is as in `note`."""
        survival = self._survival.get(kind or place)
        shared = self._shared(place, prefix, now, survival) if prefix.blocks and place in self._blocks else 0
        warmth = self._sessions.get(session, _NO_PLACES).get(place)
        if warmth is not None and self._restarted and warmth.at < self._restarted.get(place[0], 0.0):
            warmth = None
        if warmth is None or messages < warmth.messages:
            # A history that became shorter was written anew: only its beginning is as it was.
            return ExpectedTokens(shared, 0, 0, 0.0) if shared else NOTHING_EXPECTED
        pause = max(0.0, now - warmth.at)
        left = int(warmth.tokens * self._share(survival, pause))
        return ExpectedTokens(max(left, shared), left, warmth.tokens, pause)

    def expect(
        self, place: Place, session: str, prefix: PromptPrefix, now: float, *, tokens: int, messages: int
    ) -> None:
        """Note that a session new to a place is about to be sent there, with a prompt of about so many tokens.

        Calls that come before its reply go to the same place then.
        """
        places = self._sessions.pop(session, None) or {}
        if place not in places:
            places[place] = WarmPrefix(tokens, messages, "", now, answered=False)
            self._count(place, tokens, now)
        self._keep_session(session, places)
        self._keep_blocks(place, prefix, now)

    def note(
        self,
        place: Place,
        session: str,
        prefix: PromptPrefix,
        now: float,
        *,
        tokens: int,
        cached: int | None,
        messages: int,
        key: str = "",
        kind: Place | None = None,
    ) -> None:
        """Note an answered call: its prompt had so many `tokens`, and `cached` of them were read from a cache; None: not reported.

        `kind` is what the place's cache is like: servers of one provider are learned of together.
        """
        places = self._sessions.pop(session, None) or {}
        for other in [name for name, warmth in places.items() if not warmth.answered and name != place]:
            del places[other]
        before = places.pop(place, None)
        is_known = before is not None and self._holds(before, place, messages, key)
        if before is not None and before.answered and is_known and cached is not None:
            self._learn(kind or place, before, prefix, now, cached)
        places[place] = WarmPrefix(tokens, messages, key, now)
        self._count(place, tokens - (before.tokens if before is not None and is_known else 0), now)
        self._keep_session(session, places)
        self._keep_blocks(place, prefix, now)

    def forget_session(self, session: str) -> None:
        """Forget where a session was about to be sent: its call was not answered."""
        places = self._sessions.get(session)
        if places is not None:
            for name in [name for name, warmth in places.items() if not warmth.answered]:
                del places[name]

    def forget_server(self, server: str, now: float) -> None:
        """Forget what a server had cached: it was gone, and may come back as another one."""
        for place in [block for block in self._blocks if block[0] == server]:
            del self._blocks[place]
        for place in [key for key in self._sent_tokens if key[0] == server]:
            del self._sent_tokens[place]
        _keep(self._restarted, server, now)

    def placed_tokens(self, place: Place, now: float) -> float:
        """Return how many new tokens a place was sent lately, which count half after the half-life that is assumed."""
        amount, at = self._sent_tokens.get(place, (0.0, now))
        return amount * math.exp2(-max(0.0, now - at) / self._half_life)

    def survival(self, kind: Place) -> CacheSurvival:
        """Return how long prompts are cached at a place, as far as is known."""
        return self._survival.get(kind) or CacheSurvival(self._half_life)

    def _holds(self, before: WarmPrefix, place: Place, messages: int, key: str) -> bool:
        """Whether a prompt goes on from what was sent before, with the same key, at a server that has not been gone since."""
        if messages < before.messages or (before.answered and key != before.key):
            return False
        return not self._restarted or before.at >= self._restarted.get(place[0], 0.0)

    def _count(self, place: Place, tokens: int, now: float) -> None:
        _keep(self._sent_tokens, place, (max(0.0, self.placed_tokens(place, now) + tokens), now))

    def _keep_session(self, session: str, places: dict[Place, WarmPrefix]) -> None:
        if len(places) > MOST_PLACES_OF_A_SESSION:
            del places[next(iter(places))]
        self._sessions[session] = places
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)

    def _learn(self, kind: Place, before: WarmPrefix, prefix: PromptPrefix, now: float, cached: int) -> None:
        """Learn from how much of a prefix was read after a pause. What other sessions keep warm too tells nothing of the pause."""
        shared = prefix.tokens[-1] if prefix.tokens else 0
        own = before.tokens - shared
        if before.tokens < LEAST_TOKENS and not cached:
            return
        if own < max(1, before.tokens // 4):
            own, shared = before.tokens, 0
        survival = self._survival.pop(kind, None) or CacheSurvival(self._half_life)
        _keep(self._survival, kind, survival)
        survival.note(now - before.at, (cached - shared) / own)

    def _share(self, survival: CacheSurvival | None, pause: float) -> float:
        return math.exp2(-pause / self._half_life) if survival is None else survival.share(pause)

    def _shared(self, place: Place, prefix: PromptPrefix, now: float, survival: CacheSurvival | None) -> int:
        """Return how many tokens of the beginning that sessions share a place probably has."""
        times = self._blocks[place]
        low, high = 0, len(prefix.blocks)
        if prefix.blocks[-1] in times:
            low = high
        while low < high:
            # A place that knows a block knows those before it.
            middle = (low + high) // 2
            if prefix.blocks[middle] in times:
                low = middle + 1
            else:
                high = middle
        if not low:
            return 0
        return round(prefix.tokens[low - 1] * self._share(survival, max(0.0, now - times[prefix.blocks[low - 1]])))

    def _keep_blocks(self, place: Place, prefix: PromptPrefix, now: float) -> None:
        if prefix is NO_PREFIX:
            return
        times = self._blocks.pop(place, None)
        if times is None:
            times = OrderedDict()
        _keep(self._blocks, place, times)
        # The last first, so that the end of a prefix is forgotten before its beginning.
        for number in reversed(prefix.blocks):
            times.pop(number, None)
            times[number] = now
        while len(times) > MOST_BLOCKS:
            times.popitem(last=False)


_NO_PLACES: dict[Place, WarmPrefix] = {}


def _keep(memory: OrderedDict[K, V], key: K, value: V) -> None:
    """Keep a value as the newest, and forget the oldest where there are too many."""
    memory[key] = value
    memory.move_to_end(key)
    if len(memory) > _MOST_PLACES:
        memory.popitem(last=False)
