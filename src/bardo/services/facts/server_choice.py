"""Chooses the servers of providers that have several addresses: one after the other for one conversation, each bounded by its load.

All turns of a conversation go to the server that has its prompt cached, as long as that one is up and is not loaded far above the others.
A provider with one address costs nothing here.

A server is chosen by rendezvous hashing with a bound on its load: every process that knows the same servers chooses the same one for a
key, and when a server comes or goes, only the keys of that server move (Thaler and Ravishankar, "Using name-based mappings to increase hit
rates", 1998; Mirrokni and others, "Consistent hashing with bounded loads", 2018).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from hashlib import blake2b
from typing import Protocol

import msgspec

from bardo.context.sessions import conversation_head
from bardo.planning.route import Provider, Target
from bardo.services.facts.directory import Placement
from bardo.services.facts.health import HealthKeeper
from bardo.values.operations import EmbedRequest
from bardo.values.request import Request

BOUND = 1.25
"""How many times the mean load a server may have and still be given a new key."""
FREE = 4
"""So many calls at a time are no load: servers of language models work on several at once."""
_MASK = (1 << 64) - 1


MOST_SERVERS_TRIED = 4
"""How many servers of one provider a call is put to before the next provider is asked."""


class ServerFacts(Protocol):
    """The facts that servers state of their models, and the results of calls to the servers."""

    async def ask_before(self, targets: Sequence[Target]) -> None: ...

    def note_answer(self, target: Target) -> None: ...

    def note_loss(self, provider: Provider) -> None: ...


class ServerChoice:
    """Puts the servers of a provider in order. `watch` is the clock of `health`, `facts` asks servers of their models."""

    def __init__(self, health: HealthKeeper, watch: Callable[[], float], facts: ServerFacts | None = None) -> None:
        self._health = health
        self._watch = watch
        self._facts = facts
        self._turn = 0

    async def at_servers(
        self, placement: Placement, request: Request | EmbedRequest, tenant: str = "", *, every: bool = False
    ) -> Placement:
        """Return who is asked, with the servers of each provider of several addresses in its place, best first.

        They are the first four, or all where a layer chooses among them (`every`).
        """
        if not placement.has_servers:
            return placement
        head = conversation_head(request, tenant)
        targets: list[Target] = []
        for target in placement.targets:
            chosen = self.order(target.provider, target.model, head)[: None if every else MOST_SERVERS_TRIED]
            targets += [msgspec.structs.replace(target, provider=provider) for provider in chosen]
        placement = msgspec.structs.replace(placement, targets=tuple(targets))
        placement = self._health.ordered_placement(placement, self._watch)
        if self._facts is not None:
            await self._facts.ask_before(placement.targets)
        return placement

    def order(self, provider: Provider, model: str, head: bytes) -> list[Provider]:
        """Return the servers of a provider in the order in which a call is put to them.

        `head` identifies its conversation; empty: the least loaded comes first. Servers that are down come last, so
        that they are only asked where too few others are there.
        """
        servers = provider.servers
        if len(servers) == 1:
            return list(servers)
        names = [server.place for server in servers]
        loads = [self._health.in_flight(name) for name in names]
        if head:
            order = bounded(ranked(head, names), loads)
        else:
            self._turn += 1
            order = sorted(range(len(names)), key=lambda place: (loads[place], (place - self._turn) % len(names)))
        if self._health.store.troubled:
            now = self._watch()
            order.sort(key=lambda place: self._health.is_out(names[place], model, now))
        return [servers[place] for place in order]


def idle_servers(targets: Sequence[Target], request: Request, *, every: bool = False) -> list[Target]:
    """Return targets with their servers in the order in which a call is put to them while all are up and none is loaded.

    They are the first four of each, or all (`every`), as for a call.
    """
    choice, head = ServerChoice(HealthKeeper(), time.monotonic), conversation_head(request, "")
    return [
        msgspec.structs.replace(target, provider=server)
        for target in targets
        for server in choice.order(target.provider, target.model, head)[: None if every else MOST_SERVERS_TRIED]
    ]


def ranked(key: bytes, servers: Sequence[str]) -> list[int]:
    """Return the places of `servers` in the order in which they take a key: the same in every process."""
    seed = int.from_bytes(blake2b(key, digest_size=8).digest(), "little")
    weights = [_mixed(seed ^ _number(server)) for server in servers]
    return sorted(range(len(servers)), key=weights.__getitem__)


def bounded(order: Sequence[int], loads: Sequence[int], *, bound: float = BOUND, free: int = FREE) -> list[int]:
    """Return an order with the servers last, the least loaded of them first, that have as many calls under way as they may have.

    That is `bound` times the mean with the call at hand, rounded up, so that one server is always below it; and never less than `free`.
    """
    most = max(free, math.ceil(bound * (sum(loads) + 1) / len(loads)))
    below = [place for place in order if loads[place] < most]
    if len(below) == len(order):
        return below
    return [*below, *sorted((place for place in order if loads[place] >= most), key=loads.__getitem__)]


@lru_cache(maxsize=4096)
def _number(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), "little")


def _mixed(number: int) -> int:
    """Return a number each of whose bits depends on all bits of another (the finalizer of SplitMix64)."""
    number = (number ^ (number >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ (number >> 27)) * 0x94D049BB133111EB & _MASK
    return number ^ (number >> 31)
