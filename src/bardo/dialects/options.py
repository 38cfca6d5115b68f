"""The `bardo` object of a request body: what a client asks of bardo itself, in any dialect."""

from __future__ import annotations

from typing import Any

from bardo.dialects.jsonfield import optional, take
from bardo.values.errors import InvalidRequest
from bardo.values.request import BardoOptions

INCLUDABLE = ("reasoning_chain", "receipt")


def read_options(fields: dict[str, Any]) -> BardoOptions:
    """Return the options under `bardo`. Raises InvalidRequest for what bardo does not know."""
    asked = optional(fields, "bardo", dict)
    if asked is None:
        return BardoOptions()
    include = optional(asked, "include", list, "bardo.") or []
    reasoning = optional(asked, "reasoning", str, "bardo.")
    if reasoning not in (None, "include", "omit"):
        raise InvalidRequest(f"bardo.reasoning is {reasoning!r}", hint="use include or omit", param="bardo.reasoning")
    return BardoOptions(
        include=tuple(includable(name, f"bardo.include[{place}]") for place, name in enumerate(include)),
        omit_reasoning=reasoning == "omit",
    )


def includable(name: Any, at: str) -> str:
    """Return a part of the reply that may be asked for. Raises InvalidRequest for any other."""
    if take(name, str, at) not in INCLUDABLE:
        raise InvalidRequest(f"{at} is {name!r}", hint=f"use {' or '.join(INCLUDABLE)}", param=at)
    return str(name)
