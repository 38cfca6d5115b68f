"""Where providers take those fields of an inference profile that only some have, from `catalog/data/profile_fields.toml`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import tomli

from bardo.catalog.matching import matches_any


class FieldForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a field is sent where `providers` (ids of rows), `dialects` and `models` (globs of plain ids) fit; an empty list fits all.

    `path` is its place in the body, and `value` what stands there, with `$value` for the profile's value and `$model` for the model's id.
    With `marker` the value is a cache marker of that dialect, and stands behind the system prompt.
    """

    providers: tuple[str, ...] = ()
    dialects: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    path: str = ""
    value: Any = None
    marker: str = ""

    def fits(self, provider: str, dialect: str, model: str) -> bool:
        """Whether the field goes in this form to a model at a provider."""
        here = not self.providers or matches_any(provider, self.providers)
        spoken = not self.dialects or dialect in self.dialects
        return here and spoken and (not self.models or matches_any(model, self.models))

    def written(self, asked: Any, model: str) -> Any:
        """Return the value that is sent for what the profile asks."""
        return _filled(self.value, asked, model)


class ProfileField(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A field of a profile. `hosted` is the tool of hosted_tools.toml that it asks for.

    `implied_at` are the providers that do it without being told. `why` is said where the field cannot be sent.
    """

    name: str
    why: str
    hosted: str = ""
    implied_at: tuple[str, ...] = ()
    form: tuple[FieldForm, ...] = ()

    def form_at(self, provider: str, dialect: str, model: str) -> FieldForm | None:
        """Return how the field goes to a model at a provider, or None if it does not."""
        return next((form for form in self.form if form.fits(provider, dialect, model)), None)


@cache
def profile_fields() -> tuple[ProfileField, ...]:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/profile_fields.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomli.loads(text)["field"], list[ProfileField]))


def _filled(value: Any, asked: Any, model: str) -> Any:
    if isinstance(value, dict):
        return {name: _filled(inner, asked, model) for name, inner in value.items()}
    if isinstance(value, str):
        return asked if value == "$value" else value.replace("$model", model)
    return value
