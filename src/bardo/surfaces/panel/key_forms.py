"""The forms about keys of clients, read: what a key is called, what it may do, and until when."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account, checked_globs, expiry_of, nanos_of_usd
from bardo.surfaces.render.client_keys import time_text
from bardo.values.cost import exact_dollars
from bardo.values.errors import InvalidRequest

COUNTS = ("requests_per_minute", "tokens_per_minute", "concurrency")
MONEY = ("usd_per_day", "usd_per_month")
LIMIT_WORDS = {
    "requests_per_minute": "Calls per minute",
    "tokens_per_minute": "Tokens per minute",
    "concurrency": "Calls at a time",
    "usd_per_day": "US dollars per day (UTC)",
    "usd_per_month": "US dollars per month (UTC)",
}
_LONGEST = {"name": 200, "tenant": 200, "models": 10_000, "tags": 2_000}
_MOST_DIGITS = 15
_BETWEEN = re.compile(r"[,\s]+")
Read = TypeVar("Read")


def account_of_form(form: Mapping[str, str], now: float) -> Account:
    """Return the account that a form describes, without an id. Raises InvalidRequest that names the field."""
    name = _text(form, "name")
    if not name:
        raise InvalidRequest("a key needs a name", hint="write whom it is for", param="name")
    return Account(
        id="",
        name=name,
        tenant=_text(form, "tenant"),
        tags=_words(form, "tags"),
        models=_parse_field("models", lambda: checked_globs(_words(form, "models"))),
        limits=KeyLimits(**limits_of_form(form)),
        created=now,
        expires=expiry_of_form(form, now),
        operator=form.get("operator") == "yes",
    )


def limits_of_form(form: Mapping[str, str]) -> dict[str, int | None]:
    """Return every limit of a form; one that is left empty is none."""
    counts = {name: _count(form, name) for name in COUNTS}
    money = {name: _money(form, name) for name in MONEY}
    return {**counts, **money}


def fields_of_form(form: Mapping[str, str], now: float) -> dict[str, Any]:
    """Return what else of a key can be changed later: the models that it may ask, and when it ends."""
    models = _parse_field("models", lambda: checked_globs(_words(form, "models")))
    return {"models": models, "expires": expiry_of_form(form, now)}


def expiry_of_form(form: Mapping[str, str], now: float) -> float | None:
    """Return when a key ends, by `90d`, `12h` or a day; None where nothing is said."""
    text = form.get("expires", "").strip()
    return _parse_field("expires", lambda: expiry_of(text, now)) if text else None


def form_of_account(account: Account) -> dict[str, str]:
    """Return the fields of the form that mean what a key may do now."""
    limits: dict[str, str] = {
        name: "" if value is None else exact_dollars(value) if name in MONEY else str(value)
        for name, value in account.limits.named()
    }
    return {**limits, "models": "\n".join(account.models), "expires": time_text(account.expires) or ""}


def _text(form: Mapping[str, str], name: str) -> str:
    text = form.get(name, "").strip()
    if len(text) > _LONGEST[name]:
        raise InvalidRequest(f"this is longer than {_LONGEST[name]:,} characters", hint="make it shorter", param=name)
    return text


def _words(form: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word for word in _BETWEEN.split(_text(form, name)) if word))


def _count(form: Mapping[str, str], name: str) -> int | None:
    text = form.get(name, "").strip().replace(",", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS and int(text) > 0):
        raise InvalidRequest(f"{text[:40]!r} is no number from 1", hint="leave it empty for no limit", param=name)
    return int(text)


def _money(form: Mapping[str, str], name: str) -> int | None:
    text = form.get(name, "").strip().removeprefix("$").replace(",", "")
    return _parse_field(name, lambda: nanos_of_usd(text)) if text else None


def _parse_field(name: str, read: Callable[[], Read]) -> Read:
    """Return what `read` does; its error names the field."""
    try:
        return read()
    except InvalidRequest as problem:
        raise InvalidRequest(problem.message, hint=problem.hint, param=name) from problem
