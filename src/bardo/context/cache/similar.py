"""Answer a question with the kept reply to a similar one: candidates by vectors, then a guard, then the budget of errors.

The guard (`compare`) lets one question stand for another only where all that differs between them is known to make no difference.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from functools import cache
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from bardo.context.cache.confidence import false_hit_bound
from bardo.context.cache.entries import identity_of
from bardo.context.cache.question import LONGEST_QUESTION, UNIT, Question, Term, read_question
from bardo.context.cache.similar_lookup import Candidate, CountSimilar, FindSimilar, SimilarLookup
from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import Effect, LayerFacts
from bardo.values.blocks import TextBlock
from bardo.values.request import Message, Request

Kind = Literal["yes or no", "instructions", "fact", "command"]
Manner = Literal["kind", "request", "modality", "time", "person"]


def manner_differs(one: Question, other: Question) -> Manner | None:
    """Compare what kind of answer is asked for, and in which tense, modality and person."""
    row = one.language.row
    if not _same_kind(kind_of(one), kind_of(other)):
        return "kind"
    if _apart(one, other, row.inform, row.produce):
        return "request"
    if _apart(one, other, row.possibility, row.obligation):
        return "modality"
    if _apart(one, other, row.present, row.past):
        return "time"
    return "person" if _speaks_of_other(one) != _speaks_of_other(other) else None


def _apart(one: Question, other: Question, these: str, those: str) -> bool:
    """Return whether one question has words of the one list only, and the other of the other only."""
    first, second = words_of(these), words_of(those)
    sides = [(bool(first & set(question.words)), bool(second & set(question.words))) for question in (one, other)]
    return sides in ([(True, False), (False, True)], [(False, True), (True, False)])


def _same_kind(one: Kind, other: Kind) -> bool:
    """Return whether two kinds of answers may be the same: a command may ask for anything but yes or no."""
    return one == other or ("command" in (one, other) and "yes or no" not in (one, other))


def kind_of(question: Question) -> Kind:
    """Return what kind of answer a question asks for."""
    row, words = question.language.row, question.words
    yes_no, whether, open_words = (words_of(line) for line in (row.yes_no, row.asks_whether, row.open_question))
    if not words_of(row.manner).isdisjoint(words) or _asks_how_to(question):
        return "instructions"
    for place, word in enumerate(words):
        if word in open_words:
            return "fact"
        if place == 0 and word in yes_no and words[1:2] != ("you",):
            return "yes or no"
        if word in whether and place > 0:
            return "yes or no"
    return "command"


def _asks_how_to(question: Question) -> bool:
    """Return whether a question asks how one does something: `how do I`, `how to`, and a lone `how` at its end."""
    row, words = question.language.row, question.words
    auxiliaries, askers = words_of(row.auxiliaries), words_of(row.asker_words)
    for place, word in enumerate(words):
        if word == "how":
            after = words[place + 1 : place + 3]
            if not after or after[0] == "to" or (len(after) == 2 and after[0] in auxiliaries and after[1] in askers):
                return True
    return False


def _speaks_of_other(question: Question) -> bool:
    """Return whether a question speaks of the one who answers: not where it only asks them to do something, nor in `how do you`."""
    row, words = question.language.row, question.words
    others, auxiliaries = words_of(row.other_words), words_of(row.auxiliaries)
    for place, word in enumerate(words):
        if word in others:
            before = words[max(0, place - 2) : place]
            asked = len(before) > 0 and before[-1] in auxiliaries and (place == 1 or before[0] == "how")
            if not asked:
                return True
    return False


@cache
def words_of(line: str) -> frozenset[str]:
    """Return the words of a row's line: there are as many lines as rows have."""
    return frozenset(line.split())


Pairs = list[tuple[Term, Term]]


def changed_places(one: Question, other: Question, pairs: Pairs) -> bool:
    """Return whether two words stand on either side of a third in one question, and the other way round in the other."""
    for left, right in _pivots(one, other, pairs):
        before = {b.place for a, b in pairs if a.place < left}
        behind = {b.place for a, b in pairs if a.place > left}
        swapped = any(place > right for place in before) and any(place < right for place in behind)
        same_order = any(place < right for place in before) and any(place > right for place in behind)
        passive = _is_passive(one, left) != _is_passive(other, right)
        if same_order if passive else swapped:
            return True
    if _places_exchanged(one, other, pairs):
        return True
    roles = [(_role(one, left), _role(other, right)) for left, right in pairs]
    return any(_role_moved(line, roles) for line in one.language.row.roles) or any(
        _role_differs(one, a, other, b) for a, b in pairs
    )


