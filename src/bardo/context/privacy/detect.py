"""Find personal data in texts: by patterns with their checks, by scanners, and in long texts piece by piece."""

from __future__ import annotations

import importlib
import re
import unicodedata
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import msgspec

from bardo.catalog.layer_rows import PiiEntity, PiiPattern, iban_rows, phone_regions, pii_entities, top_level_domains
from bardo.context.privacy import checks
from bardo.context.privacy.checks import Check, compact, iban, ip_address, mac_address
from bardo.context.privacy.patterns import AnywherePatterns, PatternTable, changed_in_parts, matches_in_parts
from bardo.values.errors import ConfigError

Found = tuple[int, int, float]
"""Where a value begins and ends, and how likely it is one."""

_MOST_LOCAL = 64  # RFC 5321, section 4.5.3.1.1
_LOCAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.!#$%&'*+-/=?^_`{|}~")
_DOMAIN = re.compile(r"(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}(?:xn--[a-zA-Z0-9-]{2,59}|[^\W\d_]{2,24})(?![\w])")
_PICTURES = ("png", "jpg", "jpeg", "gif", "svg", "webp")
_SCHEME = re.compile(r"(?:https?|ftp|wss?)://", re.IGNORECASE)
_HOST = re.compile(
    r"(?:[^\s/@:\"'<>]{1,64}(?::[^\s/@:\"'<>]{0,64})?@)?"
    r"(?:(?:[^\W_](?:[\w-]{0,61}[^\W_])?\.){1,8}[^\W\d_]{2,24}|[0-9]{1,3}(?:\.[0-9]{1,3}){3}|\[[0-9A-Fa-f:.]{2,45}\])(?![\w])"
)
_PATH = re.compile(r"(?::[0-9]{1,5})?(?:[/?#][^\s\"<>`\\]{0,2000})?")
_DOTTED = re.compile(r"(?<![\w@./-])[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}(?![\w@-])")
_AFTER_SENTENCE = ".,;:!?)]}'"
_COLONS = re.compile(r":[0-9A-Fa-f]{0,4}:")
_IPV6 = re.compile(
    r"(?:[0-9A-Fa-f]{0,4}:){2,8}(?:[0-9A-Fa-f]{1,4}|[0-9]{1,3}(?:\.[0-9]{1,3}){3})?"
    r"(?:%[0-9A-Za-z_-]{1,16})?(?:/[0-9]{1,3})?(?![0-9A-Za-z_:]|\.[0-9])"
)
_IBAN = re.compile(r"(?<![0-9A-Za-z_])[A-Za-z]{2}[0-9]{2}(?=[ -]?[0-9A-Za-z]{3})")
_PAIR = re.compile(r"([:-])[0-9A-Fa-f]{2}\1")
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}(?![0-9A-Za-z_:-])")
_HEXADECIMAL = frozenset("0123456789abcdefABCDEF")


def emails(text: str) -> Iterator[Found]:
    """Yield mail addresses: a local part of RFC 5321, and a domain whose last label has no digits."""
    at, read = text.find("@"), 0
    while at >= 0:
        begin = at
        while begin > read and at - begin < _MOST_LOCAL and (text[begin - 1] in _LOCAL or text[begin - 1].isalnum()):
            begin -= 1
        while begin < at and text[begin] in ".'`{|=/!#$%&*?^~+-":
            begin += 1
        match = _DOMAIN.match(text, at + 1) if begin < at and text[at - 1] != "." else None
        if match and not match.group().lower().endswith(_PICTURES):
            yield begin, match.end(), 0.95
        read = match.end() if match else at + 1
        at = text.find("@", read)


def urls(text: str) -> Iterator[Found]:
    """Yield web addresses: with a scheme, or a domain with a known ending."""
    read = 0
    for scheme in matches_in_parts(_SCHEME, text):
        if scheme.start() < read:
            continue
        host = _HOST.match(text, scheme.end())
        if host:
            read = _end_of_path(text, host.end())
            yield scheme.start(), read, 0.6
    for host in matches_in_parts(_DOTTED, text):
        if host.group().rpartition(".")[2].lower() in _endings():
            yield host.start(), _end_of_path(text, host.end()), 0.5


