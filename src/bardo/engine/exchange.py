"""One request's life as a generator of attempts.

Whoever runs it sends each attempt and answers with what became of it; the generator decides whether there is another. It knows no
socket, no clock and no secret, so every path through it is tested with plain values.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec

from bardo.dialects import dialect
from bardo.engine.knowledge import BUILTIN, Knowledge
from bardo.engine.reading import PLAIN, Reading, reading_of
from bardo.engine.route import Target
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, Unsupported
from bardo.values.request import Request
from bardo.values.wire import WireRequest


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at one target.

    `reading` is how the reply's text is read. `forward`: the reply needs no translation, and its frames go to the client as they came.
    `withhold_usage`: bardo asked for usage the client did not ask for, so the frame that holds nothing else stays here.
    """

    target: Target
    wire: WireRequest
    reading: Reading = PLAIN
    forward: bool = False
    withhold_usage: bool = False
    degraded: tuple[Degradation, ...] = ()

    @property
    def url(self) -> str:
        """The provider's base URL and the dialect's path, joined."""
        return f"{self.target.provider.base_url.rstrip('/')}/{self.wire.path}"


def attempts(
    request: Request, targets: Sequence[Target], *, knowledge: Knowledge = BUILTIN, may_forward: bool = True
) -> Generator[Attempt, BardoError | None, None]:
    """Yield one attempt for each target until one is answered with None, or with an error another provider cannot mend."""
    failed: tuple[tuple[str, str], ...] = ()
    for target in targets:
        own = target.provider.id
        lost = tuple(Degradation("provider", asked=asked, sent=own, why=why) for asked, why in failed)
        try:
            attempt = plan(request, target, lost, knowledge=knowledge, may_forward=may_forward)
        except Unsupported as problem:
            if target is targets[-1]:
                raise
            failed = (*failed, (own, problem.message))
            continue
        failure = yield attempt
        if failure is None or not failure.retryable:
            return
        failed = (*failed, (own, failure.message))


def plan(
    request: Request,
    target: Target,
    lost: tuple[Degradation, ...] = (),
    *,
    knowledge: Knowledge = BUILTIN,
    may_forward: bool = True,
) -> Attempt:
    """Return what is sent to one target, and how its reply is treated.

    `may_forward`: the client takes a stream in the framing providers are asked for.
    """
    row = target.provider.row
    asked = msgspec.structs.replace(request, model=target.model)
    reading = reading_of(row, target.model, formats=knowledge.formats, toggles=_toggles(request), tools=request.tools)
    speaks_same = request.dialect == row.dialect and request.body is not None
    if may_forward and speaks_same and row.quirks.plain and reading == PLAIN and not _transforms(request):
        return _forwarding(asked, target, lost)
    wire = _with_own_headers(dialect(row.dialect).encode_request(asked, row), request, row.dialect)
    return Attempt(target=target, wire=wire, reading=reading, degraded=(*lost, *wire.degraded))


def _toggles(request: Request) -> dict[str, Any]:
    """Return the arguments of the chat template that the request sets."""
    given = request.extra.get("chat_template_kwargs")
    return given if isinstance(given, dict) else {}


def _transforms(request: Request) -> bool:
    """Whether the reply has to differ from what the provider sends."""
    return request.options.omit_reasoning or bool(request.options.include)


def _forwarding(request: Request, target: Target, lost: tuple[Degradation, ...]) -> Attempt:
    row = target.provider.row
    shape = dialect(row.dialect).encode_request(msgspec.structs.replace(request, messages=(), tools=()), row)
    body = dict(request.body or {})
    body.pop("bardo", None)
    if "model" in body:
        body["model"] = target.model
    asks_usage = request.stream and not request.stream_usage and row.quirks.stream_usage
    if asks_usage and row.dialect == "openai_chat":
        body["stream_options"] = {**(body.get("stream_options") or {}), "include_usage": True}
    wire = WireRequest(path=shape.path, body=msgspec.json.encode(body), headers=shape.headers)
    wire = _with_own_headers(wire, request, row.dialect)
    return Attempt(target=target, wire=wire, forward=True, withhold_usage=asks_usage, degraded=lost)


def _with_own_headers(wire: WireRequest, request: Request, spoken: str) -> WireRequest:
    """Return the wire request with the client's dialect headers, where the provider speaks that dialect."""
    if not request.headers or request.dialect != spoken:
        return wire
    return msgspec.structs.replace(wire, headers={**wire.headers, **request.headers})
