"""Read a question as the words that decide what it asks: names, numbers, negations and the words with a meaning of their own.

The reading is of one language. What it does not understand it keeps as it stands, so that two questions differ where it differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from bardo.context.cache.language import Language, language_of

UNIT = "unit "
"""The beginning of the base form of a unit."""
LONGEST_QUESTION = 600
"""The most characters of a question that is compared: a longer one is not answered by a similar one."""

_QUOTED = re.compile(r"\"([^\"]*)\"|“([^“”]*)”|«([^«»]*)»|`([^`]*)`|(?<!\w)'([^']*)'(?!\w)")
_ENDS = "\"'()[]{}.,;:!?¿¡…“”«»‘’"
_NUMBER = re.compile(r"([$€£¥]?)([+-]?\d[\d.,:/-]*)(.*)", re.DOTALL)
_AFTER_NUMBER = re.compile(r"-?[^\W\d_]{2,}(?:-[^\W\d_]{2,})?|[^\W\d_]|[%$€£¥°]|°[CF]|")
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")
_WORD = re.compile(r"[^\W\d_]+(?:_[^\W\d_]+)*")
# `What does it do?` asks for more than `What is it?`.
_LAST_VERB = ("do", "does", "done")
_SIGN_WORDS = {"%": "%", "$": "$", "€": "€", "£": "£", "¥": "¥"}


class Term(msgspec.Struct, frozen=True):
    """A word that decides. `bases` are its base forms; `exact`: nothing else may stand for it. `place` is where it stands."""

    text: str
    bases: frozenset[str]
    place: int
    exact: bool = False


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a question. `words` are all its words in lower case, phrases replaced by what they stand for.

    `quantities` are numbers with the word after each. `negated` are the places of negations, and `names` the terms written with a capital.
    """

    language: Language
    words: tuple[str, ...]
    terms: tuple[Term, ...]
    quantities: tuple[tuple[str, frozenset[str]], ...]
    negated: tuple[int, ...]
    quoted: tuple[str, ...]


class _Token(msgspec.Struct, frozen=True):
    text: str
    number: bool = False
    name: bool = False
    odd: bool = False


def read_question(text: str) -> Question | None:
    """Read a question; None for one that is too long, has no words or is in no language that is known."""
    if not text.strip() or len(text) > LONGEST_QUESTION or "```" in text:
        return None
    quoted: list[str] = []

    def aside(match: re.Match[str]) -> str:
        quoted.append(next(part for part in match.groups() if part is not None))
        return " \x00 "

    plain = _QUOTED.sub(aside, text.replace("’", "'"))
    tokens = list(_tokens(plain))
    language = language_of(token.text for token in tokens)
    if language is None:
        return None
    return _question(_numbers(_phrases(tokens, language), language), tuple(quoted), language)


def _tokens(text: str) -> Iterator[_Token]:
    starts = True
    for chunk in text.split():
        if chunk == "\x00":
            yield _Token("\x00", odd=True)
            starts = False
            continue
        bare = chunk.strip(_ENDS)
        if not bare:
            if any(sign not in _ENDS for sign in chunk):
                yield _Token(chunk, odd=True)
            continue
        yield from _parts(bare, starts)
        starts = chunk[-1] in ".!?"


def _parts(bare: str, starts: bool) -> Iterator[_Token]:
    number = _NUMBER.fullmatch(bare)
    if number is not None:
        yield from _number_parts(*number.groups())
        return
    word = bare[:-2] if bare[-2:].lower() == "'s" and bare.lower() not in ("what's", "it's", "that's") else bare
    pieces = word.split("-") if all(_WORD.fullmatch(piece) for piece in word.split("-")) else [word]
    for piece in pieces:
        odd = not _WORD.fullmatch(piece.replace("'", ""))
        named = any(sign.isupper() for sign in piece) and (not starts or any(sign.isupper() for sign in piece[1:]))
        yield _Token(piece if odd else piece.lower(), name=named and not odd and len(piece) > 1, odd=odd)
        starts = False


def _number_parts(currency: str, digits: str, rest: str) -> Iterator[_Token]:
    core = digits.rstrip(".,:/-")
    rest = digits[len(core) :] + rest
    if not _AFTER_NUMBER.fullmatch(rest):
        yield _Token(currency + core + rest, odd=True)
        return
    rest = rest.lstrip("-")
    if _THOUSANDS.fullmatch(core.lstrip("+-")):
        core = core.replace(",", "")
    if re.fullmatch(r"[+-]?\d+\.\d+", core):
        core = core.rstrip("0").rstrip(".")
    if rest.lower() in ("st", "nd", "rd", "th"):
        core, rest = core + ".", ""
    yield _Token(core, number=True)
    if currency:
        yield _Token(currency)
    if rest:
        plain = rest.strip(_ENDS).lower() if any(sign.isalpha() for sign in rest) else rest
        yield _Token(plain or rest, odd=not (_WORD.fullmatch(plain) or plain in _SIGN_WORDS))


