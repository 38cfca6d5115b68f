"""Tools that providers run themselves and that several dialects have, from `catalog/data/hosted_tools.toml`."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any

import msgspec
import tomli

from bardo.catalog.matching import matches_any


class HostedForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The tool as `dialect` has it: an item of its tools whose name fits one of `kinds` (globs), or a `field` of the request.

    `written` is the value sent without settings, `settings` the dotted path of each setting by its name in all dialects, and `beside`
    what goes along with a path. `providers` are ids of the rows (globs) that are known to run it, `models` the models (globs; none: all).
    `alone`: not beside functions, and never as the call that must be made; `required` is what a `field` holds where it must be.
    `switch` is the dotted path in the `field` that turns the tool on, and `off` its value that does not; none: that the field is there.
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
    required: dict[str, Any] = {}
    switch: str = ""
    off: str = ""

    def runs_at(self, provider: str, model: str) -> bool:
        """Whether a provider is known to run the tool for a model."""
        return matches_any(provider, self.providers) and (not self.models or matches_any(model, self.models))


class HostedTool(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One tool, in the form of each dialect that has it. `asked_in` is the dialect in which bardo itself asks for it.

    `usd` is what one use counts as against a budget in money, 0 for a tool without one.
    """

    name: str
    asked_in: str = ""
    usd: float = 0.0
    form: tuple[HostedForm, ...]

    def form_of(self, dialect: str) -> HostedForm | None:
        """Return the form in which clients of a dialect ask for the tool, or None if it does not have it."""
        return next((form for form in self.form if form.dialect == dialect), None)

    def form_at(self, dialect: str, provider: str, model: str) -> HostedForm | None:
        """Return the form in which a provider takes the tool for a model, or None if it is not known to run it."""
        return next((form for form in self.form if form.dialect == dialect and form.runs_at(provider, model)), None)


def hosted_tool(name: str) -> HostedTool:
    """Return the tool of this name. Raises StopIteration where there is none."""
    return next(tool for tool in hosted_tools() if tool.name == name)


@cache
def hosted_tools() -> tuple[HostedTool, ...]:
    """Return the rows that come with bardo."""
    text = files("bardo.catalog").joinpath("data/hosted_tools.toml").read_text(encoding="utf-8")
    return tuple(msgspec.convert(tomli.loads(text)["tool"], list[HostedTool]))
