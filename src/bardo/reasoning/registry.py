"""Which reasoning format a name or a model means: the built-in rows, and the user's before them.

A registry never changes once it is made, so one may be shared by every reply and every thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

import msgspec
import tomli

from bardo.catalog.matching import canonical, fits
from bardo.reasoning.formats import ReasoningFormat
from bardo.values.errors import InvalidRequest

PASSTHROUGH = "passthrough"
DEFAULT_FORMAT = "think"
# Clients choose model ids, so the cache must not grow with them.
REMEMBERED_MODELS = 1024


class UnknownFormat(InvalidRequest, ValueError):
    """No reasoning format has the name that was asked for; `near` holds names that resemble it."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.near = tuple(get_close_matches(canonical(name), list(known), n=3, cutoff=0.5))
        hint = f"did you mean {' or '.join(self.near)}?" if self.near else "bardo.reasoning.formats() lists all"
        super().__init__(f"no reasoning format is named {name!r}", hint=hint)


class FormatChoice(msgspec.Struct, frozen=True):
    """A format and why it was chosen.

    `matched` is the name that was given or the pattern that fitted. `own`: the format is the user's, not built in.
    """

    format: ReasoningFormat
    by: Literal["name", "pattern", "passthrough", "default"]
    matched: str = ""
    own: bool = False

    @property
    def why(self) -> str:
        """The reason in words."""
        match self.by:
            case "name":
                return f"the format {self.matched!r} was named"
            case "pattern":
                return f"its pattern {self.matched!r} fits the model's name"
            case "passthrough":
                return "no format has a pattern that fits the model's name, so the text stays as it is"
            case "default":
                return "neither a format nor a model was named"


class FormatRegistry:
    """Formats in the order their patterns are tried, found by name and by model."""

    def __init__(self, rows: Iterable[ReasoningFormat] = ()) -> None:
        self._rows: dict[str, ReasoningFormat] = {PASSTHROUGH: ReasoningFormat(name=PASSTHROUGH)}
        self._aliases: dict[str, str] = {}
        self._patterns: tuple[tuple[str, str], ...] = ()
        self._own: frozenset[str] = frozenset()
        self._prepend(rows)

    @property
    def rows(self) -> Mapping[str, ReasoningFormat]:
        """The formats by name, in order."""
        return MappingProxyType({row.name: row for row in self._rows.values()})

    def with_rows(self, rows: Iterable[ReasoningFormat]) -> FormatRegistry:
        """Return a registry in which these come first, and take the place of those that have their names.

        One that takes a place and gives no patterns of its own keeps the patterns, and their order.
        """
        made = self._copy()
        made._own |= made._prepend(rows)
        return made

    def with_patterns(self, pairs: Iterable[tuple[str, str]]) -> FormatRegistry:
        """Return a registry in which these patterns, each with the name of a format, are tried first.

        Raises UnknownFormat.
        """
        made = self._copy()
        made._patterns = (*((pattern, canonical(self.find(name).name)) for pattern, name in pairs), *self._patterns)
        return made

    def find(self, name: str) -> ReasoningFormat:
        """Return the format of this name or alias; case, `-` and `_` make no difference.

        Raises UnknownFormat, which lists near names.
        """
        key = canonical(name)
        row = self._rows.get(key) or self._rows.get(self._aliases.get(key, ""))
        if row is None:
            raise UnknownFormat(name, self._rows)
        return row

    def for_model(self, model_id: str) -> ReasoningFormat:
        """Return the first format with a pattern that fits, or the one that leaves text as it is."""
        return self._fitting(model_id).format

    def choose(self, *, name: str = "", model: str | None = None) -> FormatChoice:
        """Return the format of this name, else of this model, else inline think tags, and why. Raises UnknownFormat."""
        if model is not None and not name:
            return self._fitting(model)
        row = self.find(name or DEFAULT_FORMAT)
        return FormatChoice(row, "name" if name else "default", name, canonical(row.name) in self._own)

    def _prepend(self, rows: Iterable[ReasoningFormat]) -> frozenset[str]:
        """Put rows first, and return their names."""
        added: dict[str, ReasoningFormat] = {}
        for row in rows:
            added.setdefault(canonical(row.name), row)
        own = [(pattern, name) for name, row in added.items() for pattern in row.patterns]
        replaced = {name for _, name in own}
        self._patterns = (*own, *(pair for pair in self._patterns if pair[1] not in replaced))
        self._rows = added | {name: row for name, row in self._rows.items() if name not in added}
        for name, row in reversed(added.items()):
            self._aliases |= {canonical(alias): name for alias in row.aliases}
        self._fitting = lru_cache(REMEMBERED_MODELS)(self._look_for)
        return frozenset(added)

    def _look_for(self, model_id: str) -> FormatChoice:
        pair = next((pair for pair in self._patterns if fits(pair[0], model_id)), None)
        if pair is None:
            return FormatChoice(self._rows[PASSTHROUGH], "passthrough", model_id)
        pattern, name = pair
        return FormatChoice(self._rows[name], "pattern", pattern, name in self._own)

    def _copy(self) -> FormatRegistry:
        made = FormatRegistry()
        made._rows, made._aliases = dict(self._rows), dict(self._aliases)
        made._patterns, made._own = self._patterns, self._own
        return made


@cache
def builtin_formats() -> FormatRegistry:
    """Return the formats that come with bardo."""
    source = files("bardo.catalog").joinpath("data", "reasoning_formats.toml").read_text(encoding="utf-8")
    return FormatRegistry(msgspec.convert(tomli.loads(source)["format"], list[ReasoningFormat]))


@cache
def formats() -> Mapping[str, ReasoningFormat]:
    """Return the built-in formats by name, in the order their patterns are tried."""
    return builtin_formats().rows


def find_format(name: str) -> ReasoningFormat:
    """Return the built-in format of this name or alias; case, `-` and `_` make no difference.

    Raises UnknownFormat, which lists near names.
    """
    return builtin_formats().find(name)


def format_for_model(model_id: str) -> ReasoningFormat:
    """Return the first built-in format with a pattern that fits, or the one that leaves text as it is."""
    return builtin_formats().for_model(model_id)
