"""Names as one segment of the path of a URL."""

from __future__ import annotations

from urllib.parse import quote

from bardo.values.errors import InvalidRequest


def path_segment(model: str) -> str:
    """Return a model's name as one segment. Raises InvalidRequest for `.` and `..`, which name no segment however they are written."""
    if model in (".", ".."):
        raise InvalidRequest(f"there is no model {model!r}", param="model")
    return quote(model, safe="")
