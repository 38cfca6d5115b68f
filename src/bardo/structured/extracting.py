"""Read one typed answer out of a model's text: strictly where it is JSON, with bounded repair where it is almost JSON.

The caller's own schema is the judge of every reading. The last conforming value wins, and text inside reasoning markup is never the
answer. `extract_strict` takes microseconds; `extract_repair` may take milliseconds for each thousand characters of broken text, so
whoever serves others runs it in a thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from bardo.structured.bounds import MAX_READ
from bardo.structured.candidates import fences, python_literal, restored, salvaged, whole
from bardo.structured.coercion import accepted_types, coerce, means, members_of, sendable
from bardo.structured.extraction import ErrorCode, Extraction, Json, JsonSchema
from bardo.structured.lexemes import scalar
from bardo.structured.lines import from_lines
from bardo.structured.markup import without_reasoning
from bardo.structured.reading import Found
from bardo.structured.scanning import Scan, scan, strict_values
from bardo.structured.shells import forms
from bardo.structured.validation import Checker, checker

_MAX_WORD = 200
# An object that was cut within its first key.
_BEGINS = re.compile(r"\{\s{0,50}[\"']\w")


def extract(
    text: str,
    schema: JsonSchema | Checker,
    *,
    cut: bool = False,
    refused: bool = False,
    reasoning_removed: bool = False,
) -> Extraction:
    """Return the answer a text holds, judged by `schema`; what is wrong with it is told in the Extraction, never raised.

    `cut`: the provider said that the reply ended at its token limit. `refused`: it said that the model refused. `reasoning_removed`:
    the text is known to hold no thinking markup. Raises InvalidRequest where the schema is not one that can be used.
    """
    judge = checker(schema)
    found = extract_strict(text, judge, refused=refused, reasoning_removed=reasoning_removed)
    return found if found is not None else extract_repair(text, judge, cut=cut, reasoning_removed=reasoning_removed)


def extract_sound(text: str, judge: Checker) -> Extraction | None:
    """Return the answer where the text is one JSON value and nothing else, and conforms."""
    try:
        value = msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None
    return Extraction(value=value, text=text) if judge.accepts(value) else None


def extract_strict(
    text: str, schema: JsonSchema | Checker, *, refused: bool = False, reasoning_removed: bool = False
) -> Extraction | None:
    """Return the answer where it is sound JSON, alone or with prose around it; None where `extract_repair` has to look."""
    judge = checker(schema)
    if refused:
        return Extraction(error="refusal", message="the model refused to answer", text=text)
    if (sound := extract_sound(text, judge)) is not None:
        return sound
    found = strict_values(text if reasoning_removed else without_reasoning(text))
    return _Search(judge, text).as_it_stands(found) if found else None


def extract_repair(
    text: str, schema: JsonSchema | Checker, *, cut: bool = False, reasoning_removed: bool = False
) -> Extraction:
    """Return the answer of a text `extract_strict` found none in. Work is bounded whatever the text is."""
    plain = text if reasoning_removed else without_reasoning(text)
    search = _Search(checker(schema), text)
    if len(plain) > MAX_READ:
        return Extraction(
            error="no_json", message=f"no JSON, and {len(plain):,} characters are too many to repair", text=text
        )
    return search.repaired(plain.removeprefix("\ufeff"), cut=cut)


@dataclass(frozen=True, slots=True)
class _Search:
    judge: Checker
    text: str

    # One value

    def _forms(self, value: Json) -> Iterator[tuple[Json, tuple[str, ...]]]:
        schema = self.judge.schema
        return forms(value, members_of(schema, schema)[0])

    def _fit(self, found: Found, *, changing: bool = False) -> Extraction | None:
        """Return the first of a value's forms that conforms, with its types changed where `changing`."""
        for value, shells in self._forms(found.value):
            value, lost = sendable(value)
            changed: tuple[str, ...] = ()
            if changing:
                value, changed = coerce(value, self.judge.schema)
            if self.judge.accepts(value) and (not shells or means(self.judge.schema, value)):
                return self._result(found, value, shells, (*lost, *changed))
        return None

    def _result(self, found: Found, value: Json, shells: tuple[str, ...], coerced: tuple[str, ...]) -> Extraction:
        return Extraction(
            value=value,
            truncated=bool(found.cut),
            repaired=not found.strict,
            coerced=coerced,
            unwrapped=shells,
            text=self.text,
        )

    def as_it_stands(self, found: Iterable[Found]) -> Extraction | None:
        """Return the last value that conforms as it was written."""
        return _first(self._fit(one) for one in reversed(list(found)))

    def _changed(self, found: Iterable[Found]) -> Extraction | None:
        return _first(self._fit(one, changing=True) for one in reversed(list(found)))

    # A whole text

    def repaired(self, plain: str, *, cut: bool) -> Extraction:
        """Try every reading, the surest first."""
        seen = scan(plain)
        found = [*whole(plain), *(one for one in seen.found if _is_data(one, plain))]
        if (ended := self._truncated(found, plain, cut=cut)) is not None:
            return ended
        conforming = _first(self._readings(plain, seen, found))
        return conforming if conforming is not None else self._failed(found, plain, cut=cut)

    def _readings(self, plain: str, seen: Scan, found: list[Found]) -> Iterator[Extraction | None]:
        headless = restored(plain)
        if headless is not None:
            yield self._changed(headless.found)
        sure = [one for one in found if not one.unsure and not one.cut]
        yield self.as_it_stands(one for one in sure if one.strict)
        yield self.as_it_stands(sure)
        yield self._changed(sure)
        yield self._changed(filter(None, map(python_literal, (plain, *fences(plain)))))
        yield self._changed(_joined(found, plain))
        yield self._changed(one for one in found if one.unsure and one.cut != "scalar")
        yield self._word(plain)
        yield self._from_lines(plain)
        yield from self._salvaged(plain, seen)

    def _from_lines(self, plain: str) -> Extraction | None:
        said = from_lines(plain, _keys(self.judge.schema))
        return None if said is None else self._fit(Found(said, 0, len(plain)), changing=True)

    def _word(self, plain: str) -> Extraction | None:
        """Return a text of one bare word or number. A schema for any string takes no part: there, prose would be an answer."""
        said = plain.strip().strip("*`_'\" ")
        value, known = scalar(said)
        schema = self.judge.schema
        if (
            not said
            or len(said) > _MAX_WORD
            or not (known or (isinstance(schema, dict) and {"enum", "const"} & schema.keys()))
        ):
            return None
        return self._fit(Found(value, 0, len(plain)))

    def _salvaged(self, plain: str, seen: Scan) -> Iterator[Extraction | None]:
        doubtful = tuple(one.start for one in seen.found if one.unsure or one.cut)
        if not doubtful and not seen.failed:
            return
        for one in salvaged(plain, (*seen.failed, *doubtful)):
            result = self._fit(one, changing=True)
            yield result if result is None else msgspec.structs.replace(result, salvaged=True)

    # Failures

    def _truncated(self, found: list[Found], plain: str, *, cut: bool) -> Extraction | None:
        """Return the last value where the text ended inside it: an example before it must not pass for the answer."""
        last = found[-1] if found else None
        if last is None or not last.cut or (last.cut == "scalar" and not cut and plain.rstrip()[-1:] in ("}", "]")):
            return None
        fitting = self._fit(last, changing=True)
        if last.cut == "closers" and fitting is not None and not cut:
            return fitting
        partial = next((form for form, _ in self._forms(last.value) if self._may_be(form)), None)
        if not partial and not (last.value == {} and _BEGINS.match(plain, last.start)):
            return None
        value, _ = coerce(sendable(partial or {})[0], self.judge.schema)
        result = self._error("truncated", "the text ends inside the answer", value)
        return msgspec.structs.replace(result, truncated=True, repaired=True)

    def _may_be(self, value: Json) -> bool:
        """Whether a partial value looks like the answer: of the right kind, with a key of the schema."""
        schema = self.judge.schema
        if isinstance(value, dict):
            known = members_of(schema, schema)[0]
            return "object" in accepted_types(schema, schema) and (not known or not known.keys().isdisjoint(value))
        return isinstance(value, list) and "array" in accepted_types(schema, schema)

    def _failed(self, found: list[Found], plain: str, *, cut: bool) -> Extraction:
        data = [one for one in found if not one.bare] or found
        if not data:
            why = "the text is empty" if not plain.strip() else "there is no JSON in the text"
            return self._error("truncated" if cut else "no_json", why, None, judged=False)
        nearest = min(
            (form for form, _ in self._forms(sendable(data[-1].value)[0])),
            key=lambda form: len(self.judge.failures(form)),
        )
        return self._error("truncated" if cut else "invalid", "the answer does not conform to its schema", nearest)

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


def _is_data(found: Found, plain: str) -> bool:
    """Words in brackets within a sentence are prose; at the beginning of a line they may be an answer."""
    return not found.bare or not plain[: found.start].rpartition("\n")[2].strip()


def _joined(found: list[Found], plain: str) -> list[Found]:
    """Return values that stand one after the other, a line or a comma apart, as one array."""
    parts = [one for one in found if one.end > one.start and isinstance(one.value, dict | list)]
    between = (plain[left.end : right.start] for left, right in pairwise(parts))
    if len(parts) < 2 or any(gap.strip(" \t\r\n,;") for gap in between):
        return []
    return [Found([one.value for one in parts], parts[0].start, parts[-1].end, cut=parts[-1].cut)]


def _keys(schema: JsonSchema) -> frozenset[str]:
    """Return every key a schema names anywhere."""
    found: set[str] = set()
    waiting: list[Json] = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            properties = one.get("properties")
            found.update(properties if isinstance(properties, dict) else ())
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return frozenset(found)
