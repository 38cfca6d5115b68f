"""The text formats models write their reasoning in: one row each, kept in `catalog/data/reasoning_formats.toml`.

A row says how reasoning is marked in the text of one model family. Code reads rows and names no family.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from fnmatch import translate
from functools import cache, lru_cache
from importlib.resources import files
from types import MappingProxyType
from typing import Literal

import msgspec

from bardo.values.errors import InvalidRequest

PASSTHROUGH = "passthrough"


class UnknownFormat(InvalidRequest, ValueError):
    """No reasoning format has the name that was asked for; `near` holds names that resemble it."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.near = tuple(get_close_matches(canonical(name), list(known), n=3, cutoff=0.5))
        hint = f"did you mean {' or '.join(self.near)}?" if self.near else "bardo.reasoning.formats() lists all"
        super().__init__(f"no reasoning format is named {name!r}", hint=hint)


class ReasoningFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one model family marks reasoning in its text.

    Of two delimiters the one that begins first counts, and of two that begin together, the longer.
    """

    name: str
    start: str | tuple[str, ...] = ()
    """Opens a block and is consumed; several spellings may be given."""
    end: str | tuple[str, ...] = ()
    """Closes a block and is consumed; the first one that occurs counts, whichever opener was used."""
    starts_inside: bool | Literal["prompt"] = False
    """Whether a reply begins inside a block. "prompt": the rendered prompt decides; not inside unless told."""
    implicit_ends: tuple[str, ...] = ()
    """Close an open block, and stay in the text that follows."""
    blocks: Literal["single", "multi"] = "single"
    """After the first block of a "single" format every tag is text."""
    opens: Literal["anywhere", "start"] = "anywhere"
    """Where an opener counts: anywhere outside fenced code, or only after leading whitespace."""
    leading_closer: bool = False
    """A reply that skips thinking begins with a closer alone, which is consumed."""
    dropped: tuple[str, ...] = ()
    """Structure around the answer, consumed wherever it occurs outside reasoning."""
    machine: Literal["delimiters"] = "delimiters"
    """The kind of splitter that reads this format: `machines.py` lists them."""
    patterns: tuple[str, ...] = ()
    """Parts of model ids, or globs of parts, lower case."""
    aliases: tuple[str, ...] = ()
    """Names other servers give their parser of this format."""
    toggles: tuple[str, ...] = ()
    """Template arguments that turn thinking on and off."""
    families: tuple[str, ...] = ()
    notes: str = ""

    @property
    def starts(self) -> tuple[str, ...]:
        return _spellings(self.start)

    @property
    def ends(self) -> tuple[str, ...]:
        return _spellings(self.end)


@cache
def formats() -> Mapping[str, ReasoningFormat]:
    """Return the built-in formats by name, in the order their patterns are tried."""
    source = files("bardo.catalog").joinpath("data", "reasoning_formats.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomllib.loads(source)["format"], list[ReasoningFormat])
    return MappingProxyType({row.name: row for row in rows})


def find_format(name: str) -> ReasoningFormat:
    """Return the built-in format of this name or alias; case, `-` and `_` make no difference.

    Raises UnknownFormat, which lists near names.
    """
    found = _by_any_name().get(canonical(name))
    if found is None:
        raise UnknownFormat(name, formats())
    return found


@lru_cache(maxsize=1024)
def format_for_model(model_id: str) -> ReasoningFormat:
    """Return the first built-in format with a pattern that fits, or the one that leaves text as it is."""
    rows = formats()
    fitting = (row for row in rows.values() if any(fits(pattern, model_id) for pattern in row.patterns))
    return next(fitting, rows[PASSTHROUGH])


def fits(pattern: str, model_id: str) -> bool:
    """Say whether a part of the model id equals the pattern, which may hold the wildcards of a glob."""
    return _matcher(pattern).search(_comparable(model_id)) is not None


def canonical(name: str) -> str:
    """Return the one spelling under which a format's name is looked up."""
    return name.strip().lower().replace("-", "_")


@cache
def _by_any_name() -> Mapping[str, ReasoningFormat]:
    rows = formats()
    aliases = {canonical(alias): row for row in rows.values() for alias in row.aliases}
    return aliases | dict(rows)


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> re.Pattern[str]:
    wanted = _comparable(pattern)
    return re.compile(translate(f"*{wanted}*") if set(wanted) & set("*?[") else re.escape(wanted))


def _comparable(model_id: str) -> str:
    # Hosts write one model as qwen3:32b, qwen3_32b and Qwen/Qwen3-32B.
    return model_id.lower().replace("_", "-").replace(":", "-")


def _spellings(delimiter: str | tuple[str, ...]) -> tuple[str, ...]:
    given = (delimiter,) if isinstance(delimiter, str) else delimiter
    return tuple(spelling for spelling in given if spelling)