def _end_of_path(text: str, host_end: int) -> int:
    path = _PATH.match(text, host_end)
    end = path.end() if path else host_end
    while end > host_end and text[end - 1] in _AFTER_SENTENCE:
        end -= 1
    return end


@cache
def _endings() -> frozenset[str]:
    return frozenset(top_level_domains())


def ipv6(text: str) -> Iterator[Found]:
    """Yield addresses of IPv6, with a zone or a prefix length. The unspecified address alone is a mark of many languages."""
    read = 0
    for colons in matches_in_parts(_COLONS, text):
        begin = colons.start()
        if begin < read:
            continue
        while begin > colons.start() - 4 and begin > read and text[begin - 1] in _HEXADECIMAL:
            begin -= 1
        if begin and (text[begin - 1].isalnum() or text[begin - 1] in "_:."):
            continue
        match = _IPV6.match(text, begin)
        if match and ip_address(re.sub(r"%[0-9A-Za-z_-]+", "", match.group())):
            read = match.end()
            yield begin, read, 0.1 if match.group().startswith("::") and read - begin == 2 else 0.6


def mac_addresses(text: str) -> Iterator[Found]:
    """Yield addresses of devices in six pairs with one kind of separator. Others have digits first, and are found by a pattern."""
    read = 0
    for pair in matches_in_parts(_PAIR, text):
        start = pair.start() - 2
        if start >= read and (match := _MAC.match(text, start)) and mac_address(match.group()):
            read = match.end()
            if not (start and (text[start - 1].isalnum() or text[start - 1] in "_:-")):
                yield start, read, 0.7


def ibans(text: str) -> Iterator[Found]:
    """Yield account numbers of ISO 13616, in groups or not: country, length and kinds of characters as registered, and the check digits."""
    for beginning in matches_in_parts(_IBAN, text):
        form = _iban_forms().get(beginning.group()[:2].upper())
        whole = form.match(text, beginning.start()) if form else None
        if whole is None:
            continue
        number = compact(whole.group())
        in_one_case = whole.group() in (whole.group().upper(), whole.group().lower())
        if in_one_case and iban(number):
            yield whole.start(), whole.end(), 1.0


@cache
def _iban_forms() -> dict[str, re.Pattern[str]]:
    kinds = {"n": "[0-9]", "a": "[A-Za-z]", "c": "[A-Za-z0-9]"}

    def expression(country: str, form: str) -> re.Pattern[str]:
        each = "".join(f"(?:[ -]?{kinds[kind]}){{{count}}}" for count, kind in re.findall(r"([0-9]{1,3})([nac])", form))
        return re.compile(f"(?i:{country})[0-9]{{2}}{each}(?![0-9A-Za-z_])")

    return {country: expression(country, form) for country, form in iban_rows().items()}


SCANNERS: Mapping[str, Callable[[str], Iterator[Found]]] = {
    "email": emails,
    "url": urls,
    "iban": ibans,
    "ipv6": ipv6,
    "mac": mac_addresses,
}
"""The functions that rows name, except that of phone numbers, which needs a library."""


BEFORE, AFTER = 60, 24
"""So many characters before a value, and after it, a word counts."""
_TOKEN = re.compile(r"[^\W_]+")
_NONE: frozenset[str] = frozenset()


