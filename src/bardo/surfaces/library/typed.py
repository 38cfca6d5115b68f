"""Answers of a type: what is asked for on behalf of a Python type, and the value of it that comes back."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import msgspec

from bardo.call.reply import LiveReply
from bardo.structured import (
    Extraction,
    Failure,
    Json,
    Provenance,
    StructuredOutput,
    UnusableAnswer,
    WrongShape,
    schema_of,
    validate,
)
from bardo.values.degradation import Degradation
from bardo.values.request import OutputFormat, Request
from bardo.values.response import Response

T = TypeVar("T")


class TypedResponse(Response, Generic[T], frozen=True, kw_only=True):
    """A reply whose answer is a value of the type that was asked for.

    `parsed` is None only where the model called a tool instead of answering; `provenance` tells how the answer was got, None there too.
    """

    parsed: T | None = None
    provenance: Provenance | None = None


class AnswerType:
    """One type for one call: its schema, its own checks, and the value that passed them."""

    def __init__(self, wanted: Any) -> None:
        """Build the schema of a type. Raises InvalidRequest for anything else."""
        self.wanted = wanted
        self._schema, self._decode = schema_of(wanted)
        self._value: Any = None

    def of(self, request: Request) -> Request:
        """Return the request that asks for this type."""
        said = self.wanted.schema() if _is_own(self.wanted) else None
        shape = OutputFormat(
            mode="json_schema",
            name=str(getattr(said, "name", "") or getattr(self.wanted, "__name__", "")),
            schema=self._schema,
            strict=True,
            description=str(getattr(said, "description", "") or ""),
            guidance=self.wanted.prompt_guidance() if hasattr(self.wanted, "prompt_guidance") else "",
        )
        return msgspec.structs.replace(request, output_format=shape)

    def validate(self, value: Json) -> tuple[Failure, ...]:
        """Make a value of the type, and return what is wrong with it."""
        try:
            made = self._decode(value)
        except WrongShape as problem:
            return (Failure(path=problem.path, message=problem.message, keyword="type"),)
        issues = validate(made).issues if isinstance(made, StructuredOutput) else ()
        if not issues:
            self._value = made
        return tuple(Failure(path="", message=issue, keyword="content") for issue in issues)

    def typed_response(self, live: LiveReply) -> TypedResponse[Any]:
        """Return the response with its value. Raises UnusableAnswer where there is none, unless a tool was called instead."""
        response, answer = live.response_with_receipt(), live.answer
        reading = None if answer is None else answer.reading
        if answer is None or reading is None:
            if response.error is not None:
                raise response.error
            return _typed_response(response, None, None)
        if not reading.extraction.ok:
            return self._read_free_text(response, reading.extraction, answer.provenance)
        return _typed_response(response, self._value, answer.provenance)

    def _read_free_text(self, response: Response, found: Extraction, how: Provenance | None) -> TypedResponse[Any]:
        """Read an answer in free text by the type's own means, where the model could not be held to a schema."""
        # Words that were cut may have gone on to say something else.
        readable = found.error not in ("refusal", "truncated", "too_complex")
        loose = how is not None and how.mode in ("prompt_guided", "none") and readable
        if not loose or not hasattr(self.wanted, "from_text"):
            raise UnusableAnswer(found, provenance=how)
        try:
            value = self.wanted.from_text(found.text)
        except UnusableAnswer:
            raise UnusableAnswer(found, provenance=how) from None
        if isinstance(value, StructuredOutput) and not validate(value).valid:
            raise UnusableAnswer(found, provenance=how)
        why = "there was no JSON that conforms, so the answer was read from its words"
        lost = Degradation("answer.text", asked="json", sent="words", why=why)
        return _typed_response(
            msgspec.structs.replace(response, degraded=(*response.degraded, lost), error=None), value, how
        )


def _is_own(wanted: Any) -> bool:
    return callable(getattr(wanted, "from_json", None)) and callable(getattr(wanted, "schema", None))


def _typed_response(response: Response, value: Any, how: Provenance | None) -> TypedResponse[Any]:
    fields = {name: getattr(response, name) for name in response.__struct_fields__}
    fields["bardo"] = {**response.bardo, "structured": None if how is None else msgspec.to_builtins(how)}
    return TypedResponse(**fields, parsed=value, provenance=how)
