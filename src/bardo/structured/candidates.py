"""Values a text may hold beside its plain JSON: in fences, escaped or headless objects, Python literals, what json_repair makes of it.

Also the values inside what a model puts around an answer. Each function returns values; its caller judges them by the schema.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from typing import SupportsIndex

from bardo.structured.bounds import MAX_DEPTH, MAX_REPAIR, REPAIR_STEPS, REPAIR_STEPS_BESIDE
from bardo.structured.completeness import is_closed, looks_like_data
from bardo.structured.extraction import Json
from bardo.structured.reading import ParsedValue
from bardo.structured.scanning import Scan, depth_of, loads, scan

_FENCE = re.compile(
    r"^[ \t>*-]{0,8}(?P<fence>`{3,}|~{3,})[^\n`]{0,40}\n(?P<body>.*?)(?:^[ \t>]{0,8}(?P=fence)|\Z)", re.M | re.S
)
_HEADLESS = re.compile(r"(?:json\s{1,5})?(?P<members>[\"'“][^\"'“”\n{}\[\]]{1,100}[\"'”]\s{0,5}:.*)", re.S)
_ESCAPED = re.compile(r"[{\[]\s{0,50}\\+[\"n]")
_BAD_ESCAPE = re.compile(r"(\\\\)|\\(?![\\'\"abfnrtv0-7xNuU\n])|\\([4-7][0-7]{2})")
_PYTHON_STRING = re.compile(r"\"(?:\\.|[^\"\\])*+(?:\"|\\?\Z)|'(?:\\.|[^'\\])*+(?:'|\\?\Z)", re.S)
_RAW_STRING = re.compile(r"\b[bB]?[rR][bB]?[\"']")
_NUMBER_WITH_WORD = re.compile(r"(?<![\w.])\d[\w.]*(?:and|else|for|if|in|is|not|or)\b")
_INLINE = re.compile(r"`+|'|\$+")


def fences(text: str) -> list[str]:
    """Return what stands in the fences of a text, the last one closed or not."""
    return [fence.group("body") for fence in _FENCE.finditer(text)]


def whole(text: str) -> Iterator[ParsedValue]:
    """Yield the text itself, or what one fence or quotation mark holds, where that is one JSON value of any kind."""
    for one in (text, *fences(text), _unquoted(text)):
        said = one.strip().removeprefix("\ufeff")
        if said[:1] in ("{", "["):
            continue
        try:
            yield ParsedValue(loads(said), 0, len(text), strict=True)
        except ValueError:
            continue


def _unquoted(text: str) -> str:
    said = text.strip()
    mark = _INLINE.match(said)
    return said.removeprefix(mark.group()).removesuffix(mark.group()) if mark else said


def restored(text: str) -> Scan | None:
    """Return what a text says whose first brace is missing, or whose quotes were escaped once too often; None for other texts."""
    for body in map(str.strip, (*fences(text), text)):
        headless = _HEADLESS.match(body)
        if headless:
            return scan("{" + headless["members"])
        if _ESCAPED.match(body):
            return scan(_unescaped(body))
    return None


def _unescaped(text: str) -> str:
    end = max(text.rfind("}"), text.rfind("]")) + 1
    try:
        said = loads('"' + text[:end].replace("\n", "\\n") + '"')
    except ValueError:
        return ""
    return said if isinstance(said, str) else ""


def python_literal(text: str) -> ParsedValue | None:
    """Return what a Python literal says that begins and ends with brackets."""
    said = text.strip()
    if said[:1] not in ("{", "[", "(") or len(said) > MAX_REPAIR or depth_of(said) > MAX_DEPTH:
        return None
    # Python warns of these on stderr, and a program may have turned warnings into errors.
    if not _RAW_STRING.search(said):
        said = _BAD_ESCAPE.sub(_escaped, said)
    if _NUMBER_WITH_WORD.search(_PYTHON_STRING.sub("''", said)):
        return None
    try:
        value = _plain(ast.literal_eval(said))
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError, Warning):
        return None
    return ParsedValue(value, 0, len(text))


def _escaped(escape: re.Match[str]) -> str:
    """Return an escape of a Python string as Python reads it, without what it warns of."""
    if escape[2]:
        return f"\\u{int(escape[2], 8):04x}"
    return escape[1] or "\\\\"


def _plain(value: object) -> Json:
    """Return a Python literal as JSON. Raises ValueError for what JSON has no form for."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return value.decode()
        case list() | tuple():
            return [_plain(one) for one in value]
        case dict():
            return {key if isinstance(key, str) else str(_plain(key)): _plain(inner) for key, inner in value.items()}
        case _:
            raise ValueError(f"{type(value).__name__} has no form in JSON")


