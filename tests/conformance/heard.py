"""What an official client library heard, in words common to all of them, and the server that answers it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import httpx2

from bardo.values.events import FinishReason

STREAM = "text/event-stream"


@dataclass(frozen=True)
class Counts:
    """Token counts in bardo's algebra. None is "not told"."""

    input: int | None = None
    output: int | None = None
    reasoning: int | None = None
    cached: int | None = None


@dataclass(frozen=True)
class Heard:
    """One reply as a library shows it.

    `calls` are (id, name, arguments): JSON text where the library gives text, else its object. `finish` is what the library's word means,
    `turn` makes a request that gives the library's own objects back.
    """

    text: str
    refusal: str
    thinking: str
    calls: list[tuple[str, str, Any]]
    finish: FinishReason
    counts: Counts
    id: str
    model: str
    turn: Callable[[], dict[str, Any]] = field(repr=False)


class Server:
    """Answers every request with one body."""

    def __init__(self) -> None:
        self.body = b""
        self.kind = ""
        self.status = 200

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(self.status, content=self.body, headers={"content-type": self.kind})


@cache
def server() -> Server:
    return Server()


@cache
def http() -> httpx2.Client:
    return httpx2.Client(transport=httpx2.MockTransport(server()))


def answer(body: bytes, *, stream: bool, status: int) -> None:
    one = server()
    one.body, one.kind, one.status = body, STREAM if stream else "application/json", status


def plain(value: Any, **options: Any) -> dict[str, Any]:
    """Return one of a library's objects as it would be sent."""
    dumped: dict[str, Any] = value.model_dump(mode="json", exclude_none=True, **options)
    return dumped