class ContextWords:
    """The words of some entities. A word is found in the plural as well, and one of a script without spaces within others."""

    def __init__(self, entities: Iterable[PiiEntity]) -> None:
        self._by_token: dict[str, dict[str, set[str]]] = {}
        self._anywhere: dict[str, set[str]] = {}
        for entity in entities:
            for word in entity.context:
                lower = word.lower()
                first = _TOKEN.search(lower)
                if first is None or ord(max(lower)) >= 0x0E00:
                    self._anywhere.setdefault(lower, set()).add(entity.name)
                else:
                    self._by_token.setdefault(first.group(), {}).setdefault(lower, set()).add(entity.name)

    def places(self, text: str) -> ContextPlaces:
        """Return where words stand in a text."""
        lower = _lower(text)
        words = [*self._tokens(lower), *self._parts(lower)]
        words.sort(key=lambda word: word[0])
        return ContextPlaces(words)

    def _tokens(self, lower: str) -> Iterator[tuple[int, int, set[str]]]:
        by_token = self._by_token
        for token in _TOKEN.finditer(lower):
            phrases = by_token.get(token.group()) or by_token.get(token.group().removesuffix("s"))
            for phrase, names in phrases.items() if phrases else ():
                end = token.start() + len(phrase)
                if lower.startswith(phrase, token.start()) and not lower[end : end + 2].removeprefix("s")[:1].isalnum():
                    yield token.start(), end, names

    def _parts(self, lower: str) -> Iterator[tuple[int, int, set[str]]]:
        for word, names in self._anywhere.items():
            place = lower.find(word)
            while place >= 0:
                yield place, place + len(word), names
                place = lower.find(word, place + len(word))


class ContextPlaces:
    """Where the words stand in one text."""

    def __init__(self, found: list[tuple[int, int, set[str]]]) -> None:
        self._found = found
        self._starts = [start for start, _, _ in found]
        self._last = (-1, -1)
        self._names = _NONE

    def near(self, start: int, end: int) -> frozenset[str]:
        """Return the entities of which a word stands near a value, and not within it."""
        if not self._found:
            return _NONE
        if (start, end) != self._last:
            first = bisect_left(self._starts, start - BEFORE)
            last = bisect_left(self._starts, end + AFTER)
            around = (word for word in self._found[first:last] if word[1] <= start or word[0] >= end)
            self._last, self._names = (start, end), frozenset(name for _, _, names in around for name in names)
        return self._names


def _lower(text: str) -> str:
    lower = text.lower()
    return (
        lower if len(lower) == len(text) else "".join(char.lower() if len(char.lower()) == 1 else char for char in text)
    )


_RUN = re.compile(
    r"(?<![\w.+-])(?:\+|\(\+?)?[0-9](?:\)?[ .\-/\u00a0]{0,2}\(?\)?[0-9]){6,16}(?:(?: ?x| ?ext\.? ?|#)[0-9]{1,6})?(?![\w])",
    re.ASCII,
)
_EXTENSION = re.compile(r"(?: ?x| ?ext\.? ?|#)[0-9]{1,6}\Z", re.ASCII)
_GAP = re.compile(r"[ \u00a0]")
_NO_DIGIT = re.compile(r"[^0-9]+")
_NO_PHONE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,3}(?:\.[0-9]{1,3}){3}")
Worth = Callable[[int, int, float], bool]
_MOST_CUTS = 2
_LONGEST_NATIONAL = 17
_NO_REGION = "001"
_GROUPED_DIGITS = 10
_KINDS = ("fixed_line", "mobile", "toll_free", "premium_rate", "shared_cost", "voip", "personal_number", "uan")
_INTERNATIONAL, _WRITTEN, _BARE, _BY_LENGTH = 0.9, 0.6, 0.3, 0.4


