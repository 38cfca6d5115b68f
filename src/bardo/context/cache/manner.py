"""What a question asks for besides its words: the kind of answer, and in which tense, modality and person."""

from __future__ import annotations

from functools import cache
from typing import Literal

from bardo.context.cache.question import Question

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
