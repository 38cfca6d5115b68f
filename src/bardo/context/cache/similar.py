"""Answer a question with the kept reply to a similar one: candidates by vectors, then the guard, then the budget of errors.

Everything but the last question must be equal: the tenant, the models, earlier turns, the settings of the call. Nothing is served that was
not learned to be right: a candidate that the guard lets through is compared with the reply that the model gives, and served only where
such comparisons say that errors are within the operator's budget.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from bardo.context.cache.confidence import false_hit_bound
from bardo.context.cache.guard import compare
from bardo.context.cache.identity import identity_of
from bardo.context.cache.question import LONGEST_QUESTION, Question, read_question
from bardo.context.cache.similar_lookup import Candidate, CountSimilar, FindSimilar, LoadWordTables, SimilarLookup
from bardo.context.embed import Embed, TextVectors
from bardo.context.layer import Effect, LayerFacts
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request

Mode = Literal["shadow", "serve"]
FLOORS = {"onnx": 0.70, "provider": 0.70, "static": 0.55}
"""The least cosine similarity of a candidate, by the tier of the embedding, where the operator sets none."""


class SimilarRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator allows.

    `serve`: a similar question's reply is given where errors stay within `max_false_hit`; `shadow`: it is only compared. `least_cosine`
    None: the floor of the embedding's tier. Of the replies that could be given, `recheck_share` are asked for anew, and compared.
    """

    mode: Mode = "shadow"
    max_false_hit: float = 0.01
    least_cosine: float | None = None
    recheck_share: float = 0.05
    most_candidates: int = 8


class SimilarAnswers:
    """Looks for similar questions. Immutable, and shared by all calls."""

    def __init__(self, rules: SimilarRules) -> None:
        self._rules = rules

    def look(self, request: Request, facts: LayerFacts) -> Generator[Effect, Any, SimilarLookup | None]:
        """Return what may be served and compared; None where the request has no question that can be compared."""
        text = question_of(request)
        if text is None:
            return None
        yield LoadWordTables()
        read = read_question(text)
        if read is None:
            return None
        embedded: TextVectors = yield Embed((text,))
        vector, fingerprint = embedded.vectors[0], embedded.fingerprint
        if not any(vector):
            return None
        scope = scope_of(request, facts, fingerprint)
        least = self._rules.least_cosine
        floor = FLOORS[embedded.tier] if least is None else least
        look = SimilarLookup(fingerprint=fingerprint, scope=scope, vector=vector, question=text)
        candidates: Sequence[Candidate] = yield FindSimilar(
            facts.tenant, scope, fingerprint, vector, floor, self._rules.most_candidates
        )
        decided = self._decide(look, candidates, read, facts)
        if not facts.dry:
            yield CountSimilar(fingerprint, decided.saw["similar"])
        return decided

    def _decide(
        self, look: SimilarLookup, candidates: Sequence[Candidate], question: Question, facts: LayerFacts
    ) -> SimilarLookup:
        fit, why = _first_fit(candidates, question)
        if fit is None:
            saw: dict[str, Any] = {"similar": "refused" if candidates else "nothing", "candidates": len(candidates)}
            if candidates:
                saw |= {"cosine": round(candidates[0].cosine, 3), "guard": why}
            return msgspec.structs.replace(look, saw=saw)
        bound = false_hit_bound(fit.pool, fit.own)
        saw = {"cosine": round(fit.cosine, 3), "bound": round(bound, 4), "compared": fit.pool.total}
        if self._rules.mode == "shadow" or bound > self._rules.max_false_hit:
            return msgspec.structs.replace(look, against=fit, saw={"similar": "shadowed", **saw})
        if _share(fit.identity, facts.now) < self._rules.recheck_share:
            return msgspec.structs.replace(look, against=fit, saw={"similar": "rechecked", **saw})
        return msgspec.structs.replace(look, serve=fit, saw={"similar": "served", **saw})


def question_of(request: Request) -> str | None:
    """Return the text of the last turn; None where it is none of the user's, or holds more than text, or too much of it."""
    last = request.messages[-1] if request.messages else None
    if last is None or last.role != "user" or not all(isinstance(block, TextBlock) for block in last.blocks):
        return None
    return last.text if 0 < len(last.text) <= LONGEST_QUESTION else None


def scope_of(request: Request, facts: LayerFacts, fingerprint: str) -> bytes:
    """Return what must be equal for two questions to be compared: everything but the question. Raises ValueError as `identity_of` does."""
    rest = msgspec.structs.replace(request, messages=(*request.messages[:-1], Message("user", ())))
    return identity_of(rest, "similar", facts.tenant, facts.profile, facts.workload, facts.models, fingerprint)[:16]


def _first_fit(candidates: Sequence[Candidate], question: Question) -> tuple[Candidate | None, str]:
    """Return the most similar entry that the guard lets through, and why it refused the first."""
    why = ""
    for candidate in candidates:
        read = read_question(candidate.question)
        refusal = "unread" if read is None else compare(question, read)
        if refusal is None:
            return candidate, ""
        why = why or refusal
    return None, why


def _share(identity: bytes, now: float) -> float:
    """Return a number from 0 to 1 that differs from call to call, and is the same when a decision is replayed."""
    digest = blake2b(identity + repr(now).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64
