"""What `bardo doctor` found, one thing at a time."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["ok", "warning", "problem"]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. `fix` says what to do where it is not `ok`."""

    area: str
    status: Status
    found: str
    fix: str = ""
