"""Which refusals are about the way an answer in a schema was asked for: rows of `catalog/data/structured_refusals.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from bardo.structured.modes import Form
from bardo.values.errors import ConfigError


class Refusal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server says where it does not take a form. `together`: what it says of one of the forms holds for all of them."""

    forms: tuple[Form, ...]
    statuses: frozenset[int]
    signs: tuple[str, ...]
    together: bool = False

    def is_about(self, form: Form, status: int, said: str) -> bool:
        """Return whether a refusal is about a form. `said` is in small letters."""
        return form in self.forms and status in self.statuses and any(sign in said for sign in self.signs)


class Lasting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What tells a refusal of a form from one of a single schema."""

    signs: tuple[str, ...]
    unless: tuple[str, ...] = msgspec.field(name="except", default=())


class _Rows(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    refusal: tuple[Refusal, ...]
    lasting: Lasting


@cache
def _rows() -> _Rows:
    text = files("bardo.catalog").joinpath("data/structured_refusals.toml").read_text(encoding="utf-8")
    try:
        return msgspec.convert(tomllib.loads(text), _Rows)
    except msgspec.ValidationError as problem:
        raise ConfigError(f"structured_refusals.toml: {problem}") from problem


def refused_by(form: Form, status: int, said: str) -> frozenset[Form]:
    """Return the forms that a refusal with this status and text is about, where the one that was sent is among them."""
    lowered = said.lower()
    about = [row for row in _rows().refusal if row.is_about(form, status, lowered)]
    return frozenset(one for row in about for one in (row.forms if row.together else (form,)))


def is_lasting(said: str) -> bool:
    """Return whether a refusal is about the form, and not about this one schema: then the next call need not try it."""
    lowered, lasting = said.lower(), _rows().lasting
    return any(sign in lowered for sign in lasting.signs) and not any(sign in lowered for sign in lasting.unless)
