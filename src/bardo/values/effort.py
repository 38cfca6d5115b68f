"""The levels of effort that bardo knows, from least to most."""

from __future__ import annotations

from typing import Literal

Effort = Literal["minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS: tuple[Effort, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")
