"""Find personal data in text: rows of patterns with check digits, tried where a value may begin.

A text is read a fixed number of times, however many rows there are. One expression finds the places where a value may begin; at each
of them all patterns are tried by one expression, every one of which reads a bounded way. What a pattern finds is tested by its check,
and is raised by a word beside it. So time is linear in the text, whoever wrote it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from types import ModuleType
from typing import NamedTuple

from bardo.catalog.pii_rows import PiiEntity, PiiPattern, phone_regions, pii_entities
from bardo.context.privacy import checks, national, national_europe
from bardo.context.privacy.checks import Check
from bardo.context.privacy.context_words import ContextPlaces, ContextWords
from bardo.context.privacy.long_texts import changed_in_parts
from bardo.context.privacy.patterns import AnywherePatterns, PatternTable
from bardo.context.privacy.phones import PhoneScanner, Worth
from bardo.context.privacy.scanners import SCANNERS, Found
from bardo.values.errors import ConfigError

DEFAULT_SCORE = 0.5
"""What is less likely than this is left alone, unless it is configured otherwise."""
Scanner = Callable[[str, Worth], Iterator[Found]]
_CHECK_NAMES: Mapping[ModuleType, str] = {
    checks: "luhn card aba_routing verhoeff mod_11_10 wallet ip_address mac_address uuid",
    national: "au_abn au_acn au_medicare au_tfn br_cnpj br_cpf cn_id dea in_aadhaar "
    "kr_brn kr_driver kr_rrn kr_rrn_checked ph_tin sg_nric sg_uen "
    "th_id us_npi us_ssn za_id",
    national_europe: "ch_ahv de_document de_kvnr de_lanr de_pension de_tax_id es_letter fi_hetu "
    "fr_nir it_fiscal_code nl_bsn pl_pesel se_company se_person tr_id uk_nhs uk_plate",
}
CHECKS: Mapping[str, Check] = {
    name: getattr(module, name) for module, names in _CHECK_NAMES.items() for name in names.split()
}
"""The tests of check digits by the names that rows of patterns have for them: each takes the text of a match."""


class Span(NamedTuple):
    """A value in a text: where it begins and ends, what it is, the word for its placeholder, and how likely it is (0 to 1)."""

    start: int
    end: int
    entity: str
    label: str
    score: float


class Detector:
    """Finds values of the kinds given. Never changed once made, and so shared by all calls.

    `least` is the lowest score that counts. `allowed` says of a value whether it may stay. Raises ConfigError for a pattern that is no
    regular expression, and for a check that is none.
    """

    def __init__(
        self,
        entities: Iterable[PiiEntity],
        *,
        least: float = DEFAULT_SCORE,
        regions: Sequence[str] = (),
        allowed: Callable[[str], bool] | None = None,
    ) -> None:
        self._least = least
        self._allowed = allowed
        entities = tuple(entities)
        raised = [entity for entity in entities if entity.context and entity.near >= least]
        self._words = ContextWords(raised)
        self._raised = frozenset(entity.name for entity in raised)
        rows = [
            _tested(entity, pattern)
            for entity in entities
            for pattern in entity.patterns
            if pattern.score >= least or entity.name in self._raised
        ]
        self._patterns = PatternTable([row for row in rows if not row[1].anywhere])
        self._anywhere = AnywherePatterns([row for row in rows if row[1].anywhere])
        self._scanners = [(entity, self._scanner(entity, regions)) for entity in entities if entity.scanner]

    def _scanner(self, entity: PiiEntity, regions: Sequence[str]) -> Scanner:
        if entity.scanner == "phone":
            return PhoneScanner(regions or phone_regions())
        if entity.scanner not in SCANNERS:
            raise ConfigError(f"unknown scanner {entity.scanner!r} of {entity.name}")
        scan = SCANNERS[entity.scanner]
        return lambda text, worth: scan(text)

    def find(self, text: str) -> list[Span]:
        """Return the values in a text in order, none within another: of two that overlap the likelier, and of equal ones the longer."""
        return resolved(self.matches(text))

    def matches(self, text: str) -> list[Span]:
        """Return all that any row finds, ordered by place."""
        written, text = text, in_usual_signs(text)
        search = _Search(text, self._least, self._words, self._raised)
        for entity, scan in self._scanners:
            for start, end, score in scan(
                text, lambda *place, entity=entity: search.score(entity, *place) >= self._least
            ):
                search.add(entity, start, end, score)
        for start, end, entity, pattern in chain(self._patterns.matches(text), self._anywhere.matches(text)):
            if pattern.left and start and text[start - 1] in pattern.left:
                continue
            if not pattern.check or CHECKS[pattern.check](text[start:end]):
                search.add(entity, start, end, pattern.score)
        found = (
            search.found
            if self._allowed is None
            else [one for one in search.found if not self._allowed(written[one.start : one.end])]
        )
        return sorted(found, key=lambda span: (span.start, -span.score, -span.end))


class _Search:
    """What is found in one text. Words around values are looked for with the first value that needs one."""

    def __init__(self, text: str, least: float, words: ContextWords, raised: frozenset[str]) -> None:
        self.found: list[Span] = []
        self._text, self._least, self._words, self._raised = text, least, words, raised
        self._places: ContextPlaces | None = None

    def score(self, entity: PiiEntity, start: int, end: int, score: float) -> float:
        """Return the score of a value with what stands around it."""
        if score >= entity.near or entity.name not in self._raised:
            return score
        if self._places is None:
            self._places = self._words.places(self._text)
        return entity.near if entity.name in self._places.near(start, end) else score

    def add(self, entity: PiiEntity, start: int, end: int, score: float) -> None:
        """Add a value, where it is likely enough."""
        score = self.score(entity, start, end, score)
        if score >= self._least:
            self.found.append(Span(start, end, entity.name, entity.label, score))


def in_usual_signs(text: str) -> str:
    """Return a text with digits of all scripts, full-width signs, dashes and spaces as ASCII has them. No place in it changes."""
    if text.isascii():
        return text
    return changed_in_parts(lambda part: _UNUSUAL.sub(lambda found: _usual_sign(found[0]), part), text)


# Digits, full-width signs, dashes, and spaces that are no line breaks.
_UNUSUAL = re.compile(r"(?![0-9])\d|[\uff01-\uff5e\u2010-\u2015\u2212\u00a0\u2000-\u200a\u202f\u3000]")


@cache
def _usual_sign(sign: str) -> str:
    if sign.isdecimal():
        return str(unicodedata.decimal(sign))
    plain = unicodedata.normalize("NFKC", sign)
    return (
        " " if sign.isspace() else "-" if unicodedata.category(sign) in ("Pd", "Sm") and not plain.isascii() else plain
    )


def _tested(entity: PiiEntity, pattern: PiiPattern) -> tuple[PiiEntity, PiiPattern]:
    if pattern.check and pattern.check not in CHECKS:
        raise ConfigError(
            f"unknown check {pattern.check!r} of {entity.name}", hint=f"one of: {', '.join(sorted(CHECKS))}"
        )
    return entity, pattern


def resolved(spans: Sequence[Span]) -> list[Span]:
    """Return spans of which none overlaps another. They are ordered by place."""
    kept: list[Span] = []
    for span in spans:
        if not kept or span.start >= kept[-1].end:
            kept.append(span)
        elif (span.score, span.end - span.start) > (kept[-1].score, kept[-1].end - kept[-1].start):
            kept[-1] = span
    return kept


@lru_cache(maxsize=1)
def usual_detector() -> Detector:
    """Return the detector of all kinds that are looked for unless configured otherwise."""
    return Detector(entity for entity in pii_entities().values() if entity.usual)


def find(text: str) -> list[Span]:
    """Return the personal data in a text, by the rows that come with bardo."""
    return usual_detector().find(text)
