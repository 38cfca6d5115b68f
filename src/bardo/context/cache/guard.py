"""Decide whether the answer to one question may answer another: only where all that differs between them is known to make no difference.

The words with a meaning of their own are aligned. Each must have a partner in the other question: the same word in another form, or one
that may replace it by a row or a relation of words. Numbers, names, quoted text, negations and the order of two words around a third must
be the same. A word without a partner refuses, whatever it is: the guard holds no list of dangerous words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from bardo.context.cache.manner import Kind, kind_of, manner_differs, words_of
from bardo.context.cache.question import UNIT, Question, Term, read_question
from bardo.context.cache.word_order import Pairs, changed_places

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
    """Return why the answer to one question may not answer the other; None where nothing that matters differs. Symmetric."""
    left, right = read_question(one), read_question(other)
    if left is None or right is None:
        return "unread"
    return compare(left, right)


def compare(one: Question, other: Question) -> Difference | None:
    """Compare two questions that were read."""
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
        found = dict(other.quantities)
        pairs = [((number, unit), (number, found[number])) for number, unit in one.quantities]
        if sum(not unit or not found[number] for number, unit in one.quantities) > 1:
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
    """Return each term with its partner; None where a term has none that must have one."""
    pairs: Pairs = []
    taken: set[int] = set()
    for exactly in (True, False):
        for term in one.terms:
            if any(term is found for found, _ in pairs):
                continue
            partner = _partner(term, [far for far in other.terms if far.place not in taken], exactly, one)
            if partner is not None:
                taken.add(partner.place)
                pairs.append((term, partner))
    placed = {term.place for term, _ in pairs}
    rest = [(term, other, _of(pairs, 0)) for term in one.terms if term.place not in placed]
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
