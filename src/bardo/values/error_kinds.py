"""What went wrong, in words every dialect has its own name for, and what an HTTP status says of it."""

from __future__ import annotations

from typing import Literal

Kind = Literal[
    "invalid_request",
    "authentication",
    "permission",
    "billing",
    "not_found",
    "method_not_allowed",
    "too_large",
    "rate_limit",
    "timeout",
    "overloaded",
    "server",
    "upstream",
]
"""What went wrong, in words every dialect has its own name for."""

RETRYABLE_STATUSES = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})

_KINDS: dict[int, Kind] = {
    400: "invalid_request",
    401: "authentication",
    402: "billing",
    403: "permission",
    404: "not_found",
    405: "method_not_allowed",
    408: "timeout",
    413: "too_large",
    422: "invalid_request",
    429: "rate_limit",
    503: "overloaded",
    504: "timeout",
    529: "overloaded",
}


def kind_of_status(status: int) -> Kind:
    """Return what an HTTP status says went wrong."""
    return _KINDS.get(status) or ("invalid_request" if 400 <= status < 500 else "server")
