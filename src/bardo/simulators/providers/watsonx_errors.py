"""What IBM watsonx.ai says where it refuses a request, in text generation and in chat."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.simulators.fields import Fields, compact
from bardo.simulators.marks import HEXADECIMAL, token
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import Reply, whole

_PAGE = "https://cloud.ibm.com/apidocs/watsonx-ai#text-generation"
_CODES = {
    401: "authentication_token_not_valid",
    403: "authorization_rejected",
    404: "model_not_supported",
    429: "rate_limit_reached_requests",
}


class WatsonxErrors:
    """The refusals of one server, for the simulators of both its ways to generate."""

    def encode_refusal(self, refusal: Refusal) -> Reply:
        return whole(compact(error_body(refusal)), status=refusal.status)

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Failed to authenticate the request due to missing token")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Failed to authenticate the request due to invalid token")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"Model '{model}' is not supported", parameter="model_id")

    def error_events(self) -> Sequence[bytes]:
        error = error_body(Refusal("trouble", "An unexpected error occurred", status=500))
        return [b"event: error\ndata: " + compact(error) + b"\n\n"]


def error_body(refusal: Refusal) -> Fields:
    """Return a refusal as watsonx writes it."""
    code = _CODES.get(refusal.status) or ("json_validation_error" if refusal.status < 500 else "downstream_error")
    if refusal.reason == "unknown_path":
        code = "not_found"
    return {
        "errors": [{"code": code, "message": refusal.message, "more_info": _PAGE}],
        "trace": token(f"watsonx/{refusal.message}", 32, HEXADECIMAL),
        "status_code": refusal.status,
    }
