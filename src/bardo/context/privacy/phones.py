"""Find phone numbers: written with a country code, or as in one of some regions.

The numbering plans are those of `phonenumbers`, where it is installed. Without it, a number with a country code is known by its length,
and others only by a word beside them.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
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
        if not _may_be_international(library, _NO_DIGIT.sub("", _EXTENSION.sub("", _with_plus(written)))):
            return False
        try:
            return bool(library.is_valid_number(library.parse(_with_plus(written))))
        except library.NumberParseException:
            return False


def _may_be_international(library: Any, digits: str) -> bool:
    """Whether the digits of a number with a country code can be one in its plan. The library takes twenty times as long to say so."""
    code = next((digits[:length] for length in (1, 2, 3) if int(digits[:length] or 0) in _codes(library)), "")
    if not code:
        return False
    plan = _international_plan(library, int(code))
    national = digits[len(code) :]
    return plan is None or any(
        plan.numbers.fullmatch(one) for one in (national, plan.prefix.sub("", national, count=1))
    )


class _Plan(NamedTuple):
    """The numbers of a country code, and what may stand before them."""

    numbers: re.Pattern[str]
    prefix: re.Pattern[str]


@cache
def _codes(library: Any) -> frozenset[int]:
    return frozenset(library.COUNTRY_CODE_TO_REGION_CODE)


@cache
def _international_plan(library: Any, code: int) -> _Plan | None:
    """Return the plan of a country code; None where its numbers are rewritten, so that only the library knows."""
    metadata = library.PhoneMetadata
    regions = [one for one in library.COUNTRY_CODE_TO_REGION_CODE[code] if one != _NO_REGION]
    plans = [
        *map(metadata.metadata_for_region, regions),
        *([] if regions else [metadata.metadata_for_nongeo_region(code)]),
    ]
    if any(plan is None or plan.national_prefix_transform_rule for plan in plans):
        return None
    numbers = "|".join(f"(?:{plan.general_desc.national_number_pattern})" for plan in plans)
    # The library takes the prefix of the first region alone.
    return _Plan(re.compile(numbers), re.compile(rf"\A(?:{plans[0].national_prefix_for_parsing or ''})"))


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
