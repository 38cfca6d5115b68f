"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from bardo.values.errors import InvalidRequest

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="The configuration; by default $BARDO_CONFIG, else ./bardo.toml."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only calls since then: 30m, 2h, 7d, or 2026-01-31.")
]

# Python refuses to read longer numbers, and no model takes such a budget.
_MOST_DIGITS = 18

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def policy_of(written: str) -> int | str:
    """Return what `--reasoning` says: a budget in tokens, or a word, which is checked where the request is built."""
    return int(written) if written.isdecimal() and len(written) <= _MOST_DIGITS else written


def since_time(written: str | None, now: float) -> float | None:
    """Return the Unix time that `--since` means: so long before `now`, or a date or time of the local zone.

    Raises InvalidRequest for anything else.
    """
    if written is None:
        return None
    ago = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw])", written.strip().lower())
    if ago:
        return now - float(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(written.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as problem:
        hint = "write 30m, 2h, 7d, 2026-01-31 or 2026-01-31T18:00"
        raise InvalidRequest(f"--since does not understand {written!r}", hint=hint) from problem
