"""A typed answer of one subsystem: its JSON Schema, and how it is read out of JSON or free text."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Self

import msgspec

from bardo.golem.fields import issues_of, object_schema
from bardo.golem.free_text import from_words
from bardo.structured import Checker, Extraction, Failure, Json, ResponseSchema, UnusableAnswer, checker, extract


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A typed answer of one subsystem; it fills the `StructuredOutput` protocol. AnswerType of answers are Answers too."""

    @classmethod
    def schema(cls) -> ResponseSchema:
        """Return the schema to ask for: every member required, and no others."""
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        return ResponseSchema(name=name, schema=object_schema(cls), strict=True)

    @classmethod
    def prompt_guidance(cls) -> str:
        """Return what to add to a prompt where the schema cannot be enforced (002, `prompt_guidance`)."""
        written = msgspec.json.format(msgspec.json.encode(object_schema(cls)), indent=2).decode()
        return (
            f"\n\nRespond ONLY with valid JSON matching this structure:\n```json\n{written}\n```\n"
            "Do not include any text outside the JSON block."
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read JSON that conforms to the schema. Raises UnusableAnswer for any other text."""
        try:
            value = msgspec.json.decode(text)
        except (ValueError, RecursionError) as problem:
            raise UnusableAnswer(_refused("no_json", f"not JSON: {problem}", text)) from problem
        return cls.from_value(value, text=text)

    @classmethod
    def from_value(cls, value: Json, *, text: str | bytes = "") -> Self:
        """Take a decoded JSON value that conforms to the schema. Raises UnusableAnswer for any other value."""
        failures = _checker(cls).failures(value)
        if failures:
            raise UnusableAnswer(_refused("invalid", f"not a {cls.__name__}: {failures[0]}", text, failures))
        return msgspec.convert(value, cls)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read an answer out of free text: JSON in it if there is any that conforms, else its own words as well as they can be read.

        Reading words loses much: what is not said takes a careful default. Raises UnusableAnswer for a text without words.
        """
        found = extract(text, _checker(cls))
        if found.ok:
            return msgspec.convert(found.value, cls)
        if not re.search(r"[^\W_]", text):
            raise UnusableAnswer(found)
        return msgspec.convert(from_words(cls, text, found.value), cls)

    def validate(self, issues: list[str]) -> None:
        """Add one line to `issues` for each number out of its range and each word that is not in its list, parts included."""
        issues.extend(issues_of(self))


@cache
def _checker(kind: type[Answer]) -> Checker:
    return checker(object_schema(kind))


def _refused(code: Any, message: str, text: str | bytes, failures: tuple[Failure, ...] = ()) -> Extraction:
    said = text if isinstance(text, str) else text.decode(errors="replace")
    return Extraction(error=code, message=message, failures=failures, text=said)