class PhoneScanner:
    """Finds phone numbers of `regions` (ISO 3166) and with a country code."""

    def __init__(self, regions: Sequence[str]) -> None:
        self._library = _library()
        self._national = _national_plans(self._library, regions) if self._library else None

    def __call__(self, text: str, worth: Worth) -> Iterator[Found]:
        """Yield the numbers that fit their plan. `worth` says of a place and a score whether to look closer.

        The last one or two groups of a run with a country code may belong to something else.
        """
        for run in matches_in_parts(_RUN, text):
            written = run.group()
            if written.startswith(("+", "(+")):
                likely = _INTERNATIONAL
            elif _NO_PHONE.match(written):
                likely = 0.0
            elif written.startswith("00") and written[2:3] not in ("", "0"):
                likely = _INTERNATIONAL
            else:
                grouped = not written.isdigit() and len(_NO_DIGIT.sub("", written)) >= _GROUPED_DIGITS
                likely = _WRITTEN if grouped or written.startswith(("0", "(")) else _BARE
            if not likely or not worth(run.start(), run.end(), likely):
                continue
            gaps = [gap.start() for gap in _GAP.finditer(written)] if likely == _INTERNATIONAL else []
            for end in [len(written), *reversed(gaps[-_MOST_CUTS:])]:
                if score := self._score(written[:end], likely):
                    yield run.start(), run.start() + end, score
                    break

    def _score(self, written: str, likely: float) -> float:
        if self._library is None:
            digits = sum(char.isdigit() for char in written)
            if likely == _INTERNATIONAL:
                return _INTERNATIONAL if 8 <= digits <= 15 else 0.0
            return min(likely, _BY_LENGTH) if 9 <= digits <= 12 else 0.0
        valid = self._international(written) if likely == _INTERNATIONAL else self._in_a_region(written)
        return likely if valid else 0.0

    def _in_a_region(self, written: str) -> bool:
        assert self._national is not None
        return self._national.fullmatch(_NO_DIGIT.sub("", _EXTENSION.sub("", written))) is not None

    def _international(self, written: str) -> bool:
        library = self._library
        assert library is not None
        # Most countries dial 00 for it.
        number = f"+{written[2:]}" if written.startswith("00") else written
        digits = _NO_DIGIT.sub("", _EXTENSION.sub("", number))
        lengths = () if digits.startswith("0") else (1, 2, 3)
        code = next((digits[:length] for length in lengths if int(digits[:length] or 0) in _codes(library)), "")
        plan = _international_plan(library, int(code)) if code else None
        if not code or plan is None or _EXTENSION.search(number):
            return bool(code) and _is_valid(library, number)
        return plan.has(digits[len(code) :])


@lru_cache(maxsize=4096)
def _is_valid(library: Any, number: str) -> bool:
    """Whether the library calls a number valid: it takes a hundred times as long as a plan."""
    try:
        return bool(library.is_valid_number(library.parse(number)))
    except library.NumberParseException:
        return False


class _Plan(msgspec.Struct, frozen=True):
    """The numbers of a country code, as `is_valid_number` of the library tells them: `regions` are its countries, in its order.

    `prefix` is what may stand before a number, and `whole` the numbers from which it is not taken, where that would leave none.
    """

    prefix: re.Pattern[str]
    whole: re.Pattern[str]
    lengths: frozenset[int]
    regions: tuple[_Region, ...]

    def has(self, digits: str) -> bool:
        """Whether digits behind the country code are a number."""
        rest = self.prefix.sub("", digits, count=1)
        keeps = self.whole.fullmatch(digits) and not self.whole.fullmatch(rest)
        number = digits if keeps or not self._may_be_long_enough(rest) else rest
        if not 2 <= len(number) <= _LONGEST_NATIONAL:
            return False
        if len(self.regions) == 1:
            return self.regions[0].numbers.fullmatch(number) is not None
        for region in self.regions:
            if region.leading is None:
                if region.numbers.fullmatch(number):
                    return True
            elif region.leading.match(number):
                return region.numbers.fullmatch(number) is not None
        return False

    def _may_be_long_enough(self, rest: str) -> bool:
        return len(rest) in self.lengths or len(rest) > max(self.lengths)


class _Region(NamedTuple):
    """The numbers of one country, and how they begin where that alone says that they are its own."""

    numbers: re.Pattern[str]
    leading: re.Pattern[str] | None


@cache
def _codes(library: Any) -> frozenset[int]:
    return frozenset(library.COUNTRY_CODE_TO_REGION_CODE)


@cache
def _international_plan(library: Any, code: int) -> _Plan | None:
    """Return the plan of a country code, or None if its numbers are rewritten, so that only the library knows."""
    metadata = library.PhoneMetadata
    regions = library.COUNTRY_CODE_TO_REGION_CODE[code]
    plans = [
        metadata.metadata_for_nongeo_region(code) if region == _NO_REGION else metadata.metadata_for_region(region)
        for region in regions
    ]
    # The library takes the prefix of the first country alone.
    first = plans[0]
    if any(plan is None for plan in plans) or first.national_prefix_transform_rule:
        return None
    return _Plan(
        prefix=re.compile(rf"\A(?:{first.national_prefix_for_parsing or ''})"),
        whole=re.compile(first.general_desc.national_number_pattern),
        lengths=frozenset(first.general_desc.possible_length),
        regions=tuple(
            _Region(_numbers_of(plan), re.compile(plan.leading_digits) if plan.leading_digits else None)
            for plan in plans
        ),
    )


