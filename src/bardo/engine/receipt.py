"""What the caller is told of a call beside the answer: headers, and the `bardo` object."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.engine.exchange import Attempt
from bardo.engine.unsayable import unsayable_counts, unsayable_finish
from bardo.reasoning import control
from bardo.reasoning.control import observation, observe, receipt_header
from bardo.reasoning.steps import chain_fields, with_steps
from bardo.values.degradation import UNLISTED, Degradation, unlisted
from bardo.values.events import BlockFields, Degraded, Event, Failed, Finish, ThinkStart, UnknownContent, UsageUpdate
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import Usage

_MAX_NAMES = 1_500
"""Characters of `X-Bardo-Degraded`. Proxies allow about 8 kB for all headers of a reply."""
_MAX_NAME = 100


def early_headers(request_id: str, attempt: Attempt, response: Response | None = None) -> list[tuple[str, str]]:
    """Return the headers that are known before the first byte of a reply; a finished `response` knows all that was degraded."""
    degraded = attempt.degraded if response is None else response.degraded
    headers = [
        ("X-Bardo-Request-Id", request_id),
        ("X-Bardo-Provider", _printable(attempt.target.provider.id)),
        ("X-Bardo-Model", _printable(attempt.target.model)),
    ]
    if attempt.control is not None and response is None:
        headers.append(("X-Bardo-Reasoning", _printable(receipt_header(attempt.control))))
    if degraded:
        headers.append(("X-Bardo-Degraded", _names(degraded)))
    return headers


def late_headers(response: Response, attempt: Attempt) -> list[tuple[str, str]]:
    """Return the headers that only a finished reply has. A count that nobody reported is `unknown`, not 0."""
    chain = response.reasoning
    known = chain.reported or chain.tokens_approx or chain.empty
    headers = []
    if attempt.control is not None:
        verdict = observe(attempt.control, observation(chain))
        headers.append(("X-Bardo-Reasoning", _printable(receipt_header(attempt.control, verdict))))
    headers.append(("X-Bardo-Reasoning-Tokens", str(chain.reasoning_tokens) if known else "unknown"))
    if chain.tokens_approx:
        headers.append(("X-Bardo-Reasoning-Tokens-Approx", "true"))
    if response.usage.cost_usd is not None:
        headers.append(("X-Bardo-Cost-Usd", f"{response.usage.cost_usd:.10f}".rstrip("0").rstrip(".")))
    return headers


def _names(degraded: tuple[Degradation, ...]) -> str:
    """Return what was degraded, by name, and after the bound how many more there are."""
    names = list(dict.fromkeys(_printable(one.what, _MAX_NAME) for one in degraded if one.what != UNLISTED))
    listed, size = 0, 0
    for name in names:
        size += len(name) + 2
        if size > _MAX_NAMES:
            break
        listed += 1
    more = len(names) - listed + unlisted(degraded)
    return ", ".join((*names[:listed], f"{more} more") if more else names)


def _printable(text: str, longest: int = 400) -> str:
    """Return text as a header can hold it, cut where it is long: clients choose names, and must not end a header with one."""
    if len(text) > longest:
        text = f"{text[: longest - 3]}..."
    if text.isascii() and text.isprintable():
        return text
    return "".join(letter if letter.isascii() and letter.isprintable() else "?" for letter in text)


def extension(request: Request, response: Response, attempt: Attempt, request_id: str) -> dict[str, Any]:
    """Return the `bardo` object with what the client asked to have included."""
    fields: dict[str, Any] = {
        "request_id": request_id,
        "provider": attempt.target.provider.id,
        "model": attempt.target.model,
        "cost_usd": response.usage.cost_usd,
        "degraded": msgspec.to_builtins(response.degraded),
    }
    if "reasoning_chain" in request.options.include:
        fields["reasoning_chain"] = chain_fields(response.reasoning)
    if "receipt" in request.options.include:
        fields["receipt"] = receipt(response, attempt)
    return fields


def told(request: Request, response: Response, attempt: Attempt, request_id: str) -> Response:
    """Return the response with the `bardo` object a Python caller always gets: ids, cost and receipt; its thinking has steps."""
    fields = extension(request, response, attempt, request_id)
    bardo = {**fields, "receipt": receipt(response, attempt)}
    chain = msgspec.structs.replace(response.reasoning, control=bardo["receipt"])
    return with_steps(msgspec.structs.replace(response, bardo=bardo, reasoning=chain))


def receipt(response: Response, attempt: Attempt) -> dict[str, Any]:
    """Return what was asked for, what was sent, and what was observed: `control.receipt`, and whether the reply was forwarded."""
    plan = attempt.control
    seen = observation(response.reasoning)
    told = control.receipt(plan, seen, observe(plan, seen)) if plan is not None else {}
    return {**told, "forwarded": attempt.forward}


# How a dialect wraps its blocks (Responses' items): nothing of the model's is in it.
_WRAPPING = frozenset({"item"})


class ForeignContent:
    """Notes what a reply holds that the client's dialect has no place or word for. A caller without a dialect gets everything."""

    def __init__(self, client_dialect: str) -> None:
        self._client = client_dialect
        self._noted: set[str] = set()
        self._usage = Usage()
        self._thought = self._ended = False

    def feed(self, item: Event) -> tuple[Event, ...]:
        """Pass on, after a note the first time something is lost."""
        match item:
            case _ if not self._client:
                return (item,)
            case UnknownContent(dialect=dialect, value=value) if dialect != self._client:
                kind = value.get("type") if isinstance(value, dict) else None
                return (*self._note(f"content.{kind or 'unknown'}"), item)
            case BlockFields(dialect=dialect, fields=fields) if dialect != self._client:
                return (*(note for name in fields if name not in _WRAPPING for note in self._note(name)), item)
            case Finish():
                self._ended = True
                return (*map(Degraded, unsayable_finish(self._client, item)), item)
            case UsageUpdate(usage=usage):
                self._usage = usage
            case ThinkStart():
                self._thought = True
            case Failed():
                self._ended = False
            case _:
                pass
        return (item,)

    def finish(self) -> tuple[Event, ...]:
        """Note the counts that nobody gave, now that none can come any more."""
        if not self._ended:
            return ()
        return tuple(map(Degraded, unsayable_counts(self._client, self._usage, thought=self._thought)))

    def _note(self, what: str) -> tuple[Event, ...]:
        if what in self._noted:
            return ()
        self._noted.add(what)
        return (Degraded(Degradation(what, why="the client's dialect has no place for it")),)
