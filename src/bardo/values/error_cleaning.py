"""What an error may say to a caller and to the log: no secret, and no more of somebody else's text than a person reads.

Every error that holds text from outside passes here once, where it becomes an error of a reply.
"""

from __future__ import annotations

import math
import re
from email.utils import parsedate_to_datetime
from typing import Any

import msgspec

from bardo.values.errors import BardoError, InvalidRequest, UpstreamRefused
from bardo.values.secrets import NO_SECRETS, Secrets

MAX_MESSAGE = 2_000
"""Characters of an error's message, and of its hint."""
MAX_WORD = 200
"""Characters of a code, a type or the name of a parameter."""
MAX_DETAIL_BYTES = 16_000
"""Of a longer error object nothing is kept but what was read of it."""
MAX_RETRY_SECONDS = 7 * 24 * 3600
"""Who asks to wait longer is not believed."""

_SECONDS = re.compile(r"\s*([0-9]{1,9})(\.[0-9]{1,9})?\s*")
_LONGEST_DATE = 64
_CHAIN = 8


def clean_error(error: BardoError, secrets: Secrets = NO_SECRETS, *, now: float | None = None) -> BardoError:
    """Take secrets and excess out of an error and of what it was raised from, in place. Returns the error.

    `now` is Unix time, by which a date to retry at becomes seconds; without it a date is dropped.
    """
    one: BaseException | None = error
    for _ in range(_CHAIN):
        if isinstance(one, BardoError):
            _clean(one, secrets, now)
        one = None if one is None else one.__cause__ or one.__context__
    return error


def _clean(error: BardoError, secrets: Secrets, now: float | None) -> None:
    error.message = cleaned_text(error.message, secrets, MAX_MESSAGE)
    error.hint = cleaned_text(error.hint, secrets, MAX_MESSAGE)
    error.args = (error.message,)
    if isinstance(error, InvalidRequest) and error.param:
        error.param = cleaned_text(error.param, secrets, MAX_WORD)
    if not isinstance(error, UpstreamRefused):
        return
    error.upstream_code = _clean_text(error.upstream_code, secrets)
    error.upstream_type = _clean_text(error.upstream_type, secrets)
    error.param = _clean_text(error.param, secrets)
    error.retry_after = parse_retry_after(error.retry_after, now)
    error.passed_headers = tuple(one for one in error.passed_headers if secrets.in_text(one[1]) == one[1])
    error.detail = _detail(error.detail, secrets)


def cleaned_text(text: str, secrets: Secrets, longest: int) -> str:
    """Return text without secrets, cut where it is too long."""
    if len(text) <= longest:
        found = secrets.in_text(text)
        return found if len(found) <= longest else found[:longest] + "…"
    margin = secrets.longest + 400
    found = secrets.in_text(text[: 2 * longest + margin])
    # A secret that was cut in two at the end is not found: its beginning goes with the margin.
    kept = found[:-margin] if len(text) > 2 * longest + margin else found
    return kept[:longest] + "…"


def parse_retry_after(value: str | None, now: float | None = None) -> str | None:
    """Return whole seconds to wait, of a number of seconds or an HTTP date; None for anything else, and for what nobody would wait."""
    if not value or len(value) > _LONGEST_DATE or not value.isascii():
        return None
    found = _SECONDS.fullmatch(value)
    seconds = math.ceil(float(value)) if found else _until(value, now)
    return str(seconds) if seconds is not None and 0 <= seconds <= MAX_RETRY_SECONDS else None


def _until(date: str, now: float | None) -> int | None:
    if now is None:
        return None
    try:
        return max(0, math.ceil(parsedate_to_datetime(date).timestamp() - now))
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def _clean_text(word: str | None, secrets: Secrets) -> str | None:
    return None if word is None else cleaned_text(word, secrets, MAX_WORD)


def _detail(detail: Any, secrets: Secrets) -> Any:
    try:
        size = len(msgspec.json.encode(detail))
    except (TypeError, ValueError, RecursionError):
        return None
    return secrets.in_value(detail) if size <= MAX_DETAIL_BYTES else None
