"""The acts of a model after it read an instruction in untrusted text: calls of tools whose recipients only that text names.

An instruction does harm when it is followed. A call is one of its consequences where an address, a path, or the tool itself, stands in a
passage that was found and in nothing that the operator or the user said.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal

import msgspec

from bardo.context.injection.provenance import Span
from bardo.values.degradation import Degradation
from bardo.values.errors import Forbidden
from bardo.values.events import Degraded, Event, Failed, ToolCallChunk, ToolCallEnd, ToolCallStart
from bardo.values.request import Tool

What = Literal["address", "path", "tool"]
# An address begins where no letter of one stands before it, so that no letter is looked at twice. Letters are ASCII: in some languages
# words stand beside an address without a space.
_ADDRESS = re.compile(
    r"https?://[^\s\"'<>)\]}，。、」）]{3,400}"
    r"|(?<![a-z0-9_.+-])(?:[a-z0-9_.+-]{1,64}@)?(?:[a-z0-9-]{1,63}\.){1,8}[a-z]{2,24}(?:/[^\s\"'<>)\]}，。、」）]{0,400})?"
    r"|(?<![a-z0-9_.+-])(?:(?![぀-ヿ㐀-鿿가-힯฀-๿])[\w.+-]){1,64}@(?:[\w-]{1,63}\.){1,8}[a-z]{2,24}"
    r"|(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.])(?::\d{2,5})?",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![a-z0-9])0x[0-9a-f]{40}(?![0-9a-f])|(?<![a-z0-9])[a-z]{2}\d{2}(?:[ -]?[a-z0-9]{2,4}){3,8}(?![a-z0-9])",
    re.IGNORECASE,
)
_PHONE = re.compile(r"(?<![\w+])\+?\d(?:[ ().-]{0,2}\d){7,19}(?!\w)")
_PATH = re.compile(
    r"(?<![\w/~.:])(?:~/|/)[\w.@-]{1,64}(?:/[\w.@-]{1,64}){0,16}|(?<![\w/.])\.(?:env|ssh|aws|netrc|npmrc|pgpass|git-credentials)\b[\w./-]{0,64}"
)
_WRITTEN_OUT = (
    (re.compile(r"\s?[\[({]\s?(?:\.|dot|punkt|point|punto)\s?[\])}]\s?| dot ", re.IGNORECASE), "."),
    (re.compile(r"\s?[\[({]\s?(?:@|at|ät|arroba)\s?[\])}]\s?| at (?=[\w-]{1,63}\.[a-z]{2})", re.IGNORECASE), "@"),
    (re.compile(r"\bhxxp(s?)://", re.IGNORECASE), r"http\1://"),
)
"""How addresses are written so that nothing finds them, and what they stand for."""
_SEPARATORS = re.compile(r"[\s().+\-/]")
_LEAST_ADDRESS, _LEAST_PATH = 6, 5
_MOST_ARGUMENTS = 1_000_000
_MOST_ADDRESSES = 1_000
_TOOL_WORDS = re.compile(
    r"\b(?:call|invoke|use|using|run|execute|trigger|tool|function|werkzeug|outil|herramienta|strumento|ferramenta|tool|narzędzie|инструмент|"
    r"інструмент|verktyg\w*|værktøj\w*|nástroj|εργαλείο|unealta|eszköz\w*|araç|"
    r"công cụ|alat)\W{1,3}(?:the |named |called |das |die |l'|la |el |lo |o |a |het )?$"
    r"|(?:工具|調用|调用|ツール|도구|أداة|כלי|เครื่องมือ)\W{0,2}$|[`\"'「“]$",
    re.IGNORECASE,
)


class InjectedTargets(msgspec.Struct, frozen=True, kw_only=True):
    """Targets that only the instructions name: addresses and paths in lower case, and tools. `sources` are the places of the instructions.

    `numbers` are those of accounts and telephones, without what separates their parts.
    """

    addresses: frozenset[str]
    tools: frozenset[str]
    sources: tuple[str, ...]
    numbers: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()

    @property
    def any(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.addresses or self.tools or self.numbers or self.paths)

    def consequence(self, tool: str, arguments: str) -> What | None:
        """Return what of a call comes from the instructions, or None if nothing does."""
        readable = _unescaped(arguments[:_MOST_ARGUMENTS])
        if any(address in readable for address in self.addresses):
            return "address"
        if self.numbers:
            compact = _SEPARATORS.sub("", readable)
            if any(number in compact for number in self.numbers):
                return "address"
        if any(path in readable for path in self.paths):
            return "path"
        return "tool" if tool in self.tools else None


def suspects_of(
    sentences: Sequence[str], trusted: Iterable[Span], tools: Iterable[Tool], sources: Sequence[str]
) -> InjectedTargets:
    """Return the addresses, paths, numbers and tools that passages name and no trusted text does."""
    lower = "\n".join(span.text for span in trusted if span.trusted).lower()
    compact = _SEPARATORS.sub("", lower)
    named = "\n".join(each for sentence in sentences for each in dict.fromkeys((sentence, _as_written(sentence))))
    addresses = [match[0].rstrip(".,;:!?").lower() for match in islice(_ADDRESS.finditer(named), _MOST_ADDRESSES)]
    bare = [re.split(r"[?#]", url.removeprefix("https://").removeprefix("http://"), maxsplit=1)[0] for url in addresses]
    # A call may reach another page of the same folder.
    short = ["/".join(address.split("/")[:2]).rstrip("/") for address in bare]
    return InjectedTargets(
        addresses=frozenset({address for address in short if len(address) >= _LEAST_ADDRESS and address not in lower}),
        numbers=frozenset({number for number in _numbers(named) if number not in compact}),
        paths=frozenset({path for path in _paths(named) if path not in lower}),
        tools=frozenset({tool.name for tool in tools if is_named(tool.name, named) and not is_named(tool.name, lower)}),
        sources=tuple(sources),
    )


def is_named(tool: str, text: str) -> bool:
    """Whether a text names a tool: as programs write names, or where a name that is an ordinary word stands as that of a tool."""
    return any(True for _ in places_of(tool, text))


def places_of(tool: str, text: str) -> Iterator[int]:
    """Yield where a text names a tool."""
    if not tool:
        return
    plain = not ("_" in tool or "-" in tool or any(letter.isupper() for letter in tool[1:]))
    pattern = re.compile(rf"(?<![a-z0-9_]){re.escape(tool)}(?![a-z0-9_])", re.IGNORECASE)
    for match in islice(pattern.finditer(text), _MOST_ADDRESSES):
        before, behind = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 8].lower()
        if not plain or _TOOL_WORDS.search(before) or behind.startswith(("(", " tool", "-tool", " function")):
            yield match.start()


def _as_written(text: str) -> str:
    """Return a text with the addresses in it as they are used."""
    for pattern, meant in _WRITTEN_OUT:
        text = pattern.sub(meant, text)
    return text


def _numbers(text: str) -> list[str]:
    """Return the numbers of accounts and telephones in a text, without what separates their parts."""
    matches = [*islice(_NUMBER.finditer(text), _MOST_ADDRESSES), *islice(_PHONE.finditer(text), _MOST_ADDRESSES)]
    return [_SEPARATORS.sub("", match[0]).lower() for match in matches]


def _paths(text: str) -> list[str]:
    paths = [match[0].rstrip(".,;:").lower() for match in islice(_PATH.finditer(text), _MOST_ADDRESSES)]
    return [path for path in paths if len(path) >= _LEAST_PATH or path == ".env"]


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
        degradation = Degradation(
            "injection", asked=name, sent=name, why=f"a call of {name}: {_reason(cause, self._suspects)}"
        )
        return [*own, Degraded(degradation)]

    def _released(self, own: list[Event]) -> Sequence[Event]:
        if not self._withholds:
            return own
        self._held += own
        if self._names:
            return ()
        out, self._held = self._held, []
        return out


_CAUSES: dict[What, str] = {
    "address": "an address in its arguments stands",
    "path": "a path in its arguments stands",
    "tool": "it is named",
}


def _refusal(name: str, cause: What, suspects: InjectedTargets, hint: str) -> Forbidden:
    why = f"the model's call of {name} is withheld: {_reason(cause, suspects)}"
    return Forbidden(why, hint=f"ask for it in your own words, {hint}" if hint else "ask for it in your own words")


def _reason(cause: What, suspects: InjectedTargets) -> str:
    where = ", ".join(suspects.sources) or "a tool or a document"
    return f"{_CAUSES[cause]} only in instructions that {where} holds"