def repair_library_values(text: str, failed: tuple[int, ...]) -> Iterator[ParsedValue]:
    """Yield what the repair library makes of the fences, and of the text from each bracket that began nothing readable."""
    left = MAX_REPAIR
    rests = (_to_last_closer(text, start) for start in failed[:3])
    for body in dict.fromkeys((*fences(text), *filter(looks_like_data, rests))):
        if len(body) > left or not is_closed(body) or depth_of(body) > MAX_DEPTH:
            continue
        left -= len(body)
        yield from _repaired(body)


def _to_last_closer(text: str, start: int) -> str:
    """Return what stands up to the last closing bracket; the rest of the text, too, where brackets are still open there."""
    end = max(text.rfind("}"), text.rfind("]"))
    body = text[start : end + 1]
    closed = end > start and body.count("{") + body.count("[") <= body.count("}") + body.count("]")
    return body if closed else text[start:]


def _repaired(text: str) -> Iterator[ParsedValue]:
    import json_repair

    opener = re.search(r"[{\[]", text)
    if opener is None:
        return
    try:
        value = json_repair.loads(_CountedText(text), skip_json_loads=True)
    except (ValueError, RecursionError):
        return
    # Of {words in braces} the library makes a list.
    if isinstance(value, dict if opener.group() == "{" else list) and value:
        yield ParsedValue(value, 0, len(text), unsure=True)


class _CountedText(str):
    """A text of which the repair library reads so many characters and no more: for some texts it would read the square of their length."""

    __slots__ = ("_left",)
    _left: list[int]

    def __new__(cls, text: str, left: list[int] | None = None) -> _CountedText:
        """Begin to count; `left` is shared with the text that this one was made of."""
        made = super().__new__(cls, text)
        made._left = [REPAIR_STEPS * len(text) + REPAIR_STEPS_BESIDE] if left is None else left
        return made

    def __getitem__(self, place: SupportsIndex | slice) -> str:
        """Return characters. Raises ValueError where too many were asked for."""
        left = self._left
        left[0] -= 1
        if left[0] < 0:
            raise ValueError("the repair of this text takes too many steps")
        found = super().__getitem__(place)
        # The library joins what stands before a place with what it puts there, and goes on with that.
        return _CountedText(found, left) if isinstance(place, slice) and place.start is None else found

    def __add__(self, other: str) -> str:
        """Return both texts, still counted."""
        return _CountedText(super().__add__(other), self._left)

    def __radd__(self, other: str) -> str:
        """Return both texts, still counted."""
        return _CountedText(other + str(self), self._left)


_MAX_WRAPPERS = 4
_ARGUMENTS = ("arguments", "parameters", "input", "args", "kwargs")
_TOOL = frozenset(
    {"name", "tool", "tool_name", "function", "function_name", "recipient_name", "action", "type", "id", "call_id"}
)

Unwrapped = tuple[Json, tuple[str, ...]]


def forms(value: Json, known: Container[str]) -> Iterator[Unwrapped]:
    """Yield the value as it stands, then what is left after each wrapper, with the names of the wrappers removed off.

    A single key that is the schema's own (`known`) is no wrapper, whatever is wrong with its value.
    """
    removed: tuple[str, ...] = ()
    yield value, removed
    for _ in range(_MAX_WRAPPERS):
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in known:
            return
        inner = _inside(value)
        if inner is None:
            return
        wrapper, value = inner
        removed = (*removed, wrapper)
        yield value, removed


def _inside(value: Json) -> tuple[str, Json] | None:
    if isinstance(value, str):
        return _in_string(value)
    if isinstance(value, list):
        return ("array", value[0]) if len(value) == 1 else None
    return _in_object(value) if isinstance(value, dict) else None


def _in_string(value: str) -> tuple[str, Json] | None:
    if value.lstrip()[:1] not in ("{", "[", '"'):
        return None
    try:
        return "string", loads(value)
    except ValueError:
        return None


def _in_object(value: dict[str, Json]) -> tuple[str, Json] | None:
    if len(value) == 1:
        key = next(iter(value))
        return key, value[key]
    for key in _ARGUMENTS:
        if key in value and value.keys() - {key} <= _TOOL:
            return "tool_call", value[key]
    if isinstance(value.get("function"), dict) and value.keys() - {"function"} <= _TOOL:
        return "tool_call", value["function"]
    # The values were written into the shape of the schema itself.
    if value.get("type") == "object" and isinstance(value.get("properties"), dict):
        return "properties", value["properties"]
    return None
