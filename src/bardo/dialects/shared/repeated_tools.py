"""The tools of a request that came before: an agent sends the same with every turn, and they are often most of its body.

Their JSON is found again by its bytes (`repeated_items.py`), so that it is neither parsed nor read a second time. What was read of it is
shared between requests, and is never changed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.dialects.shared.same_bytes import as_first_written
from bardo.values.request import Request, Tool

if TYPE_CHECKING:
    from bardo.dialects.shared.losses import Losses

LEAST_BYTES, MOST_BYTES = 1024, 262_144
"""How long the JSON of tools is that is worth keeping, and may be kept."""
MOST_BYTES_KEPT = 1_048_576
"""Clients choose their tools, so neither the number nor the size of what is kept may grow with them."""
_MOST_FORMS = 32


class _SentTools:
    """Tools as they were sent: their JSON and its value, what each dialect reads in it, and how it is written.

    `written` is None for a form in which something of the tools is lost, which each call must report. `complete` tells of declarations
    whether they hold all that the tools say, and `names` what follows from their names for a rule of those.
    """

    __slots__ = ("complete", "names", "raw", "read", "value", "written")

    def __init__(self, raw: bytes, value: list[Any]) -> None:
        self.raw, self.value = raw, value
        self.read: dict[str, tuple[Tool, ...]] = {}
        self.written: dict[Hashable, msgspec.Raw | None] = {}
        self.complete: dict[Hashable, bool] = {}
        self.names: dict[Hashable, Any] = {}


class RepeatedTools:
    """The tools that were sent last, by their JSON and by the list that was read of it."""

    def __init__(self) -> None:
        self._kept: dict[bytes, _SentTools] = {}
        self._by_value: dict[int, _SentTools] = {}
        self._by_tools: dict[int, _SentTools] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._by_value)

    def value_of(self, raw: bytes, parse: Callable[[bytes], Any]) -> Any:
        """Return what `parse` reads in the JSON of tools: of those that came before, the list that was read then.

        Raises what `parse` raises.
        """
        kept = self._kept.get(raw)
        if kept is not None:
            return kept.value
        value = parse(raw)
        if isinstance(value, list) and len(raw) <= MOST_BYTES:
            self._keep(_SentTools(raw, value))
        return value

    def read(self, tools: list[Any], dialect: str, read: Callable[[list[Any]], tuple[Tool, ...]]) -> tuple[Tool, ...]:
        """Return what `read` gives for the tools of a dialect: the same value for a list that came before. Raises what `read` raises."""
        kept = self._by_value.get(id(tools))
        if kept is None or kept.value is not tools:
            return read(tools)
        found = kept.read.get(dialect)
        if found is None:
            found = read(tools)
            with self._lock:
                if self._by_value.get(id(tools)) is kept and dialect not in kept.read:
                    kept.read[dialect] = found
                    self._by_tools[id(found)] = kept
        return found

    def of(self, tools: tuple[Tool, ...]) -> _SentTools | None:
        """Return what is kept of tools that were read; None where they did not come before."""
        return self._by_tools.get(id(tools)) if tools else None

    def _keep(self, kept: _SentTools) -> None:
        """Keep tools, and forget the oldest where there are too many."""
        with self._lock:
            self._kept[kept.raw] = self._by_value[id(kept.value)] = kept
            self._bytes += len(kept.raw)
            while self._bytes > MOST_BYTES_KEPT:
                self._forget(self._kept.pop(next(iter(self._kept))))

    def _forget(self, kept: _SentTools) -> None:
        del self._by_value[id(kept.value)]
        for tools in kept.read.values():
            del self._by_tools[id(tools)]
        self._bytes -= len(kept.raw)


def written_tools(
    request: Request, losses: Losses, write: Callable[[Sequence[Tool], Losses], list[Any]], *form: Hashable
) -> list[Any] | msgspec.Raw:
    """Return the tools of a request as `write` writes them: as JSON where they came before, and nothing of them is lost.

    `form` is what `write` goes by beside the tools and the dialect of the losses.
    """
    kept = REPEATED_TOOLS.of(request.tools)
    if kept is None:
        return write(request.tools, losses)
    key = (losses.dialect, request.dialect if request.body is not None else None, *form)
    if key not in kept.written and len(kept.written) < _MOST_FORMS:
        alone = losses.anew()
        made = write(request.tools, alone)
        if request.body is not None and request.dialect == losses.dialect:
            made = as_first_written(made, kept.value)
        kept.written[key] = msgspec.Raw(msgspec.json.encode(made)) if made and alone.empty else None
    return kept.written.get(key) or write(request.tools, losses)


def are_complete(tools: tuple[Tool, ...], losses: Losses, report: Callable[[Losses], object], *form: Hashable) -> bool:
    """Whether tools came before, and `report` finds nothing that is lost of them. `form` is what it goes by beside the tools."""
    kept = REPEATED_TOOLS.of(tools)
    if kept is None:
        return False
    if form not in kept.complete and len(kept.complete) < _MOST_FORMS:
        alone = losses.anew()
        report(alone)
        kept.complete[form] = alone.empty
    return kept.complete.get(form, False)


def names_of(tools: tuple[Tool, ...], find: Callable[[tuple[Tool, ...], Any], Any], rule: Hashable) -> Any:
    """Return what `find` gives for tools and a rule of their names: found once for tools that came before."""
    kept = REPEATED_TOOLS.of(tools)
    if kept is None:
        return find(tools, rule)
    if rule not in kept.names and len(kept.names) < _MOST_FORMS:
        kept.names[rule] = find(tools, rule)
    return kept.names[rule] if rule in kept.names else find(tools, rule)


REPEATED_TOOLS = RepeatedTools()
"""Those of this process."""