def _numbers_of(plan: Any) -> re.Pattern[str]:
    """Return what fits the numbers of a country of any kind, each of the lengths that its kind has."""
    kinds = [getattr(plan, kind) for kind in (*_KINDS, "pager", "voicemail")]
    every = [_of_lengths(kind) for kind in kinds if kind is not None and kind.national_number_pattern]
    return re.compile(f"(?={_of_lengths(plan.general_desc)}\\Z)(?:{'|'.join(dict.fromkeys(every))})")


def _of_lengths(kind: Any) -> str:
    lengths = "|".join(f"[0-9]{{{length}}}" for length in kind.possible_length)
    return f"(?:(?=(?:{lengths})\\Z)(?:{kind.national_number_pattern}))"


def _national_plans(library: Any, regions: Sequence[str]) -> re.Pattern[str]:
    """Return what fits the digits of a number as it is dialled within one of the regions: made once, it takes a microsecond."""
    plans = []
    for region in dict.fromkeys(regions):
        plan = library.PhoneMetadata.metadata_for_region(region.upper())
        if plan is None:
            continue
        kinds = {getattr(plan, kind).national_number_pattern for kind in _KINDS if getattr(plan, kind) is not None}
        plans.append(f"(?:{plan.national_prefix or ''})?(?:{'|'.join(sorted(filter(None, kinds)))})")
    return re.compile("|".join(plans))


def _library() -> Any:
    """Return `phonenumbers`, or None if it is not installed."""
    try:
        return importlib.import_module("phonenumbers")
    except ImportError:
        return None


DEFAULT_SCORE = 0.5
"""A value with a lower score is left alone, unless the settings say otherwise."""
Scanner = Callable[[str, Worth], Iterator[Found]]
_CHECK_NAMES = (
    "luhn card aba_routing verhoeff mod_11_10 wallet ip_address mac_address uuid "
    "au_abn au_acn au_medicare au_tfn br_cnpj br_cpf cn_id dea in_aadhaar "
    "kr_brn kr_driver kr_rrn kr_rrn_checked ph_tin sg_nric sg_uen "
    "th_id us_npi us_ssn za_id "
    "ch_ahv de_document de_kvnr de_lanr de_pension de_tax_id es_letter fi_hetu "
    "fr_nir it_fiscal_code nl_bsn pl_pesel se_company se_person tr_id uk_nhs uk_plate"
)
CHECKS: Mapping[str, Check] = {name: getattr(checks, name) for name in _CHECK_NAMES.split()}
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
        spans = (
            search.found
            if self._allowed is None
            else [span for span in search.found if not self._allowed(written[span.start : span.end])]
        )
        return sorted(spans, key=lambda span: (span.start, -span.score, -span.end))


class _Search:
    """The values of one text. Words around values are searched for when the first value needs one."""

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
    return changed_in_parts(lambda part: _UNUSUAL.sub(lambda sign: _usual_sign(sign[0]), part), text)


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
    chosen: list[Span] = []
    for span in spans:
        if not chosen or span.start >= chosen[-1].end:
            chosen.append(span)
        elif (span.score, span.end - span.start) > (chosen[-1].score, chosen[-1].end - chosen[-1].start):
            chosen[-1] = span
    return chosen


@lru_cache(maxsize=1)
def usual_detector() -> Detector:
    """Return the detector of all kinds that are looked for unless configured otherwise."""
    return Detector(entity for entity in pii_entities().values() if entity.usual)


def find(text: str) -> list[Span]:
    """Return the personal data in a text, by the rows that come with bardo."""
    return usual_detector().find(text)
