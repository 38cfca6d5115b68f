"""Which server of a model probably still has the beginning of a prompt in its cache, and what that is worth."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Callable, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

import msgspec

from bardo.context.layer import TargetFacts
from bardo.values.request import Message, Request, Tool
from bardo.values.usage import estimate_tokens

_PER_MILLION = 1_000_000


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one target now.

    `warm_tokens` of the prompt are probably cached, `session_tokens` of them known from earlier turns of the session. `in_flight` calls are
    under way, each of about `tokens_per_call` new tokens. `placed_tokens` were sent there lately. `ready` False: it is down, or rests.
    """

    warm_tokens: int = 0
    session_tokens: int = 0
    in_flight: int = 0
    tokens_per_call: float = 0.0
    placed_tokens: float = 0.0
    ready: bool = True


class LoadBounds(msgspec.Struct, frozen=True, kw_only=True):
    """When a warm prefix is not waited for.

    A server with `bound` times the mean number of calls under way, and at least `free` of them, is passed over. A new session counts
    `balance` of each token that a server was sent lately, so that sessions spread over the caches of all servers.
    """

    bound: float = 1.5
    free: int = 8
    balance: float = 0.25


class ServerOrder(NamedTuple):
    """Places in order, and why the first comes first: `warm`, `cheaper`, `loaded` or `spread`; empty where nothing was decided."""

    places: tuple[int, ...]
    why: str = ""


def order_targets(
    targets: Sequence[TargetFacts], states: Sequence[ServerState], bounds: LoadBounds, count_tokens: Callable[[], int]
) -> ServerOrder:
    """Return the order in which targets are asked. `count_tokens` estimates the prompt, where prices are to be compared."""
    groups = _groups(targets)
    ordered = [_order_servers(group, states, bounds) for group in groups]
    warmest = 0
    if len(groups) > 1 and any(state.session_tokens for state in states):
        warmest = _cheapest_warm(targets, states, [group.places[0] for group in ordered], count_tokens())
    if warmest:
        ordered.insert(0, ordered.pop(warmest)._replace(why="cheaper"))
    return ServerOrder(tuple([place for group in ordered for place in group.places]), ordered[0].why)


def saved_nanos(target: TargetFacts, tokens: float) -> float:
    """Return the nano-dollars saved by reading so many tokens from a target's cache, or 0 if its prices are unknown."""
    if target.input_nanos is None or target.cache_read_nanos is None:
        return 0.0
    return tokens * (target.input_nanos - target.cache_read_nanos) / _PER_MILLION


def _groups(targets: Sequence[TargetFacts]) -> list[list[int]]:
    """Return the places of targets, those of one provider's servers for one model together."""
    groups: list[list[int]] = []
    for place, target in enumerate(targets):
        before = targets[place - 1] if place else None
        if before is not None and target.address and _name(before) == _name(target):
            groups[-1].append(place)
        else:
            groups.append([place])
    return groups


def _name(target: TargetFacts) -> tuple[str, str]:
    return target.provider, target.model


def _order_servers(group: list[int], states: Sequence[ServerState], bounds: LoadBounds) -> ServerOrder:
    """Return the places of one provider's servers, best first."""
    if len(group) == 1:
        return ServerOrder(tuple(group), "warm" if states[group[0]].warm_tokens else "")
    calls = [states[place].in_flight for place in group]
    most = max(bounds.free, math.ceil(bounds.bound * (sum(calls) + 1) / len(group)))
    balance = 0.0 if any(states[place].session_tokens for place in group) else bounds.balance

    ranked = [(_rank(states[place], most, balance), place) for place in group]
    ranked.sort()
    places = tuple([place for _, place in ranked])
    first = states[places[0]]
    warmest = max(states[place].warm_tokens for place in group)
    why = "spread" if not warmest else "warm" if first.warm_tokens >= warmest else "loaded"
    return ServerOrder(places, why)


def _rank(server: ServerState, most: int, balance: float) -> tuple[bool, bool, float]:
    """Return what servers are ordered by: whether one is down, has as many calls as it may, and how many tokens it has to read first."""
    work = server.in_flight * server.tokens_per_call - server.warm_tokens + balance * server.placed_tokens
    return not server.ready, server.in_flight >= most, work


