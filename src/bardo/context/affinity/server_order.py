"""The order in which targets are asked, by what they probably have cached, how busy they are and what they cost.

Servers of one provider stand equal: the one comes first that has least to do for the call, its prompt's tokens that are not cached and
those of the calls before it. Different providers stand equal where they serve the same model: one that has the prompt cached comes first
where the call costs less there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from bardo.context.layer import TargetFacts

_PER_MILLION = 1_000_000


class ServerState(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one target now.

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
    if len(groups) > 1 and any(one.session_tokens for one in states):
        warmest = _cheapest_warm(targets, states, [one.places[0] for one in ordered], count_tokens())
    if warmest:
        ordered.insert(0, ordered.pop(warmest)._replace(why="cheaper"))
    return ServerOrder(tuple([place for one in ordered for place in one.places]), ordered[0].why)


def saved_nanos(target: TargetFacts, tokens: float) -> float:
    """Return what is saved by reading so many tokens from a target's cache, in nano-dollars; 0 where its prices are not known."""
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


def _rank(one: ServerState, most: int, balance: float) -> tuple[bool, bool, float]:
    """Return what servers are ordered by: whether one is down, has as many calls as it may, and how many tokens it has to read first."""
    work = one.in_flight * one.tokens_per_call - one.warm_tokens + balance * one.placed_tokens
    return not one.ready, one.in_flight >= most, work


def _cheapest_warm(
    targets: Sequence[TargetFacts], states: Sequence[ServerState], firsts: Sequence[int], prompt_tokens: int
) -> int:
    """Return the place in `firsts` of a provider that has the prompt cached and costs less than the first of the same model; 0 for none."""
    first = targets[firsts[0]]
    best, found = _cost(first, states[firsts[0]], prompt_tokens), 0
    for number, place in enumerate(firsts[1:], 1):
        target, state = targets[place], states[place]
        if target.model != first.model:
            break
        cost = _cost(target, state, prompt_tokens)
        if state.session_tokens and state.ready and cost is not None and best is not None and cost < best:
            best, found = cost, number
    return found


def _cost(target: TargetFacts, state: ServerState, prompt_tokens: int) -> float | None:
    """Return what the prompt costs at a target, in nano-dollars; None where that is not known."""
    if target.input_nanos is None:
        return None
    whole = prompt_tokens * target.input_nanos / _PER_MILLION
    return whole - saved_nanos(target, min(state.warm_tokens, prompt_tokens))
