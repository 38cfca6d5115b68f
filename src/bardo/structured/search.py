"""Try every reading of one text, and return the last value that conforms, or what is wrong with the text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from bardo.structured.bounds import MAX_JUDGED
from bardo.structured.candidates import fences, forms, python_literal, repair_library_values, restored, whole
from bardo.structured.coercion import accepted_types, coerce, means, members_of, sendable
from bardo.structured.completeness import in_sentence, is_open, settled
from bardo.structured.extraction import ErrorCode, Extraction, Json, JsonSchema
from bardo.structured.lexemes import scalar
from bardo.structured.lines import from_lines
from bardo.structured.reading import ParsedValue
from bardo.structured.scanning import Scan, scan
from bardo.structured.validation import Checker

_MAX_WORD = 200
# An object that was cut within its first key.
_BEGINS = re.compile(r"\{\s{0,50}[\"']\w")


def may_answer(found: ParsedValue, plain: str, *, cut: bool) -> bool:
    """Return whether a value may be the answer: no part of a sentence, and complete where the reply was cut."""
    return not in_sentence(found, plain) and (not cut or settled(found, plain))


@dataclass(frozen=True, slots=True)
class Search:
    """The readings of one text, judged by one schema, the surest first."""

    judge: Checker
    text: str

    # One value

    def _forms(self, value: Json) -> Iterator[tuple[Json, tuple[str, ...]]]:
        schema = self.judge.schema
        return forms(value, members_of(schema, schema)[0])

    def _fit(self, found: ParsedValue, *, changing: bool = False) -> Extraction | None:
        """Return the first of a value's forms that conforms, with its types changed where `changing`."""
        for value, wrappers in self._forms(found.value):
            value, lost = sendable(value)
            changed: tuple[str, ...] = ()
            if changing:
                value, changed = coerce(value, self.judge.schema)
            if self.judge.accepts(value) and (not wrappers or means(self.judge.schema, value)):
                return self._result(found, value, wrappers, (*lost, *changed))
        return None

    def _result(
        self, found: ParsedValue, value: Json, wrappers: tuple[str, ...], coerced: tuple[str, ...]
    ) -> Extraction:
        return Extraction(
            value=value,
            truncated=bool(found.cut),
            repaired=not found.strict,
            coerced=coerced,
            unwrapped=wrappers,
            text=self.text,
        )

    def as_it_stands(self, found: Iterable[ParsedValue]) -> Extraction | None:
        """Return the last value that conforms as it was written."""
        return _first(self._fit(one) for one in _last(found))

    def _repaired_value(self, found: Iterable[ParsedValue]) -> Extraction | None:
        return _first(self._fit(one, changing=True) for one in _last(found))

    # A whole text

    def repaired(self, plain: str, *, cut: bool) -> Extraction:
        """Try every reading, the surest first."""
        seen = scan(plain)
        if seen.exhausted:
            return self._exhausted(seen)
        found = [*whole(plain), *(one for one in seen.found if not in_sentence(one, plain))]
        if cut:
            closed = [one for one in found if settled(one, plain)]
            return self.as_it_stands(closed) or self._repaired_value(closed) or self._truncated_error(found, plain)
        if (ended := self._truncated(found, plain)) is not None:
            return ended
        conforming = _first(self._readings(plain, seen, found))
        return conforming if conforming is not None else self._failed(found, plain)

    def _readings(self, plain: str, seen: Scan, found: list[ParsedValue]) -> Iterator[Extraction | None]:
        headless = restored(plain)
        if headless is not None:
            yield self._repaired_value(one for one in headless.found if one.cut != "scalar")
        sure = [one for one in found if not one.unsure and not one.cut]
        yield self.as_it_stands(one for one in sure if one.strict)
        yield self.as_it_stands(sure)
        yield self._repaired_value(sure)
        if found and is_open(found[-1], plain):
            return
        yield self._repaired_value(filter(None, map(python_literal, (plain, *fences(plain)))))
        yield self._repaired_value(_joined_values(found, plain))
        yield self._repaired_value(one for one in found if one.unsure and one.cut != "scalar")
        yield self._bare_word(plain)
        if not any(one.cut for one in seen.found):
            yield self._from_lines(plain)
        yield from self._salvaged(plain, seen)

    def _from_lines(self, plain: str) -> Extraction | None:
        # Where a schema demands nothing, one line of prose with a colon would do.
        said = from_lines(plain, _keys(self.judge.schema), alone=self.judge.accepts({}))
        return None if said is None else self._fit(ParsedValue(said, 0, len(plain)), changing=True)

    def _bare_word(self, plain: str) -> Extraction | None:
        """Return a text of one bare word or number. A schema for any string takes no part: there, prose would be an answer.

        Only JSON's own null is null: "None" is an answer in words.
        """
        said = plain.strip().strip("*`_'\" ")
        value, known = scalar(said)
        schema = self.judge.schema
        if (
            value is None
            or not said
            or len(said) > _MAX_WORD
            or not (known or (isinstance(schema, dict) and {"enum", "const"} & schema.keys()))
        ):
            return None
        return self._fit(ParsedValue(value, 0, len(plain)))

    def _salvaged(self, plain: str, seen: Scan) -> Iterator[Extraction | None]:
        doubtful = tuple(one.start for one in seen.found if one.unsure or one.cut)
        if not doubtful and not seen.failed:
            return
        for one in repair_library_values(plain, (*seen.failed, *doubtful)):
            result = self._fit(one, changing=True)
            yield result if result is None else msgspec.structs.replace(result, salvaged=True)

    # Failures

    def _truncated(self, found: list[ParsedValue], plain: str) -> Extraction | None:
        """Return the last value where the text ended inside it: an example before it must not pass for the answer."""
        last = found[-1] if found else None
        if last is None or not last.cut:
            return None
        if last.cut == "scalar" and plain.rstrip()[-1:] in ("}", "]") and not is_open(last, plain):
            return None
        fitting = self._fit(last, changing=True) if last.cut == "closers" else None
        return fitting or self._partly(last, plain)

    def _partly(self, last: ParsedValue, plain: str) -> Extraction | None:
        """Return what a value holds that the text ended in, as an error; None where it does not look like the answer."""
        partial = next((form for form, _ in self._forms(last.value) if self._may_be(form)), None)
        if not partial and not (last.value == {} and _BEGINS.match(plain, last.start)):
            return None
        value, _ = coerce(sendable(partial or {})[0], self.judge.schema)
        result = self._error("truncated", "the text ends inside the answer", value)
        return msgspec.structs.replace(result, repaired=True)

    def _truncated_error(self, found: list[ParsedValue], plain: str) -> Extraction:
        """Return the error of a reply that was cut, with what it holds."""
        last = found[-1] if found else None
        partly = self._partly(last, plain) if last is not None else None
        return partly or self._error("truncated", "the reply ended before its answer was complete", None, judged=False)

    def _may_be(self, value: Json) -> bool:
        """Whether a partial value looks like the answer: of the right kind, with a key of the schema."""
        schema = self.judge.schema
        if isinstance(value, dict):
            known = members_of(schema, schema)[0]
            return "object" in accepted_types(schema, schema) and (not known or not known.keys().isdisjoint(value))
        return isinstance(value, list) and "array" in accepted_types(schema, schema)

    def _failed(self, found: list[ParsedValue], plain: str) -> Extraction:
        data = [one for one in found if not one.bare] or found
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


def _last(found: Iterable[ParsedValue]) -> Iterable[ParsedValue]:
    return reversed(list(found)[-MAX_JUDGED:])


def _joined_values(found: list[ParsedValue], plain: str) -> list[ParsedValue]:
    """Return values that stand one after the other, a line or a comma apart, as one array."""
    parts = [one for one in found if one.end > one.start and isinstance(one.value, dict | list)]
    between = (plain[left.end : right.start] for left, right in pairwise(parts))
    if len(parts) < 2 or parts[-1].cut == "scalar" or any(gap.strip(" \t\r\n,;") for gap in between):
        return []
    return [ParsedValue([one.value for one in parts], parts[0].start, parts[-1].end, cut=parts[-1].cut)]


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