def _cheapest_warm(
    targets: Sequence[TargetFacts], states: Sequence[ServerState], firsts: Sequence[int], prompt_tokens: int
) -> int:
    """Return the place in `firsts` of a provider that has the prompt cached and costs less than the first of the same model; 0 for none."""
    first = targets[firsts[0]]
    best, cheapest = _cost(first, states[firsts[0]], prompt_tokens), 0
    for number, place in enumerate(firsts[1:], 1):
        target, state = targets[place], states[place]
        if target.model != first.model:
            break
        cost = _cost(target, state, prompt_tokens)
        if state.session_tokens and state.ready and cost is not None and best is not None and cost < best:
            best, cheapest = cost, number
    return cheapest


def _cost(target: TargetFacts, state: ServerState, prompt_tokens: int) -> float | None:
    """Return what the prompt costs at a target, in nano-dollars, or None if that is not known."""
    if target.input_nanos is None:
        return None
    whole = prompt_tokens * target.input_nanos / _PER_MILLION
    return whole - saved_nanos(target, min(state.warm_tokens, prompt_tokens))


HALF_LIFE_SECONDS = 300.0
"""The half-life that is assumed of a cache of which nothing is known: the reference document's decay over five minutes."""
LEAST_TOKENS = 1024
"""Providers cache no shorter prompts (OpenAI and Anthropic, as of 2026-11), so that reading nothing of them tells nothing."""
_EDGES = (15, 30, 60, 120, 180, 240, 300, 360, 480, 720, 1200, 1800, 2700, 3600, 4500, 7200, 14400, 28800)
"""Where the intervals of pauses end, in seconds: closest at five minutes and at an hour, for which providers say they keep prompts."""
_MIDDLES = (*((first + second) / 2 for first, second in pairwise((0, *_EDGES))), 2.0 * _EDGES[-1])
_SEEN, _UNSEEN = 1.0, 0.1
"""For how many observations the assumption counts in an interval of which something was seen, and of which nothing was."""
_KEPT = 0.985
"""The share of its weight that an observation keeps after the next one: about the latest sixty count, so that changes are learned."""


class CacheSurvival:
    """The curve of one model at one provider. `half_life` is the first estimate, in seconds."""

    __slots__ = ("_counts", "_curve", "_half_life", "_means", "observations")

    def __init__(self, half_life: float = HALF_LIFE_SECONDS) -> None:
        self._half_life = half_life
        self._counts = [0.0] * len(_MIDDLES)
        self._means = [0.0] * len(_MIDDLES)
        self._curve: list[float] | None = None
        self.observations = 0

    def note(self, seconds: float, share: float) -> None:
        """Learn what share of a prefix, from 0 to 1, was read from the cache after a pause of so many seconds."""
        place = _interval(seconds)
        self._counts = [count * _KEPT for count in self._counts]
        self._counts[place] += 1.0
        self._means[place] += (min(1.0, max(0.0, share)) - self._means[place]) / self._counts[place]
        self._curve = None
        self.observations += 1

    def share(self, seconds: float) -> float:
        """Return what share of a prefix is probably still cached after so many seconds, from 0 to 1."""
        if not self.observations:
            return math.exp2(-max(0.0, seconds) / self._half_life)
        return self.curve[_interval(seconds)]

    @property
    def curve(self) -> Sequence[float]:
        """The share that is left in each interval of pauses, which never rises."""
        if self._curve is None:
            assumed = [math.exp2(-middle / self._half_life) for middle in _MIDDLES]
            priors = [_SEEN if count else _UNSEEN for count in self._counts]
            weights = [prior + count for prior, count in zip(priors, self._counts, strict=True)]
            values = [
                (prior * share + count * mean) / (prior + count)
                for prior, share, count, mean in zip(priors, assumed, self._counts, self._means, strict=True)
            ]
            self._curve = falling(values, weights)
        return self._curve

    def half_life(self) -> float:
        """Return after how many seconds half of a prefix is left; infinity where more than half is left after the longest pause."""
        if not self.observations:
            return self._half_life
        before, at = 1.0, 0.0
        for share, middle in zip(self.curve, _MIDDLES, strict=True):
            if share <= 0.5:
                return at + (middle - at) * (before - 0.5) / (before - share) if before > share else middle
            before, at = share, middle
        return math.inf


