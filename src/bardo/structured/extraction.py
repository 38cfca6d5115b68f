"""A typed answer as it was read out of a model's text: the value, or its fault, and every repair on the way."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

from bardo.structured.modes import Mode
from bardo.values.errors import MalformedReply
from bardo.values.notebook import short

Json: TypeAlias = Any
"""Any JSON value: dict with string keys, list, str, int, float, bool or None."""

JsonSchema: TypeAlias = dict[str, Any] | bool
"""A JSON Schema. Draft 2020-12 unless its `$schema` names an older one."""

ErrorCode = Literal["no_json", "invalid", "truncated", "refusal", "too_complex"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a value breaks its schema: a JSON Pointer ("" is the whole), the keyword, and the fault in words."""

    path: str
    message: str
    keyword: str = ""

    def __str__(self) -> str:
        return f"{self.path or 'the answer'}: {self.message}"


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """A typed answer with its provenance.

    `error` is None if `value` conforms to the schema. Otherwise `value` is the best that could be read (None for `no_json`, `refusal`
    and `too_complex`), not to be used as it stands, and `failures` tells the first places where it breaks the schema.
    `truncated`: the text ended inside the value. Without an error, only its closing brackets were missing from a finished reply.
    `truncated_after`: the reply was cut behind the value, which is complete.
    `repaired`: the text was not JSON as it stood. `salvaged`: a guess of the last resort was needed. `coerced`: paths whose type was
    changed without loss, or whose number was not finite and is null. `unwrapped`: the wrappers taken off, outermost first.
    `defaulted`: paths filled with a default of the schema. `dropped`: optional members left out because they broke the schema. `text`
    is what was read, untouched.
    """

    value: Json = None
    error: ErrorCode | None = None
    message: str = ""
    failures: tuple[Failure, ...] = ()
    truncated: bool = False
    truncated_after: bool = False
    repaired: bool = False
    salvaged: bool = False
    coerced: tuple[str, ...] = ()
    unwrapped: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    text: str = ""

    def __repr__(self) -> str:
        """Return the value and what was done to read it, without the text."""
        told = ((name, getattr(self, name)) for name in Extraction.__struct_fields__ if name not in ("value", "text"))
        parts = [f"value={short(self.value)}", *(f"{name}={short(value)}" for name, value in told if value)]
        return f"Extraction({', '.join(parts)})"

    @property
    def ok(self) -> bool:
        """Whether `value` conforms to the schema."""
        return self.error is None

    @property
    def path(self) -> str:
        """Where the first failure is, as a JSON Pointer."""
        return self.failures[0].path if self.failures else ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about a value that conforms: codes, in a fixed order."""
        conditions = {
            "truncated": self.truncated,
            "truncated_after": self.truncated_after,
            "repaired": self.repaired,
            "salvaged": self.salvaged,
            "coerced": self.coerced,
            "unwrapped": self.unwrapped,
            "extra_dropped": self.dropped,
            "defaults_applied": self.defaulted,
        }
        return tuple(code for code, happened in conditions.items() if happened)


def pointer(path: tuple[str | int, ...] | list[str | int]) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


class UnusableAnswer(MalformedReply):
    """The model answered, and no value of the type asked for could be read. Another try, or another model, may give one.

    `provenance` tells in which mode and how often the model was asked, or None if only a text was read.
    """

    def __init__(self, extraction: Extraction, *, hint: str = "", provenance: Provenance | None = None) -> None:
        super().__init__(
            extraction.message or "the answer cannot be used", hint=hint or _HINTS.get(extraction.error or "", "")
        )
        self.extraction = extraction
        self.provenance = provenance

    @property
    def code(self) -> str:
        """The fault of the answer: `no_json`, `invalid`, `truncated`, `refusal` or `too_complex`."""
        extraction: Extraction | None = getattr(self, "extraction", None)
        return (extraction.error if extraction is not None else None) or super().code

    def fields(self) -> dict[str, Any]:
        """Return the fields beside the error: how the model was asked, the fault, and where it is."""
        how = {} if self.provenance is None else msgspec.to_builtins(self.provenance)
        failures = [{"path": failure.path, "message": failure.message} for failure in self.extraction.failures]
        return {**how, "error": self.extraction.error, "failures": failures}


_HINTS = {
    "no_json": "ask again, or in a mode that enforces the schema",
    "invalid": "ask again, or give the members of the schema defaults",
    "truncated": "raise the token limit, or ask for a shorter answer",
    "too_complex": "ask for a shorter answer, or in a mode that enforces the schema",
    "refusal": "the model will not answer this; another try would be refused too",
}


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """The steps taken to get a typed answer.

    `attempts`: how often the model was asked. `coerced`, `defaulted`: JSON Pointers into the answer. `unwrapped`: the wrappers taken off,
    outermost first. `mode_downgraded`: whether the target could not be asked in the mode that was wanted. `truncated_after`: whether the
    reply was cut behind the answer, which is complete.
    """

    mode: Mode
    attempts: int = 1
    coerced: tuple[str, ...] = ()
    repaired: bool = False
    unwrapped: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()
    mode_downgraded: bool = False
    truncated_after: bool = False
    error: ErrorCode | None = None
