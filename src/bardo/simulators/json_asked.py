"""Whether a request asks for JSON without a schema in a field of its own: by a schema in its prompt, or by JSON mode.

A real model follows a schema that its prompt holds, so a simulated one does too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from bardo.simulators.conversation import Conversation
from bardo.simulators.fields import Fields, at

_GUIDANCE = re.compile(r"\bJSON [Ss]chema:\s*(?:```json\s*)?(?=\{)")
_ANY_OBJECT: Fields = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
_JSON_MODES = (
    ("response_format.type", "json_object"),
    ("text.format.type", "json_object"),
    ("format", "json"),
    ("generationConfig.responseMimeType", "application/json"),
    ("generation_config.response_mime_type", "application/json"),
)


def with_requested_json(asked: Conversation, body: Fields) -> Conversation:
    """Return the request with the schema that its answer is to follow, where only its prompt or its mode tells that."""
    if asked.schema is not None:
        return asked
    guided = _schema_in_prompt(body)
    if guided is not None:
        return replace(asked, schema=guided, question=_before_guidance(asked.question))
    mode = any(at(body, path) == value for path, value in _JSON_MODES)
    return replace(asked, schema=_ANY_OBJECT) if mode else asked


def _schema_in_prompt(body: Fields) -> Fields | None:
    """Return the last schema that the prompt holds."""
    found = [(said, match.end()) for said in _texts(body) for match in _GUIDANCE.finditer(said)]
    if not found:
        return None
    said, start = found[-1]
    try:
        schema, _ = json.JSONDecoder().raw_decode(said, start)
    except (ValueError, RecursionError):
        return None
    return schema if isinstance(schema, dict) else None


def _before_guidance(question: str) -> str:
    """Return a question without the line that begins the guidance, and what follows it."""
    found = _GUIDANCE.search(question)
    return question if found is None else question[: question.rfind("\n", 0, found.start()) + 1]


def _texts(value: object) -> Iterator[str]:
    """Yield all texts of a JSON value, in order."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting.extend(reversed(one.values()))
        elif isinstance(one, list):
            waiting.extend(reversed(one))
