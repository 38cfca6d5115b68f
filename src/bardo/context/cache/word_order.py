"""Whether the words of two questions stand in another order that changes who does what: around a third word, in a role, or exchanged."""

from __future__ import annotations

from collections.abc import Iterator

from bardo.context.cache.manner import words_of
from bardo.context.cache.question import Question, Term

Pairs = list[tuple[Term, Term]]


def changed_places(one: Question, other: Question, pairs: Pairs) -> bool:
    """Return whether two words stand on either side of a third in one question, and the other way round in the other."""
    for left, right in _pivots(one, other, pairs):
        before = {b.place for a, b in pairs if a.place < left}
        behind = {b.place for a, b in pairs if a.place > left}
        swapped = any(place > right for place in before) and any(place < right for place in behind)
        kept = any(place < right for place in before) and any(place > right for place in behind)
        passive = _is_passive(one, left) != _is_passive(other, right)
        if kept if passive else swapped:
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
    left, right = any(one == line for one, _ in roles), any(other == line for _, other in roles)
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