def _places_exchanged(one: Question, other: Question, pairs: Pairs) -> bool:
    """Return whether who does something and to whom it is done have changed places, which the words themselves do not show."""
    alone = [(left, right) for left, right in pairs if not (_is_joined(one, left) or _is_joined(other, right))]
    moved = [(a, b) for a in alone for b in alone if a[0].place < b[0].place and a[1].place > b[1].place]
    if not moved:
        return False
    if _asks_for_subject(one) != _asks_for_subject(other) and _asks_for_object(one) != _asks_for_object(other):
        return True
    if _acts_on_asker(one) != _acts_on_asker(other):
        return True
    return any(_surroundings_exchanged(one, other, a, b) for a, b in moved)


def _surroundings_exchanged(one: Question, other: Question, a: tuple[Term, Term], b: tuple[Term, Term]) -> bool:
    """Return whether each of two words stands where the other stood: `what did A say about B`, with A and B exchanged.

    What moves as a whole keeps the word before it: `in CSS` at the beginning or at the end.
    """
    first, second = _before(one, a[0]), _before(one, b[0])
    before_b, before_a = _before(other, b[1]), _before(other, a[1])
    if first == second or before_b != first:
        return False
    # Side by side, each is what stands before the other: `does the mother tell the father`.
    return before_a == second or (second, before_a) == (one.words[a[0].place], other.words[b[1].place])


def _asks_for_subject(question: Question) -> bool:
    """Return whether a question asks who does it: `who teaches`."""
    row, words = question.language.row, question.words
    after = words[1:2]
    return (
        not words_of(row.open_question).isdisjoint(words[:1])
        and any(term.place == 1 for term in question.terms)
        and not words_of(row.auxiliaries).intersection(after)
    )


def _asks_for_object(question: Question) -> bool:
    """Return whether a question asks to whom it is done: `who do the students teach`."""
    row, words = question.language.row, question.words
    return not words_of(row.open_question).isdisjoint(words[:1]) and not words_of(row.auxiliaries).isdisjoint(
        words[1:2]
    )


def _acts_on_asker(question: Question) -> bool:
    """Return whether a word that decides stands before `me`: `may my landlord evict me`."""
    asker, terms = words_of(question.language.row.asker_as_object), {term.place for term in question.terms}
    return any(word in asker and place - 1 in terms for place, word in enumerate(question.words))


def _before(question: Question, term: Term) -> str:
    """Return the word before a term that is no article."""
    place, articles = term.place - 1, words_of(question.language.row.articles)
    while place >= 0 and question.words[place] in articles:
        place -= 1
    return question.words[place] if place >= 0 else ""


def _role_moved(line: str, roles: list[tuple[str, str]]) -> bool:
    """Return whether a role is one word's in one question, and another's in the other."""
    left, right = any(own == line for own, _ in roles), any(other == line for _, other in roles)
    return left and right and (line, line) not in roles


def _is_passive(question: Question, place: int) -> bool:
    """Return whether who does something is named behind it: `attacked by`."""
    return place + 1 < len(question.words) and question.words[place + 1] in words_of(question.language.row.agent)


def _role_differs(one: Question, term: Term, other: Question, same: Term) -> bool:
    left, right = _role(one, term), _role(other, same)
    if left == right:
        return False
    if left and right:
        return True
    source = next(iter(one.language.row.roles), "")
    return (left == source and not _is_joined(other, same)) or (right == source and not _is_joined(one, term))


def _is_joined(question: Question, term: Term) -> bool:
    """Return whether a term stands beside `and` or the like: `between A and B`."""
    beside = question.words[max(0, term.place - 2) : term.place + 2]
    return not words_of(question.language.row.joined).isdisjoint(beside)


def _role(question: Question, term: Term) -> str:
    """Return the words for the role that a term has, as `from` and `to` give it; empty where it has none."""
    language, place = question.language, term.place - 1
    while place > 0 and question.words[place] in language.light and question.words[place] not in language.pivots:
        place -= 1
    word = question.words[place] if place >= 0 else ""
    return next((line for line in language.row.roles if word in line.split()), "")


