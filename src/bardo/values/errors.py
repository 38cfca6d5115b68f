"""Every way a call can fail, and whose turn it is to act.

BardoError
├── CallerError               the caller changes the request
│   ├── InvalidRequest        400  malformed JSON, a wrong type, a missing field
│   │   └── UnknownPreviousResponse  400  the response that a request goes on from is not kept
│   ├── ContextOverflow       400  the prompt is longer than any model that may be asked takes
│   ├── NotStored             404  no such response, conversation or item is kept
│   │   └── UnknownProviderId 404  an id that the provider may know, and this caller's requests may not name
│   ├── Unauthorized          401  no key, or one that this gateway does not know
│   ├── OverBudget            402  the budget of a key is used up
│   ├── Forbidden             403  a host name, a web page or a model that this caller may not use
│   ├── UnknownModel          404  no provider here serves that model
│   ├── UnknownRoute          404  no such endpoint
│   ├── MethodNotAllowed      405
│   ├── RequestTimeout        408  a request that did not arrive within the time allowed
│   ├── ClientMisuse          400  a client of the library after its end, or in another event loop
│   ├── TooLarge              413  a body over the limit
│   ├── UnsupportedMediaType  415  a body that is not JSON by its content type, or not unpacked
│   ├── UpgradeRequired       426  a WebSocket, where none is served
│   ├── RateLimited           429  a key has made as many calls as it may
│   ├── HeadersTooLarge       431  too many headers, or too large ones
│   └── Unsupported           400  the target cannot express what was asked
│       └── RequiredFieldRefused 400  the provider refuses a default field without which the operator wants no call
├── OperatorError             whoever runs bardo changes its configuration
│   ├── ConfigError           500
│   └── MissingKey            401  a provider's key is not set
├── ProviderError             the provider failed; another one, or a later try, may work
│   ├── Unreachable           502  no connection
│   ├── UpstreamTimeout       504  no answer, or a stream that stopped, within the time allowed
│   ├── UpstreamRefused       the provider's own status, message, code and retry-after
│   ├── MalformedReply        502  an answer that is not what its dialect says
│   │   └── EmptyReply        502  an answer that ended before it said anything
│   └── BrokenStream          502  a stream that ended before its end
├── Unavailable               503  the gateway cannot take the request now; a later try may work
│   ├── Overloaded            503  a bound on connections or on memory is reached
│   └── ShuttingDown          503  the gateway was stopped before the reply was complete
└── InternalError             500  a mistake in bardo
"""

from __future__ import annotations

import re
from typing import Any, Literal

from bardo.values.context_overflow import Overflow, find_overflow

_CAPITAL = re.compile("[A-Z]")

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


