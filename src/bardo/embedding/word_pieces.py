"""Split text into the word pieces of BERT's uncased vocabulary.

The rule is that of BERT's tokenizer (google-research/bert, tokenization.py): accents and case are dropped, punctuation stands alone, each
word becomes the longest pieces of the vocabulary from its beginning on. A word that cannot be so cut is left out.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Iterable, Iterator, Mapping

LONGEST_WORD = 100
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_ASCII_WORDS = re.compile(r"[a-z0-9]+|[!-/:-@\[-`{-~]")
_ASCII_SPACE = re.compile(r"[ \t\n\r]+")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_IDEOGRAPHS = (
    (0x4E00, 0x9FFF),
    (0x3400, 0x4DBF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0xF900, 0xFAFF),
    (0x2F800, 0x2FA1F),
)


def word_pieces(text: str, vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of the pieces of `text`, in order. Linear in the length of the text."""
    return pieces_of_words(words(text), vocabulary)


def pieces_of_words(lower: Iterable[str], vocabulary: Mapping[str, int]) -> list[int]:
    """Return the numbers of the pieces of words that `words` returned, in order."""
    found: list[int] = []
    for word in lower:
        number = vocabulary.get(word)
        if number is None:
            found += (vocabulary[piece] for piece in _pieces(word, vocabulary))
        else:
            found.append(number)
    return found


def words(text: str) -> list[str]:
    """Return the words and the signs of punctuation of a text, in lower case and without accents."""
    clean = _CONTROL.sub("", text) if _CONTROL.search(text) else text
    if clean.isascii():
        return _ASCII_WORDS.findall(clean.lower())
    found: list[str] = []
    for part in _ASCII_SPACE.split(clean):
        found += _ASCII_WORDS.findall(part.lower()) if part.isascii() else _other_words(part)
    return found


def _other_words(text: str) -> list[str]:
    spaced = "".join(f" {sign} " if _is_ideograph(sign) else sign for sign in _without_control(text))
    plain = "".join(sign for sign in unicodedata.normalize("NFD", spaced) if unicodedata.category(sign) != "Mn")
    return [part for word in plain.lower().split() for part in _at_punctuation(word)]


def _without_control(text: str) -> str:
    return "".join(sign for sign in text if unicodedata.category(sign)[0] != "C")


def _is_ideograph(sign: str) -> bool:
    return sign >= "\u3400" and any(low <= ord(sign) <= high for low, high in _IDEOGRAPHS)


def _at_punctuation(word: str) -> Iterator[str]:
    begin = 0
    for place, sign in enumerate(word):
        if sign in _PUNCTUATION or unicodedata.category(sign)[0] == "P":
            if begin < place:
                yield word[begin:place]
            yield sign
            begin = place + 1
    if begin < len(word):
        yield word[begin:]


def _pieces(word: str, vocabulary: Container[str]) -> list[str]:
    if len(word) > LONGEST_WORD:
        return []
    found: list[str] = []
    begin = 0
    while begin < len(word):
        mark = "##" if begin else ""
        ends = range(len(word), begin, -1)
        end = next((end for end in ends if mark + word[begin:end] in vocabulary), None)
        if end is None:
            return []
        found.append(mark + word[begin:end])
        begin = end
    return found
