"""Find the JSON in a text: the places where it may begin, lines that go on with it, and the best of what can be read."""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterable, Iterator
from itertools import pairwise
from typing import SupportsIndex

import msgspec
import tomli

from bardo.structured.bounds import MAX_DEPTH, MAX_JUDGED, MAX_REPAIR, REPAIR_STEPS, REPAIR_STEPS_BESIDE
from bardo.structured.coercion import accepted_types, coerce, means, members_of, sendable
from bardo.structured.completeness import in_sentence, is_closed, is_open, looks_like_data, settled
from bardo.structured.extraction import ErrorCode, Extraction, Json
from bardo.structured.lexemes import scalar
from bardo.structured.reading import ParsedValue
from bardo.structured.scanning import Scan, depth_of, loads, scan
from bardo.structured.validation import Checker
from bardo.values.once import pattern

_FENCE = pattern(
    r"^[ \t>*-]{0,8}(?P<fence>`{3,}|~{3,})[^\n`]{0,40}\n(?P<body>.*?)(?:^[ \t>]{0,8}(?P=fence)|\Z)", re.M | re.S
)
_HEADLESS = pattern(r"(?:json\s{1,5})?(?P<members>[\"'“][^\"'“”\n{}\[\]]{1,100}[\"'”]\s{0,5}:.*)", re.S)
_ESCAPED = pattern(r"[{\[]\s{0,50}\\+[\"n]")
_BAD_ESCAPE = pattern(r"(\\\\)|\\(?![\\'\"abfnrtv0-7xNuU\n])|\\([4-7][0-7]{2})")
_PYTHON_STRING = pattern(r"\"(?:\\.|[^\"\\])*+(?:\"|\\?\Z)|'(?:\\.|[^'\\])*+(?:'|\\?\Z)", re.S)
_RAW_STRING = pattern(r"\b[bB]?[rR][bB]?[\"']")
_NUMBER_WITH_WORD = pattern(r"(?<![\w.])\d[\w.]*(?:and|else|for|if|in|is|not|or)\b")
_INLINE = pattern(r"`+|'|\$+")


def fences(text: str) -> list[str]:
    """Return what stands in the fences of a text, the last one closed or not."""
    return [fence.group("body") for fence in _FENCE.finditer(text)]


def whole(text: str) -> Iterator[ParsedValue]:
    """Yield the text itself, or what one fence or quotation mark holds, where that is one JSON value of any kind."""
    for candidate in (text, *fences(text), _unquoted(text)):
        trimmed = candidate.strip().removeprefix("\ufeff")
        if trimmed[:1] in ("{", "["):
            continue
        try:
            yield ParsedValue(loads(trimmed), 0, len(text), strict=True)
        except ValueError:
            continue


def _unquoted(text: str) -> str:
    trimmed = text.strip()
    mark = _INLINE.match(trimmed)
    return trimmed.removeprefix(mark.group()).removesuffix(mark.group()) if mark else trimmed


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
        unescaped = loads('"' + text[:end].replace("\n", "\\n") + '"')
    except ValueError:
        return ""
    return unescaped if isinstance(unescaped, str) else ""


def python_literal(text: str) -> ParsedValue | None:
    """Return what a Python literal says that begins and ends with brackets."""
    literal = text.strip()
    if literal[:1] not in ("{", "[", "(") or len(literal) > MAX_REPAIR or depth_of(literal) > MAX_DEPTH:
        return None
    # Python warns of these on stderr, and a program may have turned warnings into errors.
    if not _RAW_STRING.search(literal):
        literal = _BAD_ESCAPE.sub(_escaped, literal)
    if _NUMBER_WITH_WORD.search(_PYTHON_STRING.sub("''", literal)):
        return None
    try:
        value = _plain(ast.literal_eval(literal))
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
            return [_plain(item) for item in value]
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
        part = super().__getitem__(place)
        # The library joins what stands before a place with what it puts there, and goes on with that.
        return _CountedText(part, left) if isinstance(place, slice) and place.start is None else part

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
    """Yield the value as it stands, then the value inside each wrapper, with the names of the wrappers removed.

    A single key that is the schema's own (`known`) is no wrapper, even if its value is wrong.
    """
    removed: tuple[str, ...] = ()
    yield value, removed
    for _ in range(_MAX_WRAPPERS):
        if isinstance(value, dict) and len(value) == 1 and next(iter(value)) in known:
            return
        if isinstance(value, str):
            inner = _in_string(value)
        elif isinstance(value, list):
            inner = ("array", value[0]) if len(value) == 1 else None
        else:
            inner = _in_object(value) if isinstance(value, dict) else None
        if inner is None:
            return
        wrapper, value = inner
        removed = (*removed, wrapper)
        yield value, removed


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


