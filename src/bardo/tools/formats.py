"""The text formats models write their tool calls in: one row each, kept in `catalog/data/tool_call_formats.toml`.

A row shows how a call looks, with holes for what differs. Code reads rows and names no family.
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
from bardo.values.errors import InvalidRequest

Machine = Literal["json", "header", "parameters", "notation"]
_MACHINES: dict[str, Machine] = {
    "{json}": "json",
    "{objects}": "json",
    "{parameters}": "parameters",
    "{elements}": "parameters",
    "{python}": "notation",
    "{call}": "notation",
}
_MACHINES |= {"{gemma}": "notation"}


class UnknownToolFormat(InvalidRequest, ValueError):
    """No tool-call format has the name that was asked for; `near` holds names that resemble it."""

    def __init__(self, name: str, known: Iterable[str]) -> None:
        self.near = tuple(get_close_matches(_spelled(name), list(known), n=3, cutoff=0.5))
        hint = f"did you mean {' or '.join(self.near)}?" if self.near else "bardo.tools.tool_call_formats() lists all"
        super().__init__(f"no tool-call format is named {name!r}", hint=hint)


class ToolCallFormat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How one model family writes tool calls in its text.

    Shapes and parameters are lists of parts. A part is text with holes; one that begins with `?` may be missing. White space
    between parts does not matter.

    Holes of a call: `{name}`; `{empty}`, which says that there are no arguments; `{id}`; `{recipient}`, a name after `functions.`;
    `{identifier}`, an id such as `functions.name:0` that holds the name; `{word}`, which is skipped, and `{named}`, which says that it was
    the name; `{arguments}`, a JSON object; `{parameters}`, any number of parameters; `{elements}`, any number of elements named like
    parameters, which may hold elements themselves; `{json}`, a whole call or a list of calls as JSON; `{objects}`, the same in formats
    where a list may be one in Python's notation as well; `{python}`, a list of calls as Python writes them, and `{call}`, one of those;
    `{gemma}`, an object as Gemma writes it.

    Holes of a parameter: `{key}`; `{value}`; `{string}`, true for text and false for JSON; `{type}`, a JSON type.
    """

    name: str
    begin: tuple[str, ...] = ()
    """Markers that begin a section of calls. One that also begins a shape is a part of its call."""
    end: tuple[str, ...] = ()
    """Markers that end a section."""
    shapes: tuple[tuple[str, ...], ...]
    """How one call looks; which of several is decided by what stands first."""
    parameters: tuple[tuple[str, ...], ...] = ()
    """How one parameter looks, likewise."""
    bare: bool = False
    """Whether a text may begin with a call that no marker announces."""
    inline: tuple[str, ...] = ()
    """How calls begin that no marker announces and that stand after text."""
    leads: tuple[str, ...] = ()
    """Markers that count only at the beginning of a text, because the prompt holds what comes before them."""
    answers: tuple[str, ...] = ()
    """Markers that begin the answer as others begin a call; they are no part of it."""
    answer_leads: tuple[str, ...] = ()
    """The rest of such a marker at the beginning of a text, because the prompt holds its first part."""
    in_thinking: bool = False
    """Whether servers leave a section inside thinking that they separate from the text."""
    opens: Literal["anywhere", "start"] = "anywhere"
    """Where a marker counts: anywhere outside fenced code, or only after leading white space."""
    separators: tuple[str, ...] = ()
    """The text that may stand between two calls of a section."""
    trims_newlines: bool = False
    """Whether one line break on each side of a parameter's value belongs to the format; the one after it only with the one before."""
    cdata: bool = False
    """Whether a value may stand in `<![CDATA[…]]>`, which is no part of it."""
    raw_arguments: bool = False
    """Whether arguments that are no JSON are passed on as they are, with a note."""
    element_mark: str = ""
    """The text before each tag of an element."""
    quoted_names: bool = False
    """Whether names and keys are values of XML attributes: anything up to a quotation mark, with entities such as `&quot;`."""
    doubled_names: bool = False
    """Whether `name.name` is how the model writes a tool that was declared as `name`."""
    name_is_key: bool = False
    """Whether a call in JSON has the name as its only key."""
    patterns: tuple[str, ...] = ()
    """Parts of model ids, or globs of parts, lower case."""
    aliases: tuple[str, ...] = ()
    """Names other servers give their parser of this format."""

    @property
    def machine(self) -> Machine:
        """The kind of grammar that the first shape needs."""
        return next(
            (kind for hole, kind in _MACHINES.items() if any(hole in part for part in self.shapes[0])), "header"
        )


@cache
def tool_call_formats() -> Mapping[str, ToolCallFormat]:
    """Return the built-in formats by name, in the order their patterns are tried."""
    source = files("bardo.catalog").joinpath("data", "tool_call_formats.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomli.loads(source)["format"], list[ToolCallFormat])
    return MappingProxyType({row.name: row for row in rows})


def find_tool_call_format(name: str) -> ToolCallFormat:
    """Return the built-in format of this name or alias; case, `-` and `_` make no difference.

    Raises UnknownToolFormat, which lists near names.
    """
    row = _by_any_name().get(_spelled(name))
    if row is None:
        raise UnknownToolFormat(name, tool_call_formats())
    return row


@lru_cache(maxsize=1024)
def tool_call_format_for_model(model_id: str) -> ToolCallFormat | None:
    """Return the first built-in format with a pattern that fits, or None."""
    rows = tool_call_formats().values()
    return next((row for row in rows if any(fits(pattern, model_id) for pattern in row.patterns)), None)


@cache
def _by_any_name() -> Mapping[str, ToolCallFormat]:
    rows = tool_call_formats()
    return {_spelled(alias): row for row in rows.values() for alias in row.aliases} | dict(rows)


def _spelled(name: str) -> str:
    # Names of tool-call formats hold versions, as in deepseek_v3.1.
    return canonical(name).replace(".", "_")
