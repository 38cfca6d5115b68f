"""What a type must offer so that a model can be asked for it and its answer be read: the documents' `StructuredOutput`."""

from __future__ import annotations

from typing import Literal, Protocol, Self, TypeVar, runtime_checkable

import msgspec

from bardo.structured.extracting import extract
from bardo.structured.extraction import JsonSchema, UnusableAnswer


class ResponseSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A schema with the name providers want for it. `strict` asks them to enforce it to the letter."""

    name: str
    schema: JsonSchema
    strict: bool = True
    description: str = ""


@runtime_checkable
class StructuredOutput(Protocol):
    """A type a model can answer with. Each also works from free text, for models that cannot be held to a schema."""

    @classmethod
    def schema(cls) -> ResponseSchema:
        """Return the schema to ask for."""
        ...

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Read JSON that conforms to the schema. Raises UnusableAnswer for any other text."""
        ...

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read an answer given in free text as well as it can be read. Raises UnusableAnswer where nothing of it can."""
        ...

    @classmethod
    def prompt_guidance(cls) -> str:
        """Return what to add to a prompt where the schema cannot be enforced."""
        ...

    def validate(self, issues: list[str]) -> None:
        """Add one line to `issues` for each value that makes no sense: a number out of its range, a word that is not in its list."""
        ...


Output = TypeVar("Output", bound=StructuredOutput)
Verdict = Literal["valid", "invalid_content"]


class ValidationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a type's own checks said of a value that already conforms to its schema."""

    issues: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Whether there are no issues."""
        return not self.issues

    @property
    def verdict(self) -> Verdict:
        """The documents' word for it."""
        return "valid" if self.valid else "invalid_content"


def validate(value: StructuredOutput) -> ValidationResult:
    """Ask a value what is wrong with its content: ranges and lists of words. The schema was checked when it was read."""
    issues: list[str] = []
    value.validate(issues)
    return ValidationResult(issues=tuple(issues))


def parse_response(kind: type[Output], text: str, *, schema_enforced: bool) -> Output:
    """Read an answer: as JSON where the schema was enforced; else as JSON found in the text, and where there is none as free text.

    Raises UnusableAnswer, also for JSON that the text ends in: words are not read out of it.
    """
    if schema_enforced:
        return kind.from_json(text)
    found = extract(text, kind.schema().schema)
    if found.error == "truncated":
        raise UnusableAnswer(found)
    return kind.from_json(msgspec.json.encode(found.value)) if found.ok else kind.from_text(text)
