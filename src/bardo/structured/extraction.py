"""What reading a typed answer out of a model's text gave: the value, or what was wrong with it, and everything done on the way."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Json: TypeAlias = Any
"""Any JSON value: dict with string keys, list, str, int, float, bool or None."""

JsonSchema: TypeAlias = dict[str, Any] | bool
"""A JSON Schema. Draft 2020-12 unless its `$schema` names an older one."""

ErrorCode = Literal["no_json", "invalid", "truncated", "refusal", "too_complex"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One place where a value breaks its schema: a JSON Pointer ("" is the whole), the keyword, and what is wrong in words."""

    path: str
    message: str
    keyword: str = ""

    def __str__(self) -> str:
        return f"{self.path or 'the answer'}: {self.message}"


class Extraction(msgspec.Struct, frozen=True, kw_only=True):
    """A typed answer with its provenance.

    `error` is None where `value` conforms to the schema. Otherwise `value` is the best that could be read (None for `no_json`, `refusal`
    and `too_complex`), not to be used as it stands, and `failures` tells the first places where it breaks the schema.
    `truncated`: the text ended inside the value. Without an error, only its closing brackets were missing from a finished reply.
    `repaired`: the text was not JSON as it stood. `salvaged`: a guess of the last resort was needed. `coerced`: paths whose type was
    changed without loss, or whose number was not finite and is null. `unwrapped`: the shells taken off, outermost first. `defaulted`: paths
    filled with a default of the schema. `dropped`: optional members left out because they broke the schema. `text` is what was read,
    untouched.
    """

    value: Json = None
    error: ErrorCode | None = None
    message: str = ""
    failures: tuple[Failure, ...] = ()
    truncated: bool = False
    repaired: bool = False
    salvaged: bool = False
    coerced: tuple[str, ...] = ()
    unwrapped: tuple[str, ...] = ()
    defaulted: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    text: str = ""

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
        """What a caller may want to know although the value conforms: codes, in a fixed order."""
        said = {
            "truncated": self.truncated,
            "repaired": self.repaired,
            "salvaged": self.salvaged,
            "coerced": self.coerced,
            "unwrapped": self.unwrapped,
            "extra_dropped": self.dropped,
            "defaults_applied": self.defaulted,
        }
        return tuple(code for code, happened in said.items() if happened)


def pointer(path: tuple[str | int, ...] | list[str | int]) -> str:
    """Return a path as a JSON Pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)
