"""Find phone numbers: written with a country code, or as in one of some regions.

The numbering plans are those of `phonenumbers`, where it is installed. Without it, a number with a country code is known by its length,
and others only by a word beside them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

from bardo.context.privacy.long_texts import matches_in_parts
from bardo.context.privacy.scanners import Found

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
        """Yield what is a number in its plan. `worth` says of a place and a score whether to look closer.

        The last one or two groups of a run with a country code may belong to something else.
        """
        for run in matches_in_parts(_RUN, text):
            written = run.group()
            likely = _likely(written)
            if not likely or not worth(run.start(), run.end(), likely):
                continue
            for end in _ends(written, likely):
                if score := self._score(written[:end], likely):
                    yield run.start(), run.start() + end, score
                    break

    def _score(self, written: str, likely: float) -> float:
        if self._library is None:
            return _by_length(written, likely)
        valid = self._international(written) if likely == _INTERNATIONAL else self._in_a_region(written)
        return likely if valid else 0.0

    def _in_a_region(self, written: str) -> bool:
        assert self._national is not None
        return self._national.fullmatch(_NO_DIGIT.sub("", _EXTENSION.sub("", written))) is not None

    def _international(self, written: str) -> bool:
        library = self._library
        assert library is not None
        number = _with_plus(written)
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


@dataclass(frozen=True, slots=True)
class _Plan:
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
    """Return the plan of a country code; None where its numbers are rewritten, so that only the library knows."""
    metadata = library.PhoneMetadata
    regions = library.COUNTRY_CODE_TO_REGION_CODE[code]
    plans = [
        metadata.metadata_for_nongeo_region(code) if one == _NO_REGION else metadata.metadata_for_region(one)
        for one in regions
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


def _with_plus(written: str) -> str:
    """Return a number with a country code as it is written with a plus: most countries dial 00 for it."""
    return f"+{written[2:]}" if written.startswith("00") else written


def _likely(written: str) -> float:
    if written.startswith(("+", "(+")):
        return _INTERNATIONAL
    if _NO_PHONE.match(written):
        return 0.0
    if written.startswith("00") and written[2:3] not in ("", "0"):
        return _INTERNATIONAL
    grouped = not written.isdigit() and len(_NO_DIGIT.sub("", written)) >= _GROUPED_DIGITS
    return _WRITTEN if grouped or written.startswith(("0", "(")) else _BARE


def _ends(written: str, likely: float) -> list[int]:
    gaps = [gap.start() for gap in _GAP.finditer(written)] if likely == _INTERNATIONAL else []
    return [len(written), *reversed(gaps[-_MOST_CUTS:])]


def _by_length(written: str, likely: float) -> float:
    digits = sum(char.isdigit() for char in written)
    if likely == _INTERNATIONAL:
        return _INTERNATIONAL if 8 <= digits <= 15 else 0.0
    return min(likely, _BY_LENGTH) if 9 <= digits <= 12 else 0.0


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
    """Return `phonenumbers`, or None where it is not installed."""
    try:
        return importlib.import_module("phonenumbers")
    except ImportError:
        return None
