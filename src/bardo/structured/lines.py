"""Read answers written as lines: `key: value` as in YAML, `key = value` as in TOML, lists of `- item`, Markdown tables, flat tags.

Only keys the schema knows are read, so that prose with a colon in it is never data.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

from bardo.structured.extraction import Json
from bardo.structured.lexemes import scalar
from bardo.structured.scanning import loads

_MAX_LINES = 2000
# The time tomllib takes for a dotted key grows with the square of its length.
_MAX_TOML = 10_000
_LINE = re.compile(
    r"(?P<indent>[ \t]*)(?P<dash>(?:[-*+]|\d+[.)])[ \t]+)?"
    r"(?:(?P<mark>[*_`\"']{0,3})(?P<key>[\w$][\w$ .-]{0,80}?)(?:(?P=mark)[ \t]*[:=]|[:=](?P=mark))(?:[ \t]+|$|(?<==)))?(?P<rest>.*)"
)
_FENCE_LINE = re.compile(r"^[ \t>]{0,20}(?:`{3,}|~{3,}).*$", re.M)
_TAG = re.compile(r"<([\w.-]{1,80})>([^<]{0,10000})</\1>")
_RULE = re.compile(r"[\s|:-]*")


def from_lines(text: str, keys: frozenset[str], *, alone: bool = False) -> Json:
    """Return the object or array that the lines of a text say, None where they say none. `keys` are the keys that may appear.

    `alone`: nothing but the data may stand in the text.
    """
    plain = _FENCE_LINE.sub("", text).strip("\n")
    if not keys or len(plain.splitlines()) > _MAX_LINES:
        return None
    for read in (_toml, _outline, _table, _tags):
        found = read(plain, keys)
        if found and not (alone and _has_prose(plain, keys)):
            return found
    return None


def _has_prose(text: str, keys: frozenset[str]) -> bool:
    """Whether a line of a text is no part of its data."""
    lines = [line for line in _TAG.sub("", text).splitlines() if line.strip(" -.|<>/")]
    return any(not (told.key or told.item or "|" in line) for line in lines for told in [_line(line, keys)])


def _toml(text: str, keys: frozenset[str]) -> Json:
    if len(text) > _MAX_TOML:
        return None
    try:
        found = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    return found if found.keys() <= keys and _is_json(found) else None


def _is_json(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float | bool)


@dataclass(frozen=True, slots=True)
class _Line:
    indent: int
    item: bool
    key: str | None
    rest: str


def _outline(text: str, keys: frozenset[str]) -> Json:
    lines = [_line(line, keys) for line in text.splitlines() if line.strip() and line.strip() not in ("---", "...")]
    # Sentences before and after the data are left out; one in the middle of it is not.
    told = [place for place, line in enumerate(lines) if line.key or line.item]
    if not told:
        return None
    block = lines[told[0] : told[-1] + 1]
    if not any(line.key for line in block):
        return None
    value, end = _block(block, 0, block[0].indent, 0)
    return value if end == len(block) else None


def _line(line: str, keys: frozenset[str]) -> _Line:
    found = _LINE.match(line.expandtabs())
    assert found is not None
    key = found["key"]
    if key is not None and key not in keys:
        return _Line(
            len(found["indent"]),
            bool(found["dash"]),
            None,
            line.strip().removeprefix((found["dash"] or "").strip()).strip(),
        )
    return _Line(len(found["indent"]), bool(found["dash"]), key, found["rest"].strip())


def _block(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Json, int]:
    """Return what the lines from `at` on say that stand at this indent, and where they end."""
    if depth > 20:
        return None, at
    first = lines[at]
    if first.item and first.key is None:
        return _items(lines, at, indent)
    members: dict[str, Json] = {}
    many: list[Json] = []
    start = at
    while at < len(lines) and lines[at].indent >= indent and lines[at].key is not None:
        line = lines[at]
        if line.indent > indent + 4 or (line.item and at > start and line.key in members):
            many.append(members)
            members = {}
        value, at = _member(lines, at, depth)
        members[str(line.key)] = value
    return ([*many, members] if many else members), at


def _member(lines: list[_Line], at: int, depth: int) -> tuple[Json, int]:
    line = lines[at]
    if line.rest:
        return _read_value(line.rest), at + 1
    deeper = at + 1 < len(lines) and (lines[at + 1].indent > line.indent or (lines[at + 1].item and not line.item))
    return _block(lines, at + 1, lines[at + 1].indent, depth + 1) if deeper else (None, at + 1)


def _items(lines: list[_Line], at: int, indent: int) -> tuple[Json, int]:
    items: list[Json] = []
    while at < len(lines) and lines[at].item and lines[at].key is None and lines[at].indent == indent:
        items.append(_read_value(lines[at].rest))
        at += 1
    return items, at


def _read_value(text: str) -> Json:
    try:
        return loads(text)
    except ValueError:
        return _said_loosely(text)


def _said_loosely(text: str) -> Json:
    quoted = re.fullmatch(r"(['\"])(.*)\1", text)
    return quoted.group(2) if quoted else scalar(re.sub(r"\s#\s.*$", "", text))[0]


def _table(text: str, keys: frozenset[str]) -> Json:
    rows = [
        _cells(line)
        for line in text.splitlines()
        if line.count("|") >= 2 and not ("--" in line and _RULE.fullmatch(line))
    ]
    if len(rows) < 2 or not set(rows[0]) <= keys:
        return None
    head = rows[0]
    return [dict(zip(head, map(_read_value, row), strict=True)) for row in rows[1:] if len(row) == len(head)]


def _tags(text: str, keys: frozenset[str]) -> Json:
    found = [(key, said) for key, said in _TAG.findall(text) if key in keys]
    return (
        {key: _read_value(said.strip()) for key, said in found}
        if len({key for key, _ in found}) == len(found)
        else None
    )


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")]
