"""Instructions in untrusted text: where they stand, how certain the detection is, and what the model did after it read them."""

from __future__ import annotations

from typing import Literal

Action = Literal["report", "mark", "withhold", "block"]
"""The action when instructions are found."""
