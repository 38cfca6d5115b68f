"""What to tell a model whose answer could not be used, and whether telling it is worth another call."""

from __future__ import annotations

import msgspec

from bardo.structured.extraction import ErrorCode, Extraction, JsonSchema
from bardo.structured.validation import Checker, checker

_RETRYABLE: frozenset[ErrorCode] = frozenset({"no_json", "invalid", "truncated", "too_complex"})
_ASKED_AGAIN = {
    "no_json": "Your last answer held no JSON.",
    "truncated": "Your last answer ended before its JSON was complete. Say the same more briefly.",
    "too_complex": "Your last answer held too many values to find the right one.",
    "invalid": "Your last answer did not conform to the JSON Schema.",
}
_MAX_SCHEMA = 20_000


def worth_retrying(extraction: Extraction) -> bool:
    """Return whether another try may help: a refusal stays one."""
    return extraction.error in _RETRYABLE


def retry_message(
    extraction: Extraction, schema: JsonSchema | Checker, *, issues: tuple[str, ...] = (), with_schema: bool = True
) -> str:
    """Return the user message that asks again, naming each failure and its path.

    `issues` are what a type's own `validate` found in an answer that conforms. `with_schema` repeats the schema, for modes in which the
    provider does not enforce it. The retry belongs in the same mode as the first try.
    """
    said = [
        _ASKED_AGAIN.get(
            extraction.error or "", "Your last answer conforms to the JSON Schema, but its content makes no sense."
        )
    ]
    said += [f"- {failure}" for failure in extraction.failures]
    said += [f"- {issue}" for issue in issues]
    said.append(_again(checker(schema), with_schema=with_schema))
    return "\n".join(said)


def _again(judge: Checker, *, with_schema: bool) -> str:
    written = msgspec.json.encode(judge.schema).decode()
    if not with_schema or len(written) > _MAX_SCHEMA:
        return "Answer again, with the whole JSON value and nothing else."
    return f"Answer again, with the whole JSON value and nothing else, conforming to this JSON Schema:\n{written}"
