"""The error of a typed answer that could not be had. Its Extraction tells what was read and where it broke the schema."""

from __future__ import annotations

from bardo.structured.extraction import Extraction
from bardo.values.errors import MalformedReply


class UnusableAnswer(MalformedReply):
    """The model answered, and no value of the type asked for could be read. Another try, or another model, may give one."""

    def __init__(self, extraction: Extraction, *, hint: str = "") -> None:
        super().__init__(
            extraction.message or "the answer cannot be used", hint=hint or _HINTS.get(extraction.error or "", "")
        )
        self.extraction = extraction


_HINTS = {
    "no_json": "ask again with retry_message(), or ask in a mode that enforces the schema",
    "invalid": "ask again with retry_message(), or give the members defaults",
    "truncated": "raise the token limit, or ask for a shorter answer",
    "refusal": "the model will not answer this; another try would be refused too",
}
