"""Typed answers: a plan for each model before the call, and the value out of whatever text it answered with.

`extract` reads one answer; `PartialJson` reads it while it arrives; `checker` compiles a schema once for many answers.
"""

from __future__ import annotations

from bardo.structured.apply import Applied, apply
from bardo.structured.coercion import with_defaults
from bardo.structured.extracting import (
    ResponseSchema,
    StructuredOutput,
    ValidationResult,
    extract,
    extract_repair,
    extract_sound,
    extract_strict,
    parse_response,
    validate,
    was_cut,
)
from bardo.structured.extraction import ErrorCode, Extraction, Failure, Json, JsonSchema, Provenance, UnusableAnswer
from bardo.structured.modes import Mode, SchemaTarget, StructuredSettings
from bardo.structured.partial import PartialJson
from bardo.structured.plan import Skipped, StructuredPlan, plan
from bardo.structured.rewrite import Rewrite
from bardo.structured.types import TypedSchema, WrongShape, schema_of
from bardo.structured.validation import Checker, checker, retry_message, worth_retrying

__all__ = [
    "Applied",
    "Checker",
    "ErrorCode",
    "Extraction",
    "Failure",
    "Json",
    "JsonSchema",
    "Mode",
    "PartialJson",
    "Provenance",
    "ResponseSchema",
    "Rewrite",
    "SchemaTarget",
    "Skipped",
    "StructuredOutput",
    "StructuredPlan",
    "StructuredSettings",
    "TypedSchema",
    "UnusableAnswer",
    "ValidationResult",
    "WrongShape",
    "apply",
    "checker",
    "extract",
    "extract_repair",
    "extract_sound",
    "extract_strict",
    "parse_response",
    "plan",
    "retry_message",
    "schema_of",
    "validate",
    "was_cut",
    "with_defaults",
    "worth_retrying",
]
