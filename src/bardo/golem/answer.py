"""A typed answer of one subsystem: its JSON Schema, and how it is read out of JSON or of free text."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Self, get_args, get_origin

import msgspec

from bardo.golem.fields import AnswerType, Bounds, Choices, FieldKind, Text, fields_of, issues_of, object_schema
from bardo.structured import Checker, Extraction, Failure, Json, ResponseSchema, UnusableAnswer, checker, extract

_NEAR = 60
_NO = r"(?:\b(?:not|no|never|without|cannot)|n't)[\s-]{1,3}(?:\w{1,12}[\s-]){0,2}"
_YES_OR_NO = re.compile(r"\s{0,3}(?:[:=]|is|was)\s{0,3}[\"'*]{0,3}(yes|true|no|false|not)\b", re.I)
_NUMBER = re.compile(r"[-+]?\d{1,15}(?:[,_]\d{3})*(?:\.\d{1,15})?")
_BULLET = re.compile(r"[ \t]*(?:[-*•]|\d{1,3}[.)])[ \t]+(.+)")


def from_words(kind: AnswerType, text: str, known: Json = None) -> dict[str, Json]:
    """Return the members of an answer as a text says them. `known` is what could be read of broken JSON: its sound members are kept.

    Models that give no JSON write "severity: high, confidence about 0.8, we should hedge". An approval that is not stated is not given, and
    a check that is not mentioned has not passed.
    """
    given = known if isinstance(known, dict) else {}
    members = object_schema(kind)["properties"]
    return {
        field.name: given[field.name]
        if field.name in given and checker(members[field.name]).accepts(given[field.name])
        else _from_text(field, text, given.get(field.name))
        for field in fields_of(kind)
    }


def _from_text(field: FieldKind, text: str, known: Json) -> Json:
    if get_origin(field.kind) is list:
        return _list(field, text)
    if isinstance(field.kind, type) and issubclass(field.kind, msgspec.Struct):
        return from_words(field.kind, _section(field, text), known)
    if field.kind is bool:
        return _is_true(field.name, text)
    match field.rule:
        case Bounds() as bounds:
            return _number(field, bounds, text)
        case Choices() as words:
            return _find_word(field.name, words, text)
        case rule:
            return _text(field, rule, text)


def _name(name: str) -> str:
    """Return a pattern for a field's name as people write it: adjusted_size_usd, "Adjusted size USD"."""
    return r"(?<![^\W_])" + r"[\s_-]{1,3}".join(map(re.escape, name.split("_"))) + r"(?![^\W_])"


def _number(field: FieldKind, bounds: Bounds, text: str) -> int | float:
    named = re.search(rf"{_name(field.name)}(?P<behind>.{{0,{_NEAR}}})", text, re.I | re.S)
    found = _NUMBER.search(re.split(r"[;\n]", named["behind"])[0]) if named else None
    if named is None or found is None:
        return int(bounds.default) if field.kind is int else bounds.default
    value = float(found.group().replace(",", "").replace("_", ""))
    if named["behind"][found.end() : found.end() + 2].lstrip().startswith("%"):
        value /= 100
    return int(value) if field.kind is int else value


def _find_word(name: str, words: Choices, text: str) -> str:
    """Return the word said behind the field's name, else the first one in the text that is not denied."""
    named = re.search(rf"{_name(name)}[^\w\n]{{1,6}}(?:is\s)?[\"'*]{{0,3}}(\w+)", text, re.I)
    if named and named.group(1).lower() in words.words:
        return named.group(1).lower()
    return next((word for word in words.priority or words.words if _is_affirmed(word, text)), words.default)


def _is_affirmed(word: str, text: str) -> bool:
    return any(
        not re.search(_NO + r"$", text[max(0, found.start() - 30) : found.start()], re.I)
        for found in re.finditer(rf"\b{re.escape(word)}(?:s|d|ed|ing)?\b", text, re.I)
    )


def _is_true(name: str, text: str) -> bool:
    found = re.search(_name(name), text, re.I)
    stated = _YES_OR_NO.match(text, found.end()) if found else None
    if stated:
        return stated.group(1).lower() in ("yes", "true")
    return found is not None and _is_affirmed(name.replace("_", " "), text)


def _text(field: FieldKind, rule: Any, text: str) -> str | None:
    named = re.search(rf"{_name(field.name)}[\"'*]{{0,3}}\s?[:=][\"'*]{{0,3}}\s*([^\n]{{1,1000}})", text, re.I)
    if named:
        return named.group(1).strip(" *\"',")
    if field.nullable:
        return None
    return (
        " ".join(text.split())[: rule.longest]
        if isinstance(rule, Text) and rule.longest
        else getattr(rule, "default", "")
    )


def _list(field: FieldKind, text: str) -> list[str]:
    """Return the bullets under a heading of the field's name. Lists of parts stay empty: sentences do not tell where one ends."""
    named = re.search(rf"{_name(field.name)}[^\n]{{0,20}}:?[ \t*]*\n(?P<under>.*)", text, re.I | re.S)
    if get_args(field.kind) != (str,) or named is None:
        return []
    items: list[str] = []
    for line in named["under"].splitlines():
        bullet = _BULLET.match(line)
        if bullet is None and line.strip():
            break
        items += [bullet.group(1).strip()] if bullet else []
    return items


def _section(field: FieldKind, text: str) -> str:
    """Return the line that names a part, and the lines below it that are indented.

    AnswerType that only hold further parts are hardly ever named: those further ones are looked for in the whole text.
    """
    if all(isinstance(inner.kind, type) and issubclass(inner.kind, msgspec.Struct) for inner in fields_of(field.kind)):
        return text
    named = re.search(rf"^.*{_name(field.name)}.*$(?:\n[ \t]+.*$){{0,20}}", text, re.I | re.M)
    return named.group() if named else ""


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
