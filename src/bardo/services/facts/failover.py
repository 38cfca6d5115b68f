"""The operator's settings for calls that fail or are slow: when a target is asked again, a second one too, or an old reply given."""

from __future__ import annotations

from collections import OrderedDict

import msgspec

from bardo.adapters.chance import CHANCE
from bardo.adapters.config.routing import FailoverSettings
from bardo.planning.attempt import Attempt
from bardo.planning.refusals import FailoverPolicy

_MOST_CREDIT = 10.0
"""How many hedges may follow at once after a long time without one."""

_LARGEST_SHARE = 8
"""One reply may have this part of all bytes."""


class Failover:
    """The operator's settings, as calls use them. `jitter` gives random numbers from 0 to 1."""

    def __init__(self, settings: FailoverSettings | None = None) -> None:
        self.settings = settings or FailoverSettings()
        self.policy = FailoverPolicy(
            retries=self.settings.retries,
            backoff_seconds=self.settings.backoff_seconds,
            longest_pause_seconds=self.settings.longest_pause_seconds,
        )
        self.jitter = CHANCE.random
        most = self.settings.stale_entries
        self.stale = StaleReplies(most, self.settings.stale_bytes) if most else None
        self.budget = HedgeBudget(self.settings.hedge_share)
        self.bounds_tokens = bool(self.settings.first_token_seconds or self.settings.first_token_seconds_at)

    def deadline(self, deadline: float | None) -> float | None:
        """Return within how many seconds a call has to be answered: what its caller `deadline`, and no more than the operator allows."""
        own = self.settings.deadline_seconds or None
        if deadline is None or own is None:
            return own if deadline is None else deadline
        return min(own, deadline)

    def first_token(self, provider: str) -> float | None:
        """Return how long a streamed reply may take to its first token, or None if nothing is set."""
        return self.settings.first_token(provider) if self.bounds_tokens else None


class HedgeBudget:
    """Bounds which share of all calls a second provider is asked for."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._credit = 0.0

    def count(self) -> None:
        """Take a call that could be hedged."""
        self._credit = min(self._credit + self._share, _MOST_CREDIT)

    def spend(self) -> bool:
        """Whether one more call may be hedged; it is counted then."""
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True


class StaleReply(msgspec.Struct, frozen=True):
    """A reply as its provider sent it, to an attempt, and when: Unix time."""

    attempt: Attempt
    content_type: str
    body: bytes
    kept_at: float


class StaleReplies:
    """Keeps the newest replies, at most so many and so many bytes."""

    def __init__(self, entries: int, most_bytes: int) -> None:
        self._entries = entries
        self._most_bytes = most_bytes
        self._size = 0
        self._kept: OrderedDict[bytes, StaleReply] = OrderedDict()

    @property
    def most_of_one(self) -> int:
        """How many bytes one reply may have."""
        return self._most_bytes // _LARGEST_SHARE

    def keep(self, identity: bytes, reply: StaleReply) -> None:
        """Keep a reply in the place of an earlier one, and forget the oldest where there are too many."""
        self._forget(identity)
        if len(reply.body) > self.most_of_one:
            return
        self._kept[identity] = reply
        self._size += len(reply.body)
        while len(self._kept) > self._entries or self._size > self._most_bytes:
            self._forget(next(iter(self._kept)))

    def find(self, identity: bytes, most_age: float, now: float) -> StaleReply | None:
        """Return the reply to an equal request, if it is not older than so many seconds."""
        reply = self._kept.get(identity)
        return reply if reply is not None and now - reply.kept_at <= most_age else None

    def _forget(self, identity: bytes) -> None:
        reply = self._kept.pop(identity, None)
        if reply is not None:
            self._size -= len(reply.body)
