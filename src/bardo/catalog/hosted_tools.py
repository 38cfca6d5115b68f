"""Tools that providers run themselves and that several dialects have, from `catalog/data/hosted_tools.toml`."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Any

import msgspec

from bardo.catalog.matching import matches_any


class HostedForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool as `dialect` has it: an item of its tools whose name fits one of `kinds` (globs), or a `field` of the request.

    `written` is what is sent where nothing is set, `settings` the dotted path of each setting by its name in all dialects, and `beside`
    what goes along with a path. `providers` are ids of the rows (globs) that are known to run it, `models` the models (globs; none: all).
    `alone`: not beside functions, and never as the call that must be made.
    """

    dialect: str
    providers: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    field: str = ""
    written: dict[str, Any] = {}
    settings: dict[str, str] = {}
    beside: dict[str, dict[str, Any]] = {}
    models: tuple[str, ...] = ()
    alone: bool = False

    def runs_at(self, provider: str, model: str) -> bool:
        """Whether a provider is known to run the tool for a model."""
        return matches_any(provider, self.providers) and (not self.models or matches_any(model, self.models))


class HostedTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool, in the form of each dialect that has it."""

    name: str
    form: tuple[HostedForm, ...]

    def form_of(self, dialect: str) -> HostedForm | None:
        """Return the form of a dialect; None where it does not have the tool."""
        return next((form for form in self.form if form.dialect == dialect), None)


@cache
def hosted_tools() -> tuple[HostedTool, ...]:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/hosted_tools.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomllib.loads(text)["tool"], list[HostedTool]))