def falling(values: Sequence[float], weights: Sequence[float]) -> list[float]:
    """Return the sequence that never rises and is nearest to `values` by weighted squares, in linear time."""
    pools: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        mean, total, count = value, weight, 1
        while pools and pools[-1][0] < mean:
            other, own, size = pools.pop()
            mean = (mean * total + other * own) / (total + own)
            total, count = total + own, count + size
        pools.append((mean, total, count))
    return [mean for mean, _, count in pools for _ in range(count)]


def _interval(seconds: float) -> int:
    """Return the place of the interval in which a pause is."""
    return bisect_left(_EDGES, seconds)


BLOCK_CHARACTERS = 2048
"""The length of a block of text: about 500 tokens."""
MOST_BLOCKS = 64
"""Of a longer beginning the rest tells no more."""
_MOST_KEPT = 512
_MOST_CHARACTERS = 16 * 1024 * 1024
"""How many beginnings are kept to compare with, and how many characters of them."""
_SAMPLE = 48


class PromptPrefix(NamedTuple):
    """The tools and the system prompt of a request. `blocks` are their numbers, `tokens` an estimate of what ends with each of them."""

    blocks: tuple[int, ...]
    tokens: tuple[int, ...]


NO_PREFIX = PromptPrefix((), ())
_Tools = tuple[tuple[str, int], ...]
_Key = tuple[_Tools, int, str, str]


class PrefixReader:
    """Reads the beginnings of prompts, and keeps those that came last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[_Key, tuple[str, PromptPrefix]] = OrderedDict()
        self._characters = 0

    def read(self, request: Request) -> PromptPrefix:
        """Return the beginning of a request's prompt; an empty one where it has neither tools nor a system prompt."""
        text = system_text(request)
        if not text and not request.tools:
            return NO_PREFIX
        tools: _Tools = tuple([(tool.name, len(tool.description)) for tool in request.tools]) if request.tools else ()
        key = (tools, len(text), text[:_SAMPLE], text[-_SAMPLE:])
        entry = self._kept.get(key)
        if entry is not None and entry[0] == text:
            return entry[1]
        made = prefix_of(tools, text, request.tools)
        self._keep(key, text, made)
        return made

    def _keep(self, key: _Key, text: str, made: PromptPrefix) -> None:
        before = self._kept.pop(key, None)
        self._characters += len(text) - (0 if before is None else len(before[0]))
        self._kept[key] = (text, made)
        while len(self._kept) > _MOST_KEPT or self._characters > _MOST_CHARACTERS:
            _, (gone, _) = self._kept.popitem(last=False)
            self._characters -= len(gone)


def system_text(request: Request) -> str:
    """Return the system prompt: the messages before the first of another role."""
    messages = request.messages
    if len(messages) > 1 and messages[0].role == "system" and messages[1].role != "system":
        return messages[0].text
    return "\n".join([message.text for message in takewhile(_is_of_system, messages)])


def _is_of_system(message: Message) -> bool:
    return message.role == "system"


def prefix_of(named: _Tools, text: str, tools: tuple[Tool, ...]) -> PromptPrefix:
    """Return the blocks of tools and a system prompt. Tools stand first, as the prompt templates of most models put them."""
    number, tokens = hash(named), 0
    blocks: list[int] = []
    counts: list[int] = []
    if named:
        tokens = sum(estimate_tokens(f"{tool.name}{tool.description}{tool.schema}") for tool in tools)
        blocks.append(number)
        counts.append(tokens)
    for start in range(0, len(text), BLOCK_CHARACTERS):
        if len(blocks) >= MOST_BLOCKS:
            break
        part = text[start : start + BLOCK_CHARACTERS]
        number = hash((number, part))
        tokens += estimate_tokens(part)
        blocks.append(number)
        counts.append(tokens)
    return PromptPrefix(tuple(blocks), tuple(counts))
