"""What a model does after it read an instruction that nobody vouches for: calls of tools that reach whom only that text names.

An instruction does harm when it is followed. A call is one of its consequences where an address, or the tool itself, stands in a sentence
that was found and in nothing that the operator or the user said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from bardo.context.injection.provenance import Span
from bardo.values.degradation import Degradation
from bardo.values.errors import Forbidden
from bardo.values.events import Degraded, Event, Failed, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import Tool

What = Literal["address", "tool"]
_ADDRESS = re.compile(
    r"(?<![\w-])(?:https?://)?(?:[\w-]{1,63}\.){1,20}[a-z]{2,24}(?:/[^\s\"'<>)\]}]*)?|[\w.+-]{1,64}@(?:[\w-]{1,63}\.){1,20}[a-z]{2,24}"
    r"|0x[0-9a-f]{40}\b|\b[A-Z]{2}\d{2}[A-Z0-9]{11,30}\b"
    r"|\+?\d[\d ().-]{7,40}\d",
    re.IGNORECASE,
)
_LEAST_ADDRESS = 6
_MOST_ARGUMENTS = 1_000_000
_MOST_ADDRESSES = 1_000


class InjectedTargets(msgspec.Struct, frozen=True, kw_only=True):
    """What only the instructions name: addresses in lower case, and tools. `sources` says where the instructions stand."""

    addresses: frozenset[str]
    tools: frozenset[str]
    sources: tuple[str, ...]

    @property
    def any(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.addresses or self.tools)

    def consequence(self, tool: str, arguments: str) -> What | None:
        """Return what of a call comes from the instructions; None where nothing does."""
        readable = _unescaped(arguments[:_MOST_ARGUMENTS])
        if any(address in readable for address in self.addresses):
            return "address"
        return "tool" if tool in self.tools else None


def suspects_of(
    sentences: Sequence[str], trusted: Iterable[Span], tools: Iterable[Tool], sources: Sequence[str]
) -> InjectedTargets:
    """Return what sentences name that nobody who is trusted does."""
    known = "\n".join(span.text for span in trusted if span.trusted).lower()
    named = " ".join(sentences)
    addresses = {one for one in _addresses(named) if one not in known}
    lower = f" {named.lower()} "
    called = {tool.name for tool in tools if _is_named(tool.name, lower) and not _is_named(tool.name, f" {known} ")}
    return InjectedTargets(addresses=frozenset(addresses), tools=frozenset(called), sources=tuple(sources))


def _is_named(tool: str, text: str) -> bool:
    """Whether a text names a tool as programs write it; a tool whose name is one ordinary word is not told from that word."""
    return ("_" in tool or "-" in tool or any(letter.isupper() for letter in tool[1:])) and tool.lower() in text


def _addresses(text: str) -> list[str]:
    found = [
        one[0].strip(".,;:").lower() for one, _ in zip(_ADDRESS.finditer(text), range(_MOST_ADDRESSES), strict=False)
    ]
    return [one.removeprefix("https://").removeprefix("http://") for one in found if len(one) >= _LEAST_ADDRESS]


def _unescaped(arguments: str) -> str:
    """Return the arguments of a call in lower case, as they read without the escapes of JSON."""
    if "\\" in arguments:
        try:
            arguments = json.dumps(json.loads(arguments), ensure_ascii=False)
        except (ValueError, RecursionError):
            return arguments.lower()
    return arguments.lower()


class InspectedCalls:
    """Looks at the calls of one reply. Where it `withholds`, a call waits until it is whole, and one that follows ends the reply."""

    def __init__(self, suspects: InjectedTargets, *, withholds: bool, hint: str = "") -> None:
        self._suspects = suspects
        self._withholds = withholds
        self._hint = hint
        self._names: dict[tuple[int, int], str] = {}
        self._arguments: dict[tuple[int, int], list[str]] = {}
        self._held: list[Event] = []
        self._refused = False

    def feed(self, item: Event) -> Sequence[Event]:
        """Pass on, with a mark behind a call that follows an instruction."""
        if self._refused:
            return ()
        kind = type(item)
        if kind is not ToolCallStart and not self._names:
            return (item,)
        if isinstance(item, ToolCallStart):
            self._names[item.choice, item.block] = item.name
            self._arguments[item.choice, item.block] = []
        elif isinstance(item, ToolCallChunk):
            self._arguments.get((item.choice, item.block), []).append(item.arguments)
        elif isinstance(item, ToolCallEnd):
            return self._ended(item)
        if self._withholds:
            self._held.append(item)
            return ()
        return (item,)

    def finish(self) -> Sequence[Event]:
        """Judge the calls that did not end."""
        out: list[Event] = []
        for choice, block in list(self._names):
            out += self._ended(None, (choice, block))
        return out

    def _ended(self, item: ToolCallEnd | None, place: tuple[int, int] | None = None) -> Sequence[Event]:
        place = (item.choice, item.block) if item is not None else place
        assert place is not None
        name, arguments = self._names.pop(place, ""), "".join(self._arguments.pop(place, []))
        cause = self._suspects.consequence(name, arguments)
        own: list[Event] = [] if item is None else [item]
        if cause is None:
            return self._released(own)
        if self._withholds:
            self._refused, self._held = True, []
            return (Failed(_refusal(name, cause, self._suspects, self._hint)),)
        return [*own, Degraded(_degradation(name, cause, self._suspects))]

    def _released(self, own: list[Event]) -> Sequence[Event]:
        if not self._withholds:
            return own
        self._held += own
        if self._names:
            return ()
        out, self._held = self._held, []
        return out


_CAUSES: dict[What, str] = {"address": "an address in its arguments stands", "tool": "it is named"}


def _degradation(name: str, cause: What, suspects: InjectedTargets) -> Degradation:
    return Degradation("injection", asked=name, sent=name, why=f"a call of {name}: {_reason(cause, suspects)}")


def _refusal(name: str, cause: What, suspects: InjectedTargets, hint: str) -> Forbidden:
    why = f"the model's call of {name} is withheld: {_reason(cause, suspects)}"
    return Forbidden(why, hint=f"ask for it in your own words, {hint}" if hint else "ask for it in your own words")


def _reason(cause: What, suspects: InjectedTargets) -> str:
    where = ", ".join(suspects.sources) or "a tool or a document"
    return f"{_CAUSES[cause]} only in instructions that {where} holds"