class BardoError(Exception):
    """What happened (`message`) and what to do about it (`hint`)."""

    status = 500
    kind: Kind = "server"
    retryable = False
    request_id = ""
    cost_nanos: int | None = None
    """What the call cost all the same, in nano-dollars, or None if that is not known."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    @property
    def code(self) -> str:
        """A stable machine-readable name: the class name in snake case."""
        return _CAPITAL.sub(r"_\g<0>", type(self).__name__).lstrip("_").lower()

    def __str__(self) -> str:
        return f"{self.message} ({self.hint})" if self.hint else self.message

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(other) == vars(self)

    __hash__ = Exception.__hash__


class CallerError(BardoError):
    """The caller must change the request."""

    status = 400
    kind: Kind = "invalid_request"


class InvalidRequest(CallerError):
    """Malformed JSON, a wrong type or a missing field; `param` names the place."""

    def __init__(self, message: str, *, hint: str = "", param: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.param = param


class ContextOverflow(CallerError):
    """The prompt is longer than any model that may be asked takes. `overflow` are its estimated tokens and the limit."""

    def __init__(self, message: str, *, hint: str = "", overflow: Overflow) -> None:
        super().__init__(message, hint=hint)
        self.overflow = overflow


class Unauthorized(CallerError):
    """The request has no key, or one that this gateway does not know, or no longer."""

    status = 401
    kind: Kind = "authentication"


class RateLimited(CallerError):
    """The key has made as many calls as it may for now. `limit` names the limit, `retry_after` are seconds."""

    status = 429
    kind: Kind = "rate_limit"

    def __init__(self, message: str, *, hint: str = "", limit: str = "", retry_after: float = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.limit = limit
        self.retry_after = retry_after


class OverBudget(CallerError):
    """The call may cost more than is left of its key's budget, or of its session's.

    `limit` names it, and `retry_after` are seconds until it begins anew; None: it does not.
    """

    status = 402
    kind: Kind = "billing"

    def __init__(self, message: str, *, hint: str = "", limit: str = "", retry_after: float | None = 1.0) -> None:
        super().__init__(message, hint=hint)
        self.limit = limit
        self.retry_after = retry_after


class Forbidden(CallerError):
    """The request names a host, a web page or a model that this caller may not use."""

    status = 403
    kind: Kind = "permission"


class UnknownModel(CallerError):
    """No configured provider serves the model that was asked for."""

    status = 404
    kind: Kind = "not_found"


class UnknownPreviousResponse(InvalidRequest):
    """A request goes on from a response that is not kept here, or no longer."""

    @property
    def code(self) -> str:
        """OpenAI's own code, which agents look for to send the whole conversation again."""
        return "previous_response_not_found"


class NotStored(CallerError):
    """No response, conversation, item or call with this id is kept."""

    status = 404
    kind: Kind = "not_found"


class UnknownProviderId(NotStored):
    """A request names something that a provider keeps, by an id that is not this caller's. `param` names the place."""

    _upstream_code = ""

    def __init__(self, message: str, *, hint: str = "", param: str | None = None, upstream_code: str = "") -> None:
        super().__init__(message, hint=hint)
        self.param = param
        self._upstream_code = upstream_code

    @property
    def code(self) -> str:
        """The code of a provider for the same, where it has one."""
        return self._upstream_code or super().code


class UnknownRoute(CallerError):
    """No endpoint at this path."""

    status = 404
    kind: Kind = "not_found"


