"""Instructions in text that nobody vouches for: where they stand, how certain it is that they are some, and what the model did then."""

from __future__ import annotations

from typing import Literal

Action = Literal["report", "mark", "withhold", "block"]
"""What is done where instructions were found."""
