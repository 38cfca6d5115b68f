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

    @property
    def code(self) -> str:
        """What is wrong with the answer: `no_json`, `invalid`, `truncated`, `refusal` or `too_complex`."""
        found: Extraction | None = getattr(self, "extraction", None)
        return (found.error if found is not None else None) or super().code


_HINTS = {
    "no_json": "ask again, or in a mode that enforces the schema",
    "invalid": "ask again, or give the members of the schema defaults",
    "truncated": "raise the token limit, or ask for a shorter answer",
    "too_complex": "ask for a shorter answer, or in a mode that enforces the schema",
    "refusal": "the model will not answer this; another try would be refused too",
}
