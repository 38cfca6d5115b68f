"""Faults a server can be asked for.

A fault is set on a server, on a turn, or asked for through the model's name, so that it also passes through a
gateway: `any-model+fault:status=429,retry-after=2`, `any-model+fault:stall`, `any-model+fault:cut=3`. What it
does to a reply stands in `delivery.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

Kind: TypeAlias = Literal[
    "status",  # an HTTP error in the provider's own form
    "slow",  # every event after a delay
    "drip",  # every event in pieces of `size` bytes
    "stall",  # nothing more after some events; the connection stays open until the client leaves
    "cut",  # the connection closes in the middle of an event
    "early-end",  # the stream ends properly, but before its end
    "disconnect",  # the connection closes before any header
    "reset",  # the same, by a TCP reset
    "refused",  # no server listens (on a server only)
    "malformed",  # one event, or the body, is broken JSON
    "content-type",  # a page of HTML that says it is HTML
    "lying",  # a page of HTML that says it is what was asked for
    "oversized",  # one event, or the body, of `size` bytes
    "error-event",  # an error in the provider's own form inside a stream that began well
    "error-body",  # an error in the provider's own form as a whole body, with status 200
    "keep-alive",  # signs of life and nothing else after some events, until the client leaves
]

_SEPARATOR = "+fault:"
_MEBIBYTE = 1024 * 1024
_GIBIBYTE = 1024 * _MEBIBYTE
_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault and where it occurs.

    `after` counts the events sent whole before it; `delay` is in seconds; `size` is in bytes; `times` limits it to
    the first requests that meet it, after which all is well (None: for ever).
    """

    kind: Kind
    status: int = 500
    retry_after: float | None = None
    after: int = 2
    delay: float = 0.05
    size: int = 4 * _MEBIBYTE
    times: int | None = None


KINDS: tuple[Kind, ...] = get_args(Kind)
_VALUE_MEANS = {"status": "status", "slow": "delay", "drip": "size", "oversized": "size", "error-body": "status"}
_OPTIONS = ("status", "retry-after", "after", "delay", "size", "times")


def split_fault(model: str) -> tuple[str, Fault | None]:
    """Split a model's name from the fault asked for behind it. Raises ValueError where that is not one."""
    name, separator, fault_text = model.partition(_SEPARATOR)
    return (name, parse_fault(fault_text)) if separator else (model, None)


def parse_fault(fault_text: str) -> Fault:
    """Read `kind[=value][,option=value…]`, such as `status=429,retry-after=2`."""
    first, *options = fault_text.split(",")
    name, given, value = first.partition("=")
    kind = next((kind_name for kind_name in KINDS if kind_name == name), None)
    if kind is None:
        raise ValueError(f"no fault is called {name!r}; there are: {', '.join(KINDS)}")
    if given:
        options.append(f"{_VALUE_MEANS.get(kind, 'after')}={value}")
    fault = Fault(kind, size=1) if kind == "drip" else Fault(kind)
    for option in options:
        fault = _with_option(fault, *option.partition("=")[::2])
    return fault


def _with_option(fault: Fault, name: str, value: str) -> Fault:
    match name:
        case "status":
            return replace(fault, status=_whole(name, value, 200, 999))
        case "retry-after":
            return replace(fault, retry_after=_seconds(name, value))
        case "after":
            return replace(fault, after=_whole(name, value, 0))
        case "delay":
            return replace(fault, delay=_seconds(name, value))
        case "size":
            return replace(fault, size=_whole(name, value, 1))
        case "times":
            return replace(fault, times=_whole(name, value, 1))
    raise ValueError(f"a fault has no option {name!r}; there are: {', '.join(_OPTIONS)}")


def _whole(name: str, value: str, least: int, most: int = _GIBIBYTE) -> int:
    """Return a whole number within its bounds. Raises ValueError for anything else."""
    if not (value.isascii() and value.isdecimal() and len(value) < 20 and least <= int(value) <= most):
        raise ValueError(f"a fault's {name} is a whole number from {least} to {most}, not {value[:40]!r}")
    return int(value)


def _seconds(name: str, value: str) -> float:
    """Return a length of time. Raises ValueError where it is none, or over a day."""
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= _DAY:
        raise ValueError(f"a fault's {name} is in seconds, from 0 to {_DAY}, not {value[:40]!r}")
    return seconds
