"""Simulated servers of weights with prefix caches, and conversations with them: what `affinity.py` puts policies to.

Time is simulated. A pod reads prompts one after the other at a fixed speed, and writes answers beside that. Its cache holds blocks of 64
tokens, the least used forgotten first; a block is known by the conversation or the system prompt that it is of.
"""

from __future__ import annotations

import heapq
import random
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

BLOCK = 64
TOKENS_PER_SECOND = 8000.0
ANSWER_SECONDS = 4.0


class Workload(NamedTuple):
    """Conversations: how many begin a second, for how long, of which programs, and how long they are."""

    sessions_per_second: float
    seconds: float
    programs: int = 20
    skew: float = 1.1
    """The k-th most used program begins in proportion to k to the power of minus this."""
    turns: float = 6.0
    pause_seconds: float = 20.0
    seed: int = 7


@dataclass(slots=True)
class Session:
    """One conversation: its program, with a system prompt of `head` tokens, and how long it has become."""

    name: str
    program: int
    head: int
    turns: int
    tokens: int
    messages: int = 2


@dataclass(slots=True)
class Pod:
    """One server. `capacity` is how many blocks its cache holds."""

    capacity: int
    known: OrderedDict[tuple[str, int], None] = field(default_factory=OrderedDict)
    free_at: float = 0.0
    calls: int = 0
    down: bool = False

    def read(self, session: Session) -> int:
        """Return how many tokens of a conversation's prompt are cached, and keep all of it."""
        blocks = list(blocks_of(session))
        cached = 0
        for block in blocks:
            if block not in self.known:
                break
            cached += 1
        for block in reversed(blocks):
            self.known[block] = None
            self.known.move_to_end(block)
        while len(self.known) > self.capacity:
            self.known.popitem(last=False)
        return min(cached * BLOCK, session.tokens)


def blocks_of(session: Session) -> Iterator[tuple[str, int]]:
    """Yield the blocks of a prompt: those of the program's system prompt, then those of the conversation."""
    head = session.head // BLOCK
    for place in range(session.tokens // BLOCK):
        yield (f"program {session.program}", place) if place < head else (session.name, place)


class Policy(Protocol):
    """Chooses pods. `ended` is told how a call went: on which pod, and what was read from its cache."""

    def choose(self, session: Session, pods: list[Pod], now: float) -> int: ...

    def ended(self, session: Session, pod: int, tokens: int, cached: int, now: float) -> None: ...

    def lost(self, pod: int, now: float) -> None: ...


class Outcome(NamedTuple):
    """The share of all prompts' tokens that were cached, the waits for a first token in seconds, and the most used pod's share of calls."""

    hit_rate: float
    waits: list[float]
    most_used: float

    def wait(self, share: float) -> float:
        """Return the wait that so large a share of the calls did not exceed."""
        return self.waits[int(share * len(self.waits))]


def sessions_of(load: Workload) -> list[tuple[float, Session]]:
    """Return when each conversation begins."""
    chance = random.Random(load.seed)
    heads = [round(chance.lognormvariate(7.6, 0.7)) for _ in range(load.programs)]
    weights = [1 / (rank + 1) ** load.skew for rank in range(load.programs)]
    found: list[tuple[float, Session]] = []
    now = 0.0
    while (now := now + chance.expovariate(load.sessions_per_second)) < load.seconds:
        program = chance.choices(range(load.programs), weights)[0]
        turns = 1 + min(60, int(chance.expovariate(1 / (load.turns - 1))))
        first = heads[program] + chance.randint(50, 400)
        found.append((now, Session(f"session {len(found)}", program, heads[program], turns, first)))
    return found


def play(load: Workload, pods: int, capacity: int, policy: Policy, *, dies_at: float | None = None) -> Outcome:
    """Hold all conversations, and return what came of them. `dies_at`: when the first pod is gone for a minute, and comes back empty."""
    servers = [Pod(capacity) for _ in range(pods)]
    chance = random.Random(load.seed + 1)
    events: list[tuple[float, int, int, Session | None, tuple[int, int, int]]] = []
    for number, (at, begun) in enumerate(sessions_of(load)):
        heapq.heappush(events, (at, number, _TURN, begun, _NONE))
    number = len(events)
    if dies_at is not None:
        heapq.heappush(events, (dies_at, -2, _DIES, None, _NONE))
        heapq.heappush(events, (dies_at + 60, -1, _BACK, None, _NONE))
    read = prompt = 0
    waits: list[float] = []
    calls = [0] * pods
    while events:
        now, _, kind, session, done = heapq.heappop(events)
        number += 1
        if kind == _TURN and session is not None:
            place = policy.choose(session, servers, now)
            pod = servers[place]
            cached = pod.read(session)
            read, prompt, calls[place] = read + cached, prompt + session.tokens, calls[place] + 1
            pod.calls += 1
            pod.free_at = max(now, pod.free_at) + (session.tokens - cached) / TOKENS_PER_SECOND
            waits.append(pod.free_at - now)
            heapq.heappush(
                events, (pod.free_at + ANSWER_SECONDS, number, _END, session, (place, session.tokens, cached))
            )
        elif kind == _END and session is not None:
            place, tokens, cached = done
            servers[place].calls -= 1
            policy.ended(session, place, tokens, cached, now)
            session.turns -= 1
            if session.turns:
                session.tokens += chance.randint(150, 1500)
                session.messages += 2
                heapq.heappush(
                    events, (now + chance.expovariate(1 / load.pause_seconds), number, _TURN, session, _NONE)
                )
        else:
            servers[0].down = kind == _DIES
            servers[0].known.clear()
            policy.lost(0, now)
    return Outcome(read / prompt, sorted(waits), max(calls) / sum(calls))


_TURN, _END, _DIES, _BACK = range(4)
_NONE = (0, 0, 0)