def _phrases(tokens: Sequence[_Token], language: Language) -> Iterator[_Token]:
    """Give the tokens with phrases replaced by what they stand for, and verbs joined with the particle after them."""
    texts = [token.text for token in tokens]
    place = 0
    while place < len(tokens):
        token = tokens[place]
        for phrase, meaning in language.phrases.get(token.text, ()):
            if tuple(texts[place : place + len(phrase)]) == phrase:
                yield from (_Token(word) for word in meaning)
                place += len(phrase)
                break
        else:
            joined = _with_particle(texts, place, language) if not token.odd and not token.number else None
            yield token if joined is None else _Token(joined)
            place += 1 if joined is None else 2


def _with_particle(texts: Sequence[str], place: int, language: Language) -> str | None:
    if place + 1 >= len(texts) or texts[place + 1] not in language.particles or texts[place] in language.light:
        return None
    particle = texts[place + 1]
    verbs = (f"{base}_{particle}" for base in sorted(language.bases(texts[place])))
    relations = () if language.relations is None else language.relations
    return next((verb for verb in verbs if verb in language.groups or verb in relations), None)


def _numbers(tokens: Iterable[_Token], language: Language) -> list[_Token]:
    """Return the tokens with number words as figures: `twenty five` is 25, `two hundred` is 200."""
    parts: list[_Token] = []
    for token in tokens:
        figure = None if token.odd or token.number else language.numbers.get(token.text)
        if figure is None:
            parts.append(token)
            continue
        before = parts[-1].text if parts and parts[-1].number else ""
        joined = _joined(before, figure)
        if joined is None:
            parts.append(_Token(figure, number=True))
        else:
            parts[-1] = _Token(joined, number=True)
    return parts


def _joined(before: str, figure: str) -> str | None:
    if not before.isdigit() or not figure.rstrip(".").isdigit():
        return None
    value, amount = int(before), int(figure.rstrip("."))
    if amount in (100, 1000, 10**6, 10**9) and len(before) < 12:
        return str(value * amount)
    ordinal = "." if figure.endswith(".") else ""
    if (20 <= value <= 90 and value % 10 == 0 and amount < 10) or (value % 100 == 0 and value > 0 and amount < 100):
        return f"{value + amount}{ordinal}"
    return None


def _question(tokens: Sequence[_Token], quoted: tuple[str, ...], language: Language) -> Question:
    terms, quantities, negated = [], [], []
    weak = frozenset(language.row.weak_particles.split())
    amounts, counted = language.row.amounts.split(), language.row.after_number.split()
    calculates = sum(token.number for token in tokens) > 1 or sum(_is_unit(token, language) for token in tokens) > 1
    for place, token in enumerate(tokens):
        text = token.text
        if token.number:
            after = tokens[place + 1] if place + 1 < len(tokens) else None
            quantities.append((text, _unit(after, language)))
        elif text in language.negation or text.endswith("n't"):
            negated.append(place)
        elif (text in amounts and calculates) or (text in counted and place > 0 and tokens[place - 1].number):
            continue
        elif token.odd or token.name or text not in language.light or (place + 1 == len(tokens) and text in _LAST_VERB):
            terms.append(_term(token, place, language, weak))
    return Question(
        language=language,
        words=tuple(token.text for token in tokens),
        terms=tuple(terms),
        quantities=tuple(quantities),
        negated=tuple(negated),
        quoted=quoted,
    )


def _is_unit(token: _Token, language: Language) -> bool:
    return not token.number and not language.bases(token.text).isdisjoint(language.units)


def _unit(token: _Token | None, language: Language) -> frozenset[str]:
    """Return the base forms of the word that a number counts, or none if there is no such word."""
    if (
        token is None
        or token.number
        or (not token.name and token.text in language.light)
        or token.text in language.pivots
    ):
        return frozenset()
    return _term(token, 0, language, frozenset()).bases


def _term(token: _Token, place: int, language: Language, weak: frozenset[str]) -> Term:
    text = token.text
    if token.odd:
        return Term(text, frozenset((text,)), place, exact=True)
    for base in (text, *sorted(language.bases(text))):
        if base in language.units:
            return Term(text, frozenset((UNIT + language.units[base],)), place, exact=True)
    bases = language.bases(text)
    verb, _, particle = text.partition("_")
    if particle in weak:
        bases |= {verb}
    return Term(text, bases, place, exact=token.name or not bases.isdisjoint(language.exact))
