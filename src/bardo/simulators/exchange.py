"""One exchange of a simulated provider: the request that came, and the reply or the refusal that it gets."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias
from urllib.parse import parse_qs, unquote, urlsplit

from bardo.simulators import marks
from bardo.simulators.fields import Fields, compact, fields
from bardo.simulators.turns import Conversation, ToolCall, Turn, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """`seed` makes ids; `created` is in seconds since 1970; `delta_size` is the characters of one streamed delta."""

    body: Fields
    conversation: Conversation
    model: str
    turn: Turn
    usage: Usage
    seed: str
    created: int
    delta_size: int

    def token(self, label: str, length: int, alphabet: str = marks.ALPHANUMERIC) -> str:
        """Return letters for an id, the same for the same label."""
        return marks.token(f"{self.seed}/{label}", length, alphabet)

    def uuid(self, label: str) -> str:
        """Return an id in the form of a UUID."""
        return marks.uuid(f"{self.seed}/{label}")

    def pieces(self, text: str) -> Iterator[str]:
        """Cut a text into the deltas it is streamed in."""
        for start in range(0, len(text), self.delta_size):
            yield text[start : start + self.delta_size]

    def calls(self) -> Iterator[tuple[int, ToolCall]]:
        """Yield the turn's tool calls with their places."""
        yield from enumerate(self.turn.tool_calls)


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming:
    """One HTTP request. Header names are lower case; `body` is the parsed JSON, or None if there is none."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    raw: bytes
    body: object

    @property
    def fields(self) -> Fields:
        """The body as an object; empty where it is not one."""
        return fields(self.body)

    @property
    def bearer(self) -> str:
        """The key of the Authorization header."""
        scheme, _, key = self.headers.get("authorization", "").partition(" ")
        return key.strip() if scheme.lower() == "bearer" else ""


def read_incoming(method: str, target: str, headers: Mapping[str, str], raw: bytes) -> Incoming:
    """Read a request line's target, headers and body."""
    parts = urlsplit(target)
    query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
    return Incoming(method=method, path=unquote(parts.path), query=query, headers=headers, raw=raw, body=_parsed(raw))


def _parsed(raw: bytes) -> object:
    try:
        value: object = json.loads(raw) if raw else None
    except (ValueError, RecursionError):
        return None
    return value


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


JSON = "application/json"
EVENT_STREAM = "text/event-stream; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply has one frame and a known length; a streamed one has many."""

    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    frames: tuple[bytes, ...] = ()
    streamed: bool = False

    @property
    def body(self) -> bytes:
        """All bytes of the reply."""
        return b"".join(self.frames)


def whole(body: bytes, *, status: int = 200, content_type: str = JSON) -> Reply:
    """Return a reply that is sent at once."""
    return Reply(status=status, content_type=content_type, frames=(body,))


def streamed(frames: Iterable[bytes], *, content_type: str = EVENT_STREAM) -> Reply:
    """Return a reply that is sent event by event."""
    return Reply(content_type=content_type, frames=tuple(frames), streamed=True)


def data_event(value: object) -> bytes:
    """Write an event that has only data."""
    return b"data: " + compact(value) + b"\n\n"


def named_event(name: str, value: object) -> bytes:
    """Write an event with its name."""
    return f"event: {name}\n".encode() + data_event(value)
