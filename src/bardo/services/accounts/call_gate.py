"""The checks between a call that has found its models and the providers: the models of its key, its limits and its budgets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from bardo.accounting.cost import estimate
from bardo.adapters.config.accounts import Account, BudgetSettings
from bardo.adapters.long_work import run_by_size, size_of
from bardo.adapters.stores.log.row import LogRow, PendingCall
from bardo.planning.route import Target, target_names
from bardo.planning.token_counting import estimate_request
from bardo.services.accounts.accounts import Accounts
from bardo.services.accounts.call_facts import CallFacts
from bardo.services.facts.directory import Placement
from bardo.services.facts.price_book import PriceBook
from bardo.values.degradation import Degradation
from bardo.values.errors import Forbidden
from bardo.values.operations import EmbedInput, EmbedRequest
from bardo.values.request import Request
from bardo.values.usage import Usage, estimate_tokens

_MOST_PRICED = 8
"""How many of the targets of a call are looked at for what it may cost: the dearest counts."""
WHY = "the key may not ask it"
WITHOUT_PRICE = "the key has a budget, and what it costs is not known"


class CallGate:
    """Lets calls through to providers, and counts what they took when they end. `clock` gives Unix time."""

    def __init__(
        self, accounts: Accounts, prices: PriceBook, settings: BudgetSettings, *, clock: Callable[[], float]
    ) -> None:
        self.accounts = accounts
        self._prices = prices
        self._settings = settings
        self._clock = clock

    async def admit(
        self,
        account: Account,
        request: Request | EmbedRequest,
        placement: Placement,
        request_id: str,
        *,
        requests: int = 1,
        slots: int = 1,
        session: str = "",
        free: bool = False,
    ) -> Placement:
        """Return who may be asked, once the call is within its limits; `requests` is 0 for a further call of one request, `slots` for
        one that another call of the request waits for. `session` is the conversation that it belongs to.

        `free`: the call can cost nothing. Raises Forbidden, RateLimited and OverBudget.
        """
        if account.models:
            placement = permitted(account, request.model, placement)
        if account.limited:
            facts = CallFacts(request_id=request_id, requests=requests, slots=slots, free=free, session=session)
            if not free:
                placement = self.priced(account, request.model, placement)
            if not free and (account.has_budget or account.limits.tokens_per_minute is not None):
                long = size_of(request) if isinstance(request, Request) else 0
                facts = await run_by_size(long, partial(self.facts, account, request, placement.targets, facts))
            await self.accounts.admit(account, facts)
        return placement

    def facts(
        self, account: Account, request: Request | EmbedRequest, targets: Sequence[Target], call_facts: CallFacts
    ) -> CallFacts:
        """Return what a call may take."""
        value, most, wanted = _tokens(request)
        nanos = likely = thousand = None
        assumed = self._settings.assumed_output_tokens * wanted
        output = assumed if most is None else min(most, assumed)
        if account.has_budget:
            nanos = self._most_nanos(account, targets, value, assumed if most is None else most)
            likely = self._most_nanos(account, targets, value, output)
            thousand = self._most_nanos(account, targets, 0, 1000)
        return msgspec.structs.replace(
            call_facts,
            tokens=value + (most or 0),
            nanos=nanos,
            prompt_tokens=value,
            likely_output=output,
            likely_nanos=likely,
            thousand_nanos=thousand or 0,
        )

    def with_estimate(self, call: PendingCall, target: Target) -> PendingCall:
        """Return a call that is about to be sent to a target, with what it counts as should this process end before the call does."""
        facts = self.accounts.admitted(call.request_id)
        if facts is None or facts.prompt_tokens is None:
            return call
        usage = Usage(input_tokens=facts.prompt_tokens, output_tokens=facts.likely_output)
        cost = self._prices.cost(target.provider, target.model, usage, self._clock())
        parts: Any = cost.parts or None
        return msgspec.structs.replace(call, input_tokens=facts.prompt_tokens, cost_nanos=cost.nanos, cost_parts=parts)

    def priced(self, account: Account, asked: str, placement: Placement) -> Placement:
        """Return the targets whose price is known, where the money of a key is limited and it may ask no others.

        Raises Forbidden where none is left.
        """
        if not account.has_budget or self._settings.rule(account.unknown_cost) != "refuse":
            return placement
        now = self._clock()
        targets = tuple(
            target
            for target in placement.targets
            if estimate(self._prices.price(target.provider, target.model, now), 1, 1) is not None
        )
        if len(targets) == len(placement.targets):
            return placement
        if not targets:
            message = f"the key has a budget, and what {asked[:200]!r} costs is not known"
            hint = 'ask a model with a price, give its price under [[prices]], or set unknown_cost = "estimate" under [budgets]'
            raise Forbidden(message, hint=hint)
        dropped = [target for target in placement.targets if target not in targets]
        lost = tuple(Degradation("model", asked=name, why=WITHOUT_PRICE) for name in target_names(dropped))
        return msgspec.structs.replace(placement, targets=targets, skipped=(*placement.skipped, *lost))

    def charged(self, nanos: int | None) -> int | None:
        """Return what a key is charged for what a call cost, or None if that is not known, or is the provider's cost alone."""
        return None if nanos is None or not self._settings.spread_percent else self._settings.charged(nanos)

    def settle(self, row: LogRow) -> None:
        """Count what a call took, by its row in the log."""
        self.accounts.settle(row)

    def _most_nanos(self, account: Account, targets: Sequence[Target], value: int, most: int) -> int | None:
        """Return what a call may be charged at the dearest of its targets, or None if no price is known, and none is assumed."""
        now, dearest = self._clock(), None
        for target in targets[:_MOST_PRICED]:
            nanos = estimate(self._prices.price(target.provider, target.model, now), value, most)
            if nanos is None and self._settings.rule(account.unknown_cost) == "estimate":
                nanos = self._settings.assumed_nanos(value, most)
            if nanos is not None and (dearest is None or nanos > dearest):
                dearest = nanos
        return None if dearest is None else self._settings.charged(dearest)


def permitted(account: Account, asked: str, placement: Placement) -> Placement:
    """Return the targets that a key may ask: all where it may ask for the name itself, else those whose own names it may ask for.

    A request that says what it needs beside a model may lead elsewhere than the name says, so that its targets are looked at.
    Raises Forbidden where none is left.
    """
    if placement.route is None and account.may_ask(placement.meant or asked):
        return placement
    targets = tuple(
        target for target in placement.targets if account.may_ask(target.model, f"{target.provider.id}/{target.model}")
    )
    if len(targets) == len(placement.targets):
        return placement
    if not targets:
        hint = f"it may ask: {', '.join(account.models)}"
        raise Forbidden(f"the key may not ask {asked[:200]!r}", hint=hint)
    dropped = [target for target in placement.targets if target not in targets]
    lost = tuple(Degradation("model", asked=name, why=WHY) for name in target_names(dropped))
    return msgspec.structs.replace(placement, targets=targets, skipped=(*placement.skipped, *lost))


def _tokens(request: Request | EmbedRequest) -> tuple[int, int | None, int]:
    """Return about how many tokens a request gives, how many its answers may have at most (None: no bound), and how many answers."""
    if isinstance(request, EmbedRequest):
        return sum(map(_tokens_of_input, request.inputs)), 0, 1
    most = request.max_output_tokens
    return estimate_request(request), None if most is None else most * request.choices, request.choices


def _tokens_of_input(value: EmbedInput) -> int:
    if isinstance(value, str):
        return estimate_tokens(value)
    return len(value) if isinstance(value, tuple) else 0
