"""Count the tokens of a request: by the provider that would be sent it, where it counts any, else by an estimate that is marked as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from bardo.catalog.fragments import leaves
from bardo.dialects import dialect
from bardo.dialects.shared.dialect import CountForm
from bardo.planning.default_fields import required_defaults
from bardo.planning.exchange import first_attempt
from bardo.planning.knowledge import Knowledge
from bardo.planning.route import Target
from bardo.planning.unary import UnaryAttempt, WholeReply
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.operations import TokenCount
from bardo.values.request import Request
from bardo.values.usage import MESSAGE_TOKENS, block_tokens, estimate_tokens

_NO_ENDPOINT = (404, 405, 501)
"""How servers answer at a path they do not have: those that speak a dialect need not count as its maker's do."""


def count_attempt(request: Request, target: Target, knowledge: Knowledge) -> UnaryAttempt[TokenCount]:
    """Return how the tokens of a request are counted for one target. Raises Unsupported where the target cannot be sent the request."""
    row = target.provider.row
    form = dialect(row.dialect).token_count if row.counts_tokens else None
    if form is None:
        return _estimated(request, target, f"{target.provider.id} counts no tokens")
    planned = first_attempt(request, (target,), knowledge=knowledge)
    wire = form.encode_request(planned.wire, target.model)
    if required := required_defaults(planned.degraded, target, request.options):
        sent = [f".{path}" for path, _ in leaves(msgspec.json.decode(wire.body))]
        if left := [one for one in required if not any(path.endswith(f".{one}") for path in sent)]:
            # The prompt goes to nobody without what the operator says of who reads it.
            return _estimated(request, target, f"{target.provider.id} counts no tokens under {', '.join(left)}")

    def decode(replies: Sequence[WholeReply]) -> TokenCount:
        return _counted(form, replies[0], target, planned.degraded)

    return UnaryAttempt(
        target=target,
        wires=(wire,),
        decode=decode,
        dialect=row.dialect,
        degraded=planned.degraded,
        fallback=lambda failure: _without_endpoint(request, target, failure),
    )


def _counted(form: CountForm, reply: WholeReply, target: Target, degraded: tuple[Degradation, ...]) -> TokenCount:
    fields = reply.fields()
    return TokenCount(
        input_tokens=form.decode_reply(fields),
        provider=target.provider.id,
        model=target.model,
        raw=fields,
        degraded=degraded,
    )


def _without_endpoint(request: Request, target: Target, failure: BardoError) -> UnaryAttempt[TokenCount] | None:
    if not isinstance(failure, UpstreamRefused) or failure.status not in _NO_ENDPOINT:
        return None
    return _estimated(request, target, f"{target.provider.id} answered with status {failure.status}")


def _estimated(request: Request, target: Target, why: str) -> UnaryAttempt[TokenCount]:
    """Return an attempt without requests: bardo knows the answer as well as anybody it could ask."""
    count = estimate_request(request)
    degraded = (Degradation("input_tokens", sent=count, why=f"estimated from the text: {why}"),)
    result = TokenCount(
        input_tokens=count, approx=True, provider=target.provider.id, model=target.model, degraded=degraded
    )
    return UnaryAttempt(
        target=target, wires=(), decode=lambda _: result, dialect=target.provider.row.dialect, degraded=degraded
    )


def estimate_request(request: Request, count_text: Callable[[str], int] = estimate_tokens) -> int:
    """Estimate the input tokens of a request: its blocks, its tools, and four for each message. `count_text` counts those of a text."""
    count = 0
    for message in request.messages:
        count += MESSAGE_TOKENS
        for block in message.blocks:
            count += count_text(block.text) if type(block) is TextBlock else block_tokens(block, count_text)
    for tool in request.tools:
        count += count_text(f"{tool.name}{tool.description}{tool.schema}")
    return count


_MOST_KEPT = 4096
_LATEST = 0.25
"""The share of the latest count in a model's correction."""
_ENOUGH_TOKENS = 1_000
"""The difference in a shorter prompt counts as that of one of so many tokens: it is mostly what a provider adds to each prompt, such as
the template of a chat, and says nothing of a long one."""
_LEAST, _MOST = 0.2, 5.0
"""What a correction may be. A count outside is no count of this prompt: a provider that adds its own, or counts none of what was cached."""
CountExactly = Callable[[Request], int | None]


class ExactCounters(Protocol):
    """Tokenizers that an operator has: returns what counts for a model, or None if none does."""

    def __call__(self, model: str) -> CountExactly | None: ...


class PromptEstimates:
    """Estimates from the text, corrected for each caller and model by what its provider counted for earlier prompts.

    `exact` finds tokenizers, whose counts go before estimates, or None if the operator has none.

    Counts of one caller's prompts correct the estimates of that caller alone: a prompt can be made so that its count is like no other's.
    """

    def __init__(self) -> None:
        self._corrections: dict[tuple[str, str, str], float] = {}
        self.exact_counters: ExactCounters | None = None
        self.learned = 0
        """How many counts were taken."""

    def estimate(self, request: Request, target: Target, tenant: str = "") -> int:
        """Return about how many tokens a tenant's prompt has for a target."""
        exact = self.exact(request, target.model)
        if exact is not None:
            return exact
        return self.corrected(self.measure(request), target.provider.id, target.model, tenant)

    def measure(self, request: Request) -> int:
        """Return about how many tokens the prompt has, for no model in particular."""
        return estimate_request(request)

    def exact(self, request: Request, model: str) -> int | None:
        """Return how many tokens the prompt has by the operator's own tokenizer of a model, or None if there is none."""
        if self.exact_counters is None:
            return None
        count = self.exact_counters(model)
        return None if count is None else count(request)

    def corrected(self, measured: int, provider: str, model: str, tenant: str = "") -> int:
        """Return what a model is likely to count for a tenant's prompt that was measured."""
        return round(measured * self._corrections.get((tenant, provider, model), 1.0))

    def learn(self, estimate: int, counted: int, target: Target, tenant: str = "") -> None:
        """Take what was counted for a tenant's prompt that was estimated for a target."""
        before = self._corrections.get((tenant, target.provider.id, target.model), 1.0)
        self.learn_measured(round(estimate / before), counted, target.provider.id, target.model, tenant)

    def learn_measured(self, measured: int, counted: int, provider: str, model: str, tenant: str = "") -> None:
        """Take what was counted for a prompt that was measured. The model that was longest not counted goes where there are too many."""
        if measured <= 0 or counted <= 0:
            return
        self.learned += 1
        factor = 1 + (counted - measured) / max(measured, _ENOUGH_TOKENS)
        found = min(max(factor, _LEAST), _MOST)
        key = tenant, provider, model
        before = self._corrections.pop(key, None)
        self._corrections[key] = found if before is None else before + _LATEST * (found - before)
        if len(self._corrections) > _MOST_KEPT:
            del self._corrections[next(iter(self._corrections))]

    def corrections(self) -> list[tuple[str, str, str, float]]:
        """Return each correction: its tenant, its provider, its model and the factor."""
        return [(*key, round(factor, 4)) for key, factor in self._corrections.items()]

    def restore(self, corrections: Iterable[tuple[str, str, str, float]]) -> None:
        """Take corrections of an earlier run, for models of which nothing is known yet."""
        for *key, factor in corrections:
            if len(self._corrections) < _MOST_KEPT and _LEAST <= factor <= _MOST:
                self._corrections.setdefault((key[0], key[1], key[2]), factor)