_MAX_LINES = 2000
# The time it takes for a dotted key grows with the square of its length.
_MAX_TOML = 10_000
_LINE = pattern(
    r"(?P<indent>[ \t]*)(?P<dash>(?:[-*+]|\d+[.)])[ \t]+)?"
    r"(?:(?P<mark>[*_`\"']{0,3})(?P<key>[\w$][\w$ .-]{0,80}?)(?:(?P=mark)[ \t]*[:=]|[:=](?P=mark))(?:[ \t]+|$|(?<==)))?(?P<rest>.*)"
)
_FENCE_LINE = pattern(r"^[ \t>]{0,20}(?:`{3,}|~{3,}).*$", re.M)
_TAG = pattern(r"<([\w.-]{1,80})>([^<]{0,10000})</\1>")
_RULE = pattern(r"[\s|:-]*")


def from_lines(text: str, keys: frozenset[str], *, alone: bool = False) -> Json:
    """Return the object or array that the lines of a text say, or None if they say none. `keys` are the keys that may appear.

    `alone`: nothing but the data may stand in the text.
    """
    plain = _FENCE_LINE.sub("", text).strip("\n")
    if not keys or len(plain.splitlines()) > _MAX_LINES:
        return None
    for read in (_toml, _outline, _table, _tags):
        members = read(plain, keys)
        if members and not (alone and _has_prose(plain, keys)):
            return members
    return None


def _has_prose(text: str, keys: frozenset[str]) -> bool:
    """Whether a line of a text is no part of its data."""
    lines = [line for line in _TAG.sub("", text).splitlines() if line.strip(" -.|<>/")]
    return any(not (told.key or told.item or "|" in line) for line in lines for told in [_line(line, keys)])


def _toml(text: str, keys: frozenset[str]) -> Json:
    if len(text) > _MAX_TOML:
        return None
    try:
        table = tomli.loads(text)
    except (tomli.TOMLDecodeError, RecursionError):
        return None
    return table if table.keys() <= keys and _is_json(table) else None


def _is_json(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_json, value.values()))
    if isinstance(value, list):
        return all(map(_is_json, value))
    return value is None or isinstance(value, str | int | float | bool)


class _Line(msgspec.Struct, frozen=True):
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
    match = _LINE.match(line.expandtabs())
    assert match is not None
    key = match["key"]
    if key is not None and key not in keys:
        return _Line(
            len(match["indent"]),
            bool(match["dash"]),
            None,
            line.strip().removeprefix((match["dash"] or "").strip()).strip(),
        )
    return _Line(len(match["indent"]), bool(match["dash"]), key, match["rest"].strip())


def _block(lines: list[_Line], at: int, indent: int, depth: int) -> tuple[Json, int]:
    """Return what the lines from `at` on say that stand at this indent, and where they end."""
    if depth > 20:
        return None, at
    first = lines[at]
    if first.item and first.key is None:
        items: list[Json] = []
        while at < len(lines) and lines[at].item and lines[at].key is None and lines[at].indent == indent:
            items.append(_read_value(lines[at].rest))
            at += 1
        return items, at
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


def _read_value(text: str) -> Json:
    try:
        return loads(text)
    except ValueError:
        quoted = re.fullmatch(r"(['\"])(.*)\1", text)
        return quoted.group(2) if quoted else scalar(re.sub(r"\s#\s.*$", "", text))[0]


def _table(text: str, keys: frozenset[str]) -> Json:
    rows = [
        [cell.strip().strip("*`") for cell in line.strip().strip("|").split("|")]
        for line in text.splitlines()
        if line.count("|") >= 2 and not ("--" in line and _RULE.fullmatch(line))
    ]
    if len(rows) < 2 or not set(rows[0]) <= keys:
        return None
    head = rows[0]
    return [dict(zip(head, map(_read_value, row), strict=True)) for row in rows[1:] if len(row) == len(head)]


def _tags(text: str, keys: frozenset[str]) -> Json:
    pairs = [(key, content) for key, content in _TAG.findall(text) if key in keys]
    return (
        {key: _read_value(content.strip()) for key, content in pairs}
        if len({key for key, _ in pairs}) == len(pairs)
        else None
    )


_MAX_WORD = 200
# An object that was cut within its first key.
_BEGINS = pattern(r"\{\s{0,50}[\"']\w")


