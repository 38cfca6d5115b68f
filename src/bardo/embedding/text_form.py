"""Features of a prompt's form: its length, its signs, and words by which kinds of tasks are known.

What a prompt is about says less about which model answers it well than whether it is a word problem, a function to write or a choice of
four answers. Each feature is a plain number, read in one pass over a text of bounded length.
"""

from __future__ import annotations

import math
import re

from bardo.embedding.static_embedding import shortened

_QUESTION_WORD = re.compile(r"(who|what|where|when|which|how|why)\b")
_OPTIONS = re.compile(r"^\s{0,8}\(?A[.):]", re.MULTILINE)
_MARKS = ("$", "\\", "def ", "_", "```", "= ", "(", '"')
_PHRASES = ("how many", "how much", "following")
_CODE_WORDS = ("write a", "function", "python")

FORM_FEATURES = 30


def form_of(prompt: str) -> tuple[float, ...]:
    """Return the `FORM_FEATURES` numbers of a prompt, not scaled. A long prompt counts with its beginning and its end."""
    text = shortened(prompt)
    lower, words = text.lower(), text.split()
    return (*_sizes(prompt, text, words), *_signs(text, words, lower), *_normalized_words(text, words, lower))


def _sizes(prompt: str, text: str, words: list[str]) -> tuple[float, ...]:
    letters = max(1, len(text))
    count = max(1, len(words))
    return (
        math.log1p(len(prompt)),
        math.log1p(len(words) * len(prompt) / letters),
        math.log1p(text.count("\n")),
        sum(map(str.isdigit, text)) / letters,
        sum(map(str.isupper, text)) / letters,
        sum(map(str.isspace, text)) / letters,
        sum(not (sign.isalnum() or sign.isspace()) for sign in text) / letters,
        len(set(words)) / count,
        sum(map(len, words)) / count,
    )


def _signs(text: str, words: list[str], lower: str) -> tuple[float, ...]:
    end = text.rstrip()[-1:]
    count = max(1, len(words))
    ending = (end == "?", bool(end) and end in ".!")
    counts = (text.count(",") / count, text.count(".") / count)
    quotes = '"""' in text or "'''" in text
    return (*map(float, ending), *counts, float(quotes), *(float(mark in text) for mark in _MARKS))


def _normalized_words(text: str, words: list[str], lower: str) -> tuple[float, ...]:
    digits = any(sign.isdigit() for sign in text)
    code = any(word in lower for word in _CODE_WORDS)
    asks = _QUESTION_WORD.match(lower) is not None
    options = _OPTIONS.search(text) is not None
    flags = (options, digits, code, asks, text[:1].isupper(), *(phrase in lower for phrase in _PHRASES))
    return tuple(map(float, flags))
