"""Operations that are answered in one piece: the attempts of a call, as values.

A call for vectors, or for a count of tokens, goes from one provider to the next as a call for a reply does. Whoever runs it sends the
requests of each attempt and answers with what became of them.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from bardo.dialects.shared.dialect import decode_body
from bardo.dialects.shared.json_values import WrongShape
from bardo.planning.failover import moves_on
from bardo.planning.route import Target, target_names
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, MalformedReply, Unsupported
from bardo.values.wire import WireRequest

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class WholeReply:
    """The body of a provider's whole reply, and its headers with names in lower case."""

    body: bytes
    headers: Mapping[str, str]

    def fields(self) -> dict[str, Any]:
        """Return the JSON object of the body. Raises WrongShape."""
        return decode_body(self.body)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnaryAttempt(Generic[Result]):
    """One try at one target.

    `wires` are sent one after the other; where there are none, bardo knows the answer itself. `decode` makes the result of the replies, and
    raises WrongShape for what is none. `dialect` is the one that is spoken, and whose errors come back. `fallback` returns another attempt
    at the same target after an error, or None.
    """

    target: Target
    wires: tuple[WireRequest, ...]
    decode: Callable[[Sequence[WholeReply]], Result]
    dialect: str
    degraded: tuple[Degradation, ...] = ()
    fallback: Callable[[BardoError], UnaryAttempt[Result] | None] = lambda _: None

    def result(self, replies: Sequence[WholeReply]) -> Result:
        """Return what the replies say. Raises MalformedReply."""
        try:
            return self.decode(replies)
        except WrongShape as problem:
            provider = self.target.provider.id
            raise MalformedReply(f"the reply of {provider} is not one: {problem}", provider=provider) from problem


Plan: TypeAlias = Callable[[Target], UnaryAttempt[Result]]
Try: TypeAlias = tuple[UnaryAttempt[Result], tuple[Degradation, ...]]
"""An attempt, and the providers that failed before it."""
Course: TypeAlias = Generator[Try[Result], BardoError | None, None]
"""Yields attempts, to be answered with their errors or None."""


def unary_attempts(targets: Sequence[Target], plan: Plan[Result]) -> Course[Result]:
    """Yield attempts until one is answered with None, or with an error that another provider cannot mend.

    Raises Unsupported where no target can express what is asked.
    """
    failed: tuple[tuple[str, str], ...] = ()
    for target, own in zip(targets, target_names(targets), strict=True):
        lost = tuple(Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed)
        try:
            attempt = plan(target)
        except Unsupported as problem:
            if target is targets[-1]:
                raise
            failed = (*failed, (own, problem.message))
            continue
        failure = yield attempt, lost
        again = None if failure is None else attempt.fallback(failure)
        if again is not None:
            failure = yield again, lost
        if failure is None or not moves_on(failure):
            return
        failed = (*failed, (own, failure.message))