def may_answer(found: ParsedValue, plain: str, *, cut: bool) -> bool:
    """Return whether a value may be the answer: no part of a sentence, and complete where the reply was cut."""
    return not in_sentence(found, plain) and (not cut or settled(found, plain))


class Search(msgspec.Struct, frozen=True):
    """The readings of one text, judged by one schema, the surest first."""

    judge: Checker
    text: str

    # One value

    def _forms(self, value: Json) -> Iterator[tuple[Json, tuple[str, ...]]]:
        schema = self.judge.schema
        return forms(value, members_of(schema, schema)[0])

    def _fit(self, candidate: ParsedValue, *, changing: bool = False) -> Extraction | None:
        """Return the first of a value's forms that conforms, with its types changed where `changing`."""
        for value, wrappers in self._forms(candidate.value):
            value, lost = sendable(value)
            changed: tuple[str, ...] = ()
            if changing:
                value, changed = coerce(value, self.judge.schema)
            if self.judge.accepts(value) and (not wrappers or means(self.judge.schema, value)):
                return self._result(candidate, value, wrappers, (*lost, *changed))
        return None

    def _result(
        self, candidate: ParsedValue, value: Json, wrappers: tuple[str, ...], coerced: tuple[str, ...]
    ) -> Extraction:
        return Extraction(
            value=value,
            truncated=bool(candidate.cut),
            repaired=not candidate.strict,
            coerced=coerced,
            unwrapped=wrappers,
            text=self.text,
        )

    def as_it_stands(self, found: Iterable[ParsedValue]) -> Extraction | None:
        """Return the last value that conforms as it was written."""
        return _first(self._fit(candidate) for candidate in _last(found))

    def _repaired_value(self, candidates: Iterable[ParsedValue]) -> Extraction | None:
        return _first(self._fit(candidate, changing=True) for candidate in _last(candidates))

    # A whole text

    def repaired(self, plain: str, *, cut: bool) -> Extraction:
        """Try every reading, the surest first."""
        seen = scan(plain)
        if seen.exhausted:
            return self._exhausted(seen)
        candidates = [*whole(plain), *(candidate for candidate in seen.found if not in_sentence(candidate, plain))]
        if cut:
            closed = [candidate for candidate in candidates if settled(candidate, plain)]
            return self.as_it_stands(closed) or self._repaired_value(closed) or self._truncated_error(candidates, plain)
        if (ended := self._truncated(candidates, plain)) is not None:
            return ended
        conforming = _first(self._readings(plain, seen, candidates))
        return conforming if conforming is not None else self._failed(candidates, plain)

    def _readings(self, plain: str, seen: Scan, candidates: list[ParsedValue]) -> Iterator[Extraction | None]:
        headless = restored(plain)
        if headless is not None:
            yield self._repaired_value(candidate for candidate in headless.found if candidate.cut != "scalar")
        sure = [candidate for candidate in candidates if not candidate.unsure and not candidate.cut]
        yield self.as_it_stands(candidate for candidate in sure if candidate.strict)
        yield self.as_it_stands(sure)
        yield self._repaired_value(sure)
        if candidates and is_open(candidates[-1], plain):
            return
        yield self._repaired_value(filter(None, map(python_literal, (plain, *fences(plain)))))
        parts = [part for part in candidates if part.end > part.start and isinstance(part.value, dict | list)]
        between = (plain[left.end : right.start] for left, right in pairwise(parts))
        if len(parts) < 2 or parts[-1].cut == "scalar" or any(gap.strip(" \t\r\n,;") for gap in between):
            joined_values = []
        else:
            joined_values = [
                ParsedValue([part.value for part in parts], parts[0].start, parts[-1].end, cut=parts[-1].cut)
            ]
        yield self._repaired_value(joined_values)
        yield self._repaired_value(part for part in candidates if part.unsure and part.cut != "scalar")
        yield self._bare_word(plain)
        if not any(candidate.cut for candidate in seen.found):
            yield self._from_lines(plain)
        yield from self._salvaged(plain, seen)

    def _from_lines(self, plain: str) -> Extraction | None:
        # Where a schema demands nothing, one line of prose with a colon would do.
        # Every key a schema names anywhere.
        names: set[str] = set()
        waiting: list[Json] = [self.judge.schema]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                properties = node.get("properties")
                names.update(properties if isinstance(properties, dict) else ())
                waiting.extend(node.values())
            elif isinstance(node, list):
                waiting.extend(node)
        members = from_lines(plain, frozenset(names), alone=self.judge.accepts({}))
        return None if members is None else self._fit(ParsedValue(members, 0, len(plain)), changing=True)

    def _bare_word(self, plain: str) -> Extraction | None:
        """Return a text of one bare word or number. A schema for any string takes no part: there, prose would be an answer.

        Only JSON's own null is null: "None" is an answer in words.
        """
        word = plain.strip().strip("*`_'\" ")
        value, is_scalar = scalar(word)
        schema = self.judge.schema
        if (
            value is None
            or not word
            or len(word) > _MAX_WORD
            or not (is_scalar or (isinstance(schema, dict) and {"enum", "const"} & schema.keys()))
        ):
            return None
        return self._fit(ParsedValue(value, 0, len(plain)))

    def _salvaged(self, plain: str, seen: Scan) -> Iterator[Extraction | None]:
        doubtful = tuple(value.start for value in seen.found if value.unsure or value.cut)
        if not doubtful and not seen.failed:
            return
        for value in repair_library_values(plain, (*seen.failed, *doubtful)):
            result = self._fit(value, changing=True)
            yield result if result is None else msgspec.structs.replace(result, salvaged=True)

    # Failures

    def _truncated(self, candidates: list[ParsedValue], plain: str) -> Extraction | None:
        """Return the last value where the text ended inside it: an example before it must not pass for the answer."""
        last = candidates[-1] if candidates else None
        if last is None or not last.cut:
            return None
        if last.cut == "scalar" and plain.rstrip()[-1:] in ("}", "]") and not is_open(last, plain):
            return None
        fitting = self._fit(last, changing=True) if last.cut == "closers" else None
        return fitting or self._partly(last, plain)

    def _partly(self, last: ParsedValue, plain: str) -> Extraction | None:
        """Return what a value holds that the text ended in, as an error, or None if it does not look like the answer."""
        partial = next((form for form, _ in self._forms(last.value) if self._may_be(form)), None)
        if not partial and not (last.value == {} and _BEGINS.match(plain, last.start)):
            return None
        value, _ = coerce(sendable(partial or {})[0], self.judge.schema)
        result = self._error("truncated", "the text ends inside the answer", value)
        return msgspec.structs.replace(result, repaired=True)

    def _truncated_error(self, candidates: list[ParsedValue], plain: str) -> Extraction:
        """Return the error of a reply that was cut, with what it holds."""
        last = candidates[-1] if candidates else None
        partly = self._partly(last, plain) if last is not None else None
        return partly or self._error("truncated", "the reply ended before its answer was complete", None, judged=False)

    def _may_be(self, value: Json) -> bool:
        """Whether a partial value looks like the answer: of the right kind, with a key of the schema."""
        schema = self.judge.schema
        if isinstance(value, dict):
            members = members_of(schema, schema)[0]
            return "object" in accepted_types(schema, schema) and (not members or not members.keys().isdisjoint(value))
        return isinstance(value, list) and "array" in accepted_types(schema, schema)

    def _failed(self, candidates: list[ParsedValue], plain: str) -> Extraction:
        data = [candidate for candidate in candidates if not candidate.bare] or candidates
        if not data:
            why = "the text is empty" if not plain.strip() else "there is no JSON in the text"
            return self._error("no_json", why, None, judged=False)
        if is_open(data[-1], plain):
            return self._truncated_error(data, plain)
        nearest = min(
            (form for form, _ in self._forms(sendable(data[-1].value)[0])),
            key=lambda form: len(self.judge.failures(form)),
        )
        return self._error("invalid", "the answer does not conform to its schema", nearest)

    def _exhausted(self, seen: Scan) -> Extraction:
        """Return the error of a text that was not looked through to its end: a value found in it may not be its last."""
        if seen.found:
            return self.too_complex("the text holds more values than are looked at")
        return self._error("no_json", "the text holds too many brackets that begin no JSON", None, judged=False)

    def too_complex(self, why: str) -> Extraction:
        """Return the error of a text that would cost more than it is worth."""
        return self._error("too_complex", why, None, judged=False)

    def _error(self, code: ErrorCode, message: str, value: Json, *, judged: bool = True) -> Extraction:
        failures = self.judge.failures(value) if judged else ()
        first = f": {failures[0]}" if failures else ""
        return Extraction(
            value=value,
            error=code,
            message=message + first,
            failures=failures,
            truncated=code == "truncated",
            text=self.text,
        )


def _first(results: Iterable[Extraction | None]) -> Extraction | None:
    return next((result for result in results if result is not None), None)


def _last(candidates: Iterable[ParsedValue]) -> Iterable[ParsedValue]:
    return reversed(list(candidates)[-MAX_JUDGED:])
