"""A text in sentences, and what of each can be seen without knowing what it means."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bardo.catalog.injection_rows import ProbeVocabulary, injection_rows

LONGEST = 400
"""Characters of a sentence that are looked at."""
LEAST = 8
MOST_SENTENCES = 2_000
"""So many sentences of one text are looked at: of a longer one the first and the last half of them."""
CODE = "<code>"
_BLOCK = re.compile(r"```.{0,20000}?```", re.DOTALL)
_LINES = re.compile(r"[\n\r|]+")
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])|(?<=[。！？])")
_WORDS = re.compile(r"[a-z']+")
_ABOUT_ANSWER = re.compile(r"\b(?:your|the|this|each|every|an) (?:\w+ ){0,2}?(\w+)\b")
_YOUR = re.compile(r"\byour (?:\w+ ){0,2}?(\w+)\b")
_MONEY = re.compile(r"[$€£¥]\s?\d")
_ADDRESS = re.compile(r"https?://|www\.|\S@\S")
_HOW = re.compile(r"\b(?:how (?:do|can|to)|steps to|ways to|best|difference between|example|examples)\b")


def sentences_of(text: str) -> list[str]:
    """Return the sentences of a text, each with a mark in the place of blocks of code, and cut where it is long."""
    found: list[str] = []
    for line in _LINES.split(_BLOCK.sub(f" {CODE} ", text)):
        stripped = line.strip()
        if len(stripped) >= LEAST:
            found += [part[:LONGEST].strip() for part in _END.split(stripped) if len(part) >= LEAST]
    if len(found) > MOST_SENTENCES:
        half = MOST_SENTENCES // 2
        return found[:half] + found[-half:]
    return found


def features(sentence: str) -> tuple[float, ...]:
    """Return the features of a sentence, each from 0 to 1: how it begins, whom it speaks of, and what it names.

    The weights of the shipped probe belong to these features in this order.
    """
    words = injection_rows().probe
    lower = sentence.lower()
    sentence_words = _WORDS.findall(lower)
    if not sentence_words:
        return (0.0,) * len(FEATURES)
    first = _first(sentence_words, words)
    return tuple(map(float, _values(sentence, lower, sentence_words, first, words)))


def _first(sentence_words: list[str], words: ProbeVocabulary) -> int:
    place = 0
    while place < len(sentence_words) - 1 and sentence_words[place] in words.leading:
        place += 1
    return place


def _values(
    sentence: str, lower: str, sentence_words: list[str], place: int, words: ProbeVocabulary
) -> Iterator[float]:
    first, second = sentence_words[place], sentence_words[place + 1] if place + 1 < len(sentence_words) else ""
    known = set(sentence_words)
    about = {one[1] for one in _ABOUT_ANSWER.finditer(lower)}
    of_answer = not about.isdisjoint(words.answers)
    yield first in words.verbs
    yield first in words.questions
    yield "please" in sentence_words[:3]
    yield sentence.rstrip().endswith("?")
    yield of_answer
    yield first in ("can", "could", "would", "will") and second == "you"
    yield first == "how"
    yield first in ("what", "who", "which", "when", "where", "why")
    yield first in ("are", "do", "does", "is", "did", "have")
    yield not known.isdisjoint(words.ours)
    yield not known.isdisjoint(words.mine)
    yield "you" in known
    yield "your" in known and not of_answer
    yield any(letter.isdigit() for letter in sentence)
    yield _MONEY.search(sentence) is not None
    yield _ADDRESS.search(sentence) is not None
    yield CODE in sentence
    yield not known.isdisjoint(words.code)
    yield not known.isdisjoint(words.answers)
    yield min(len(sentence_words), 40) / 40
    yield len(sentence_words) < 4
    yield _HOW.search(lower) is not None
    yield sentence[:1].isupper()
    yield first in words.verbs and of_answer
    yield first in words.declarative
    yield any(name in words.answers for name in _YOUR.findall(lower))
    yield first in words.page


FEATURES = (
    "verb_first", "question_first", "please", "question_mark", "about_answer", "can_you", "how", "what", "are", "we", "i", "you",
    "your_other", "digit", "money", "address", "code_block", "code_word", "answer_word", "length", "short", "how_to", "capital",
    "verb_about_answer", "declarative", "your_answer", "page_verb",
)  # fmt: skip
"""The names of the features of a sentence, in order."""