class MethodNotAllowed(CallerError):
    """The endpoint exists, for the methods in `allowed`."""

    status = 405
    kind: Kind = "method_not_allowed"

    def __init__(self, message: str, *, hint: str = "", allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.allowed = allowed


class RequestTimeout(CallerError):
    """The head or the body of a request did not arrive within the time allowed."""

    status = 408
    kind: Kind = "timeout"


class TooLarge(CallerError):
    """A body over the configured limit."""

    status = 413
    kind: Kind = "too_large"


class UnsupportedMediaType(CallerError):
    """The content type of a body is not JSON, or it is compressed in a form that is not unpacked; `accepts` names those that are."""

    status = 415

    def __init__(self, message: str, *, hint: str = "", accepts: str = "") -> None:
        super().__init__(message, hint=hint)
        self.accepts = accepts


class UpgradeRequired(CallerError):
    """A WebSocket was asked for where none is served: the same request is served by HTTP."""

    status = 426


class HeadersTooLarge(CallerError):
    """The head of a request has too many headers, or too large ones."""

    status = 431
    kind: Kind = "too_large"


class ClientMisuse(CallerError, RuntimeError):
    """A client of the library was used after its end, or in another event loop than its own."""


class Unsupported(CallerError):
    """The target cannot express what was asked, and leaving it out would change the meaning.

    `param` names the place, `details` what a program can read of it: `unsupported`, and the dialect's own `error_code`.
    """

    def __init__(
        self, message: str, *, hint: str = "", param: str | None = None, details: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.param = param
        self.details = details or {}


class RequiredFieldRefused(Unsupported):
    """The provider refuses a field that the operator adds to its bodies, and the operator wants no call without it."""


class OperatorError(BardoError):
    """Whoever runs bardo must change its configuration or surroundings."""


class ConfigError(OperatorError):
    """The configuration cannot be read or makes no sense. `problems` are its mistakes one by one, where there are several."""

    def __init__(self, message: str, *, hint: str = "", problems: tuple[ConfigError, ...] = ()) -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


class MissingKey(OperatorError):
    """A provider is configured, its key is not. Another provider of the model may have one."""

    retryable = True
    status = 401
    kind: Kind = "authentication"


class ProviderError(BardoError):
    """The provider failed. `provider` is its id in the configuration. `reached`: the request may have reached it, and may be billed."""

    status = 502
    kind: Kind = "upstream"
    retryable = True
    rest_seconds: float | None = None
    """How long the provider asks to wait, by its headers and its words, or None if it does not say."""
    reached = True

    def __init__(self, message: str, *, hint: str = "", provider: str = "") -> None:
        super().__init__(message, hint=hint)
        self.provider = provider


class Unreachable(ProviderError):
    """No connection to the provider."""

    reached = False


class UpstreamTimeout(ProviderError):
    """The provider did not answer, or stopped sending, within the time allowed."""

    status = 504
    kind: Kind = "timeout"


class UpstreamRefused(ProviderError):
    """The provider answered with an error of its own.

    `status`, `upstream_code`, `upstream_type`, `upstream_id` (of the request) and `retry_after` (seconds) are the provider's; `detail` is
    its error object, in `dialect`, `hint` what the server behind a router said. `overflow` says how long a prompt that is too long was.
    A status beside 400 to 599 becomes 502. `own_words` are what the provider says without what it quotes of the request, None if
    nobody has looked.
    """

    own_words: str | None = None
    passed_headers: tuple[tuple[str, str], ...] = ()
    """The headers of the refusal that its client gets too."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        status: int = 502,
        upstream_code: str | None = None,
        upstream_type: str | None = None,
        param: str | None = None,
        retry_after: str | None = None,
        detail: Any = None,
        hint: str = "",
        dialect: str = "",
        upstream_id: str = "",
    ) -> None:
        super().__init__(message, hint=hint, provider=provider)
        self.dialect = dialect
        self.upstream_id = upstream_id
        self.status = status if 400 <= status <= 599 else 502
        self.upstream_code = upstream_code
        self.upstream_type = upstream_type
        self.param = param
        self.retry_after = retry_after
        self.detail = detail
        self.kind = kind_of_status(self.status)
        self.retryable = self.status in RETRYABLE_STATUSES
        about_it = self.kind in ("invalid_request", "too_large", "server")
        self.overflow = find_overflow(str(self), upstream_code, upstream_type, detail) if about_it else None
        if self.overflow is not None:
            self.status, self.kind = 400, "invalid_request"

    @property
    def said(self) -> str:
        """The words by which a refusal is understood."""
        return str(self) if self.own_words is None else self.own_words


class MalformedReply(ProviderError):
    """An answer that is not what its dialect says it is."""


class EmptyReply(MalformedReply):
    """An answer that ended, as it seems properly, before it said anything."""


class BrokenStream(ProviderError):
    """A stream that ended before its end, or said so itself."""


class Unavailable(BardoError):
    """The gateway cannot take the request now. The same request may work later."""

    status = 503
    kind: Kind = "overloaded"


class Overloaded(Unavailable):
    """The gateway has as many connections, or as many bytes of requests in memory, as it may have."""


class ShuttingDown(Unavailable):
    """The gateway was stopped, and the reply was not complete when its grace period ended."""


class InternalError(BardoError):
    """A mistake in bardo."""


STOPPING = "the server is stopping"
"""The argument of the CancelledError by which a stopping server ends a request."""


def shutdown_of(cancelled: BaseException) -> ShuttingDown | None:
    """Return the error of a call that was cancelled because the server stops, or None if something else cancelled it."""
    return shutting_down() if STOPPING in cancelled.args else None


def shutting_down() -> ShuttingDown:
    """Return the error of a call that did not end before the server did."""
    return ShuttingDown("the gateway was stopped before the reply was complete", hint="send the request again")
