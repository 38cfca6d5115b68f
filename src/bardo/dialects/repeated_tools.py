"""The tools of a request that came before: an agent sends the same with every turn, and they are often most of its body.

Their JSON is found again in the body by its bytes, so that it is neither parsed nor read a second time. What was read of it is shared
between requests, and is never changed.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.dialects.same_bytes import as_first_written
from bardo.values.errors import InvalidRequest
from bardo.values.request import Request, Tool

if TYPE_CHECKING:
    from bardo.dialects.losses import Losses

LEAST_BYTES, MOST_BYTES = 1024, 262_144
"""How long the JSON of tools is that is worth keeping, and may be kept."""
MOST_BYTES_KEPT = 1_048_576
"""Clients choose their tools, so neither the number nor the size of what is kept may grow with them."""
_MOST_ALIKE, _MOST_FORMS = 4, 32
# Where the tools of a longer body are not known, finding them would take longer than parsing them.
_MOST_SEARCHED = 524_288
_NAME = b'"tools"'
_BEGINNING = 256
# Stands in the place of the tools while the rest is parsed. Nobody can guess it, so no client's own value is taken for it.
_PLACEHOLDER = secrets.token_hex(16)
_IN_PLACE = msgspec.json.encode({"tools": _PLACEHOLDER})[1:-1]
_NAMED = re.compile(rb'"tools"\s*:\s*\[')
_split = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class _Kept:
    """Tools as they were sent: the bytes of the field and its value, what each dialect reads in it, and how it is written.

    `written` is None for a form in which something of the tools is lost, which each call must report. `complete` tells of declarations
    whether they hold all that the tools say.
    """

    __slots__ = ("complete", "field", "read", "value", "written")

    def __init__(self, field: bytes, value: list[Any]) -> None:
        self.field, self.value = field, value
        self.read: dict[str, tuple[Tool, ...]] = {}
        self.written: dict[Hashable, msgspec.Raw | None] = {}
        self.complete: dict[Hashable, bool] = {}


class RepeatedTools:
    """The tools that were sent last, by the bytes with which they begin and by the list that was read of them."""

    def __init__(self) -> None:
        self._kept: dict[bytes, list[_Kept]] = {}
        self._by_value: dict[int, _Kept] = {}
        self._by_tools: dict[int, _Kept] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._by_value)

    def decode(self, body: bytes, parse: Callable[[bytes], Any]) -> Any:
        """Return what `parse` reads in a body; tools that came before are the list that was read then. Raises what `parse` raises."""
        start = body.find(_NAME) if len(body) >= LEAST_BYTES else -1
        if start < 0:
            return parse(body)
        for kept in self._kept.get(body[start : start + _BEGINNING], ()):
            if body.startswith(kept.field, start):
                fields = _parse_rest(body, start, kept, parse)
                if fields is not None:
                    return fields
        fields = parse(body)
        tools = fields.get("tools") if isinstance(fields, dict) else None
        if isinstance(tools, list) and len(body) <= _MOST_SEARCHED:
            self._keep(body, start, tools)
        return fields

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

    def of(self, tools: tuple[Tool, ...]) -> _Kept | None:
        """Return what is kept of tools that were read; None where they did not come before."""
        return self._by_tools.get(id(tools)) if tools else None

    def _keep(self, body: bytes, start: int, tools: list[Any]) -> None:
        """Keep the tools of a body, where the name that was found is theirs; forget the oldest where there are too many."""
        named = _NAMED.match(body, start)
        if named is None:
            return
        raw = bytes(_split(body)["tools"])
        at = named.end() - 1
        if not LEAST_BYTES <= len(raw) <= MOST_BYTES or not body.startswith(raw, at):
            return
        field = body[start : at + len(raw)]
        with self._lock:
            alike = self._kept.setdefault(field[:_BEGINNING], [])
            if len(alike) == _MOST_ALIKE:
                self._forget(alike.pop(0))
            kept = _Kept(field, tools)
            alike.append(kept)
            self._by_value[id(tools)] = kept
            self._bytes += len(field)
            while self._bytes > MOST_BYTES_KEPT:
                for one in self._kept.pop(next(iter(self._kept))):
                    self._forget(one)

    def _forget(self, kept: _Kept) -> None:
        del self._by_value[id(kept.value)]
        for tools in kept.read.values():
            del self._by_tools[id(tools)]
        self._bytes -= len(kept.field)


def _parse_rest(body: bytes, start: int, kept: _Kept, parse: Callable[[bytes], Any]) -> dict[str, Any] | None:
    """Return the fields of a body in which the bytes of known tools stand at `start`; None where they are not those of the request."""
    try:
        fields = parse(b"".join([body[:start], _IN_PLACE, body[start + len(kept.field) :]]))
    except InvalidRequest:
        return None  # What is wrong is told of the body as it came.
    if not isinstance(fields, dict) or fields.get("tools") != _PLACEHOLDER:
        return None
    fields["tools"] = kept.value
    return fields


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


REPEATED_TOOLS = RepeatedTools()
"""Those of this process."""
