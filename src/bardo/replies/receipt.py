"""What the caller is told of a call beside the answer: headers, and the `bardo` object."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from bardo.accounting.cost import with_escalations
from bardo.planning.attempt import Attempt
from bardo.planning.route import RouteRecord, Target
from bardo.planning.workloads import VERIFICATION
from bardo.reasoning import control
from bardo.reasoning.control import Observation, observation, observe, receipt_header
from bardo.reasoning.steps import chain_fields, with_steps
from bardo.values.attempts import AttemptRecord
from bardo.values.degradation import UNLISTED, Degradation, unlisted
from bardo.values.reasoning import ReasoningChain
from bardo.values.request import EFFORTS, Request
from bardo.values.response import Response
from bardo.values.usage import CallCost, add_costs, exact_dollars, usd


class CallFacts(NamedTuple):
    """What is told of a call beside its reply: its id, the attempt that was answered, what it cost, and all of its attempts.

    `charged_nanos` is what its key is charged, where that is another amount than the cost.
    """

    request_id: str
    attempt: Attempt
    cost: CallCost
    attempts: tuple[AttemptRecord, ...]
    payment: dict[str, Any] | None = None
    verification: dict[str, Any] | None = None
    charged_nanos: int | None = None


_MAX_NAMES = 1_500
"""Characters of `X-Bardo-Degraded`. Proxies allow about 8 kB for all headers of a reply."""
_MAX_NAME = 100


def early_headers(request_id: str, attempt: Attempt, response: Response | None = None) -> list[tuple[str, str]]:
    """Return the headers that are known before the first byte of a reply; a finished `response` knows all that was degraded."""
    headers = call_headers(request_id, attempt.target, attempt.degraded if response is None else response.degraded)
    if attempt.control is not None and response is None:
        headers.append(("X-Bardo-Reasoning", _printable(receipt_header(attempt.control))))
    if attempt.route is not None:
        headers.append(("X-Bardo-Route", _printable(route_header(attempt.route, attempt.target))))
    return headers


def route_header(route: RouteRecord, target: Target) -> str:
    """Return in brief what was asked for, by which strategy, and what the target that answers lacks of it."""
    fields = route.fields
    words = [fields.get("workload") or "intent", f"strategy={fields['strategy']}"]
    if fields["relaxed"]:
        words.append("relaxed")
    if tier := fields.get("agent", {}).get("tier"):
        words.append(f"tier={tier}")
    lacking = ", ".join(one.what for one in route.degraded_at(target))
    return "; ".join([*words, f"lacks {lacking}"] if lacking else words)


def call_headers(request_id: str, target: Target, degraded: tuple[Degradation, ...]) -> list[tuple[str, str]]:
    """Return the headers of every call, whatever its operation: its id, who answered, and what was degraded."""
    headers = [
        ("X-Bardo-Request-Id", request_id),
        ("X-Bardo-Provider", _printable(target.provider.id)),
        ("X-Bardo-Model", _printable(target.model)),
    ]
    if degraded:
        headers.append(("X-Bardo-Degraded", _names(degraded)))
    return headers


def late_headers(
    response: Response, attempt: Attempt, cost: CallCost, verdict: str | None = None
) -> list[tuple[str, str]]:
    """Return the headers that only a finished reply has. A count that was not reported is `unknown`, not 0; a cost is left out then.

    `verdict` is that of the call's receipt, or None if none was made.
    """
    chain, plan = response.reasoning, attempt.control
    headers: list[tuple[str, str]] = []
    known = chain.reported or chain.tokens_approx or chain.empty
    if plan is not None:
        told = receipt_header(plan, verdict or observe(plan, _observed(response)))
        headers.append(("X-Bardo-Reasoning", _printable(told)))
    headers.append(("X-Bardo-Reasoning-Tokens", str(chain.reasoning_tokens) if known else "unknown"))
    if chain.tokens_approx:
        headers.append(("X-Bardo-Reasoning-Tokens-Approx", "true"))
    return [*headers, *cost_headers(cost)]


def cost_headers(cost: CallCost) -> list[tuple[str, str]]:
    """Return the headers that tell what a call cost, in exact dollars, and whether that is estimated; none where it is not known."""
    if cost.nanos is None:
        return []
    if cost.source == "subscription":
        # Its client pays, and nobody here knows what.
        return [("X-Bardo-Cost-Source", cost.source)]
    told = [("X-Bardo-Cost-Usd", exact_dollars(cost.nanos))]
    return [*told, ("X-Bardo-Cost-Approx", "true")] if cost.approx else told


def headers_of_calls(calls: Sequence[tuple[str, Attempt, Response, CallCost]]) -> list[tuple[str, str]]:
    """Return the headers of finished calls that one request asked for: of each its id, its attempt, its response and its cost.

    Ids are listed in the order of the calls. Providers, models, degradations and reasoning are listed once each. Tokens and costs are
    summed; a sum with an unknown part is unknown.
    """
    each = [dict([*early_headers(*call[:3]), *late_headers(call[2], call[1], call[3])]) for call in calls]
    if len(each) == 1:
        return list(each[0].items())
    merged = {name: ", ".join(dict.fromkeys(one[name] for one in each if name in one)) for name in each[0]}
    if degraded := tuple(one for _, _, response, _ in calls for one in response.degraded):
        merged["X-Bardo-Degraded"] = _names(degraded)
    tokens = [one["X-Bardo-Reasoning-Tokens"] for one in each]
    merged["X-Bardo-Reasoning-Tokens"] = "unknown" if "unknown" in tokens else str(sum(map(int, tokens)))
    if any(response.reasoning.tokens_approx for _, _, response, _ in calls):
        merged["X-Bardo-Reasoning-Tokens-Approx"] = "true"
    merged.pop("X-Bardo-Cost-Usd", None)
    merged.pop("X-Bardo-Cost-Approx", None)
    merged |= dict(cost_headers(add_costs(cost for _, _, _, cost in calls)))
    return list(merged.items())


def _observed(response: Response) -> Observation:
    """Return what a reply shows of its thinking, with the level that it says was applied.

    Responses has that under `reasoning`, and some servers of Chat beside the choices.
    """
    fields = {} if response.carried is None else response.carried.fields
    said = fields.get("reasoning")
    effort = said.get("effort") if isinstance(said, dict) else fields.get("reasoning_effort")
    return observation(response.reasoning, effort if effort in ("none", *EFFORTS) else None)


def _names(degraded: tuple[Degradation, ...]) -> str:
    """Return what was degraded, by name, and after the bound how many more there are."""
    names = list(dict.fromkeys(_printable(one.what, _MAX_NAME) for one in degraded if one.what != UNLISTED))
    listed, size = 0, 0
    for name in names:
        size += len(name) + 2
        if size > _MAX_NAMES:
            break
        listed += 1
    more = len(names) - listed + unlisted(degraded)
    return ", ".join((*names[:listed], f"{more} more") if more else names)


@lru_cache(maxsize=512)
def _printable(text: str, longest: int = 400) -> str:
    """Return text as a header can hold it, cut where it is long: clients choose names, and must not end a header with one."""
    if len(text) > longest:
        text = f"{text[: longest - 3]}..."
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)


def extension(request: Request, response: Response, call: CallFacts, *, forwarded: bool) -> dict[str, Any]:
    """Return the `bardo` object with what the client asked to have included."""
    attempt = call.attempt
    fields: dict[str, Any] = {
        "request_id": call.request_id,
        "provider": attempt.target.provider.id,
        "model": attempt.target.model,
        **cost_extension(call.cost, call.attempts, call.charged_nanos),
        "degraded": msgspec.to_builtins(response.degraded),
    }
    if call.payment is not None:
        fields["payment"] = call.payment
    if VERIFICATION in request.options.include:
        fields[VERIFICATION] = call.verification
    if "reasoning_chain" in request.options.include:
        told = receipt(response, attempt, forwarded=forwarded)
        chain = msgspec.structs.replace(_with_cost(response.reasoning, call.cost), control=told)
        fields["reasoning_chain"] = chain_fields(chain)
    if "receipt" in request.options.include:
        fields["receipt"] = receipt(response, attempt, forwarded=forwarded)
    if "route" in request.options.include:
        fields["route"] = None if attempt.route is None else attempt.route.fields
    return fields


def cost_extension(
    cost: CallCost, attempts: tuple[AttemptRecord, ...], charged_nanos: int | None = None
) -> dict[str, Any]:
    """Return the fields of the `bardo` object that tell what a call cost, and by which attempts; what is not known is None.

    What its key is charged is told where it is another amount.
    """
    charged = {} if charged_nanos is None else {"charged_usd": _usd(charged_nanos)}
    return {
        "cost_usd": _usd(cost.nanos),
        **charged,
        "cost": {
            "usd": _usd(cost.nanos),
            "nanos": cost.nanos,
            "parts": cost.parts,
            "reported_usd": _usd(cost.reported_nanos),
            "computed_usd": _usd(cost.computed_nanos),
            "difference_usd": _usd(cost.difference_nanos),
            "saved_usd": _usd(cost.saved_nanos),
            "source": cost.source or None,
            "approx": cost.approx,
        },
        "attempts": [{**msgspec.to_builtins(attempt), "usd": _usd(attempt.nanos)} for attempt in attempts],
    }


def with_earlier_calls(cost: CallCost, attempt: Attempt | None) -> CallCost:
    """Return what a request cost whose earlier calls had answers that were not good enough: theirs is the cost of escalation."""
    cascade = None if attempt is None or attempt.route is None else attempt.route.fields.get("cascade")
    if not cascade:
        return cost
    earlier = [one["cost_nanos"] for one in cascade["calls"]]
    return with_escalations(cost, earlier)


def _usd(nanos: int | None) -> float | None:
    return None if nanos is None else usd(nanos)


def _with_cost(chain: ReasoningChain, cost: CallCost) -> ReasoningChain:
    """Return the chain with what its tokens cost, or None if they were not counted, or have no known price."""
    is_free = cost.nanos == 0 or (cost.nanos is not None and not chain.reasoning_tokens)
    nanos = cost.parts.get("thinking", 0 if is_free else None)
    if not chain.reported or nanos is None:
        return chain
    return msgspec.structs.replace(chain, cost=msgspec.structs.replace(chain.cost, usd=usd(nanos)))


def with_receipt(request: Request, response: Response, call: CallFacts, *, forwarded: bool) -> Response:
    """Return the response with the `bardo` object a Python caller always gets: ids, cost and receipt; its thinking has steps."""
    fields = extension(request, response, call, forwarded=forwarded)
    bardo = {**fields, "receipt": receipt(response, call.attempt, forwarded=forwarded)}
    chain = msgspec.structs.replace(_with_cost(response.reasoning, call.cost), control=bardo["receipt"])
    return with_steps(msgspec.structs.replace(response, bardo=bardo, reasoning=chain))


def receipt(response: Response, attempt: Attempt, *, forwarded: bool) -> dict[str, Any]:
    """Return what was asked for, what was sent, and what was observed: `control.receipt`, and whether the reply was forwarded.

    Where the provider has several endpoints, also which one was asked, and why; and where the request said what it needs, the route.
    """
    plan = attempt.control
    fields: dict[str, Any] = {}
    if plan is not None:
        seen = _observed(response)
        fields = control.receipt(plan, seen, observe(plan, seen))
    if attempt.endpoint is not None:
        fields["endpoint"] = msgspec.to_builtins(attempt.endpoint)
    if attempt.route is not None:
        fields["route"] = attempt.route.fields
    if attempt.caching is not None:
        fields["prompt_caching"] = msgspec.to_builtins(attempt.caching)
    said = None if response.carried is None else response.carried.fields.get(_DROPPED)
    if isinstance(said, list) and said:
        fields[_DROPPED] = said
    fields["forwarded"] = forwarded
    return fields


_DROPPED = "input_transformations"
"""Which earlier reasoning the provider left out, and why, where it says so: a list of its own objects."""
