"""Why a server refuses a request, independent of the provider's error format."""

from __future__ import annotations

from typing import Literal, TypeAlias

Reason: TypeAlias = Literal[
    "missing_key",
    "wrong_key",
    "unknown_path",
    "wrong_method",
    "bad_json",
    "missing_field",
    "bad_value",
    "too_long",
    "unknown_field",
    "unsupported_field",
    "unknown_model",
    "bad_ciphertext",
    "bad_call_id",
    "trouble",  # a status asked for by a fault
]

STATUS: dict[Reason, int] = {
    "missing_key": 401,
    "wrong_key": 401,
    "unknown_path": 404,
    "wrong_method": 405,
    "unknown_model": 404,
}


class Refusal(Exception):
    """The request cannot be served. `parameter` is the path of the field at fault, `message` the provider's words."""

    def __init__(self, reason: Reason, message: str, *, parameter: str | None = None, status: int = 0) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.parameter = parameter
        self.status = status or STATUS.get(reason, 400)


TROUBLE_WORDS = {
    400: "The request was invalid.",
    401: "Incorrect API key provided.",
    402: "Insufficient balance.",
    403: "You do not have permission to access this resource.",
    404: "The requested resource was not found.",
    408: "The request timed out.",
    413: "The request is too large.",
    429: "Rate limit reached. Please try again later.",
    500: "The server had an error while processing your request. Sorry about that!",
    503: "The service is temporarily overloaded. Please try again later.",
    529: "Overloaded",
}


def trouble(status: int) -> Refusal:
    """Return the refusal a fault asked for by its status."""
    return Refusal("trouble", TROUBLE_WORDS.get(status, "The request could not be completed."), status=status)