def _pivots(one: Question, other: Question, pairs: Pairs) -> Iterator[tuple[int, int]]:
    converse = words_of(one.language.row.converse)
    for left, right in pairs:
        # A name is what something is said of, and says nothing of others.
        if (left.text in converse) == (right.text in converse) and not left.exact:
            yield left.place, right.place
    for word in one.language.pivots:
        if one.words.count(word) == other.words.count(word) == 1:
            yield one.words.index(word), other.words.index(word)


Difference = Literal[
    "unread",
    "language",
    "quoted",
    "number",
    "quantity",
    "negation",
    "word",
    "direction",
    "kind",
    "request",
    "modality",
    "time",
    "person",
]
_LEAST_PARTNERS = 2


def difference(one: str, other: str) -> Difference | None:
    """Return why the answer to one question may not answer the other, or None if nothing that matters differs. Symmetric."""
    left, right = read_question(one), read_question(other)
    if left is None or right is None:
        return "unread"
    return compare(left, right)


def compare(one: Question, other: Question) -> Difference | None:
    """Compare two questions that were read.

    The words with a meaning of their own are aligned. Each must have a partner in the other question: the same word in another form, or one
    that may replace it by a row or a relation of words. Numbers, names, quoted text, negations and the order of two words around a third
    must be the same. A word without a partner refuses, whatever it is: there is no list of dangerous words.
    """
    if one.language is not other.language:
        return "language"
    if sorted(one.quoted) != sorted(other.quoted) or (len(one.quoted) > 1 and one.quoted != other.quoted):
        return "quoted"
    if (numbers := _numbers_differ(one, other)) is not None:
        return numbers
    pairs = _aligned(one, other)
    if len(one.negated) != len(other.negated):
        return "negation"
    if pairs is None:
        return "word"
    if not _same_negations(one, other, pairs):
        return "negation"
    if changed_places(one, other, pairs):
        return "direction"
    return manner_differs(one, other)


def _numbers_differ(one: Question, other: Question) -> Difference | None:
    """Numbers must be the same, in the same order unless each counts something else, and count the same."""
    left, right = [number for number, _ in one.quantities], [number for number, _ in other.quantities]
    if sorted(left) != sorted(right):
        return "number"
    if left == right:
        pairs = list(zip(one.quantities, other.quantities, strict=True))
    elif len(set(left)) == len(left):
        quantities = dict(other.quantities)
        pairs = [((number, unit), (number, quantities[number])) for number, unit in one.quantities]
        if sum(not unit or not quantities[number] for number, unit in one.quantities) > 1:
            return "quantity"
    else:
        return "quantity"
    return "quantity" if any(_count_differs(unit, same, one, other) for (_, unit), (_, same) in pairs) else None


def _count_differs(unit: frozenset[str], same: frozenset[str], one: Question, other: Question) -> bool:
    """Return whether a number counts one thing in one question and another in the other.

    A number may stand before a word that it does not count, as in `France's 2019 population`, so that a difference counts only where one
    of the words is a unit, or is counted by another number.
    """
    if not unit or not same or not unit.isdisjoint(same) or one.language.replace(unit, same):
        return False
    return any(base.startswith(UNIT) for base in unit | same) or _counts(unit, other) or _counts(same, one)


def _counts(unit: frozenset[str], question: Question) -> bool:
    """Return whether a number of a question counts this."""
    return any(not unit.isdisjoint(bases) for _, bases in question.quantities)


def _aligned(one: Question, other: Question) -> Pairs | None:
    """Return each term with its partner, or None if a term has none that must have one."""
    pairs: Pairs = []
    taken: set[int] = set()
    for exactly in (True, False):
        for term in one.terms:
            if any(term is left for left, _ in pairs):
                continue
            partner = _partner(term, [far for far in other.terms if far.place not in taken], exactly, one)
            if partner is not None:
                taken.add(partner.place)
                pairs.append((term, partner))
    paired = {term.place for term, _ in pairs}
    rest = [(term, other, _of(pairs, 0)) for term in one.terms if term.place not in paired]
    rest += [(term, one, _of(pairs, 1)) for term in other.terms if term.place not in taken]
    softly = len(pairs) + len(one.quantities) + len(one.quoted) >= _LEAST_PARTNERS
    kinds = kind_of(one), kind_of(other)
    left_out = set()
    for term, far, partners in rest:
        mine = one if far is other else other
        if softly and not term.exact and _may_be_left_out(term, mine, kinds, partners):
            left_out.add(far is one)
            continue
        # One word may stand for two that stand for each other: `grant access` and `permission`.
        if not any(_may_replace(term, same, one) for same in partners) or _partner(term, far.terms, False, one) is None:
            return None
    if len(left_out) > 1:
        return None
    return pairs


