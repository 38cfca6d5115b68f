"""One request's life as a generator of attempts.

Whoever runs it sends each attempt and answers with what became of it; the generator decides whether there is another. It knows no
socket, no clock and no secret, so every path through it is tested with plain values.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from bardo.engine.knowledge import BUILTIN, Knowledge, Lesson, RefusedForm
from bardo.engine.planning import Attempt, Draft
from bardo.engine.route import Target
from bardo.engine.typed.plan import refused_for_good, refused_forms
from bardo.reasoning.replay import NOTHING, Recalled
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, Unsupported, UpstreamRefused
from bardo.values.request import Request

Exchange = Generator[Attempt | Lesson, BardoError | None, None]
"""Yields attempts, each to be answered with its error or None; and between them what a refusal taught, to be kept."""


def attempts(
    request: Request,
    targets: Sequence[Target],
    *,
    knowledge: Knowledge = BUILTIN,
    recalled: Recalled = NOTHING,
    may_forward: bool = True,
) -> Exchange:
    """Yield one attempt for each target until one is answered with None, or with an error another provider cannot mend.

    `recalled` is what is known of the replies in the request's history.
    """
    failed: tuple[tuple[str, str], ...] = ()
    for target in targets:
        own = target.provider.id
        lost = tuple(Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed)
        draft = Draft(request, target, knowledge, may_forward=may_forward, degraded=lost)
        try:
            draft.restore_history(recalled)
            draft.settle()
            attempt = draft.freeze()
        except Unsupported as problem:
            if target is targets[-1]:
                raise
            failed = (*failed, (own, problem.message))
            continue
        failure = yield attempt
        again = (yield from _mended(draft, attempt, failure)) if isinstance(failure, UpstreamRefused) else None
        if again is not None:
            failure = yield again
        if failure is None or not failure.retryable:
            return
        failed = (*failed, (own, failure.message))


def _mended(
    draft: Draft, attempt: Attempt, refusal: UpstreamRefused
) -> Generator[Lesson, BardoError | None, Attempt | None]:
    """Yield what a refusal taught, and return the attempt once more in a form that heeds it; None where it taught nothing."""
    draft.may_forward = attempt.forward
    fact = draft.repair(refusal)
    if fact is not None:
        yield fact
        return draft.freeze()
    forms = frozenset() if draft.answer is None else refused_forms(draft.answer, refusal)
    if not forms:
        return None
    for form in forms if refused_for_good(refusal) else ():
        yield RefusedForm(attempt.target, form)
    draft.settle(forms)
    return draft.freeze()


def first_attempt(
    request: Request, targets: Sequence[Target], *, knowledge: Knowledge = BUILTIN, may_forward: bool = True
) -> Attempt:
    """Return the attempt that an exchange begins with. Raises what planning raises."""
    first = next(attempts(request, targets, knowledge=knowledge, may_forward=may_forward))
    assert isinstance(first, Attempt)
    return first