def _may_be_left_out(term: Term, question: Question, kinds: tuple[Kind, Kind], partners: Sequence[Term]) -> bool:
    """Return whether a verb says nothing that the other question does not: `convert` before an amount, `make` before a payment."""
    row, alike = question.language.row, kinds[0] == kinds[1]
    if term.place == 0 and not term.bases.isdisjoint(words_of(row.asking)):
        return True
    if term.place == 0 and alike and kinds[0] == "command" and not term.bases.isdisjoint(words_of(row.acting)):
        return True
    follows = _next(question, term.place)
    facts = {*kinds} <= {"command", "fact"}
    return (alike or facts) and follows in partners and not term.bases.isdisjoint(words_of(row.support))


def _of(pairs: Pairs, side: int) -> list[Term]:
    return [pair[side] for pair in pairs]


def _partner(term: Term, terms: Sequence[Term], exactly: bool, question: Question) -> Term | None:
    if exactly:
        return next((far for far in terms if not term.bases.isdisjoint(far.bases)), None)
    return next((far for far in terms if _may_replace(term, far, question)), None)


def _may_replace(one: Term, other: Term, question: Question) -> bool:
    if one.exact or other.exact:
        return False
    language, left, right = question.language, one.bases | {one.text}, other.bases | {other.text}
    return language.replace(left, right) or language.replace(right, left)


def _same_negations(one: Question, other: Question, pairs: Pairs) -> bool:
    """Two negations are the same where the words after them are partners."""
    partners = {left.place: right.place for left, right in pairs}
    for place, same in zip(one.negated, other.negated, strict=True):
        after, behind = _next(one, place), _next(other, same)
        if (after is None) != (behind is None) or (
            after is not None and behind is not None and partners.get(after.place) != behind.place
        ):
            return False
    return True


def _next(question: Question, place: int) -> Term | None:
    return next((term for term in question.terms if term.place > place), None)


Mode = Literal["shadow", "serve"]
FLOORS = {"onnx": 0.70, "provider": 0.70, "static": 0.55}
"""The least cosine similarity of a candidate, by the tier of the embedding, where the operator sets none."""


class SimilarRules(msgspec.Struct, frozen=True, kw_only=True):
    """The operator's rules for similar questions.

    `serve`: a similar question's reply is given where errors stay within `max_false_hit`; `shadow`: it is only compared. `least_cosine`
    None: the floor of the embedding's tier. Of the replies that could be given, `recheck_share` are asked for anew, and compared.
    """

    mode: Mode = "shadow"
    max_false_hit: float = 0.01
    least_cosine: float | None = None
    recheck_share: float = 0.05
    most_candidates: int = 8


class SimilarAnswers:
    """Looks for similar questions. Immutable, and shared by all calls.

    Everything but the last question must be equal: the tenant, the models, earlier turns, the settings of the call. A candidate that the
    guard lets through is first compared with the reply that the model gives, and served only where such comparisons say that errors are
    within the operator's budget.
    """

    def __init__(self, rules: SimilarRules) -> None:
        self._rules = rules

    def look(self, request: Request, facts: LayerFacts) -> Generator[Effect, Any, SimilarLookup | None]:
        """Return what may be served and compared, or None if the request has no question that can be compared."""
        text = question_of(request)
        if text is None:
            return None
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
        digest = blake2b(fit.identity + repr(facts.now).encode(), digest_size=8).digest()
        if (int.from_bytes(digest, "big") / 2**64) < self._rules.recheck_share:
            return msgspec.structs.replace(look, against=fit, saw={"similar": "rechecked", **saw})
        return msgspec.structs.replace(look, serve=fit, saw={"similar": "served", **saw})


def question_of(request: Request) -> str | None:
    """Return the text of the last turn, or None if it is none of the user's, or holds more than text, or too much of it."""
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
