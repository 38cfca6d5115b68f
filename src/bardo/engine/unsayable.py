"""What a client's dialect has no word for: a finish, or that a count is not known.

Found by saying it: the reply's end is written as the client gets it, and read again. This is rare, and what was found is kept.
"""

from __future__ import annotations

from functools import lru_cache

import msgspec

from bardo.catalog.rows import ProviderRow
from bardo.dialects import dialect
from bardo.streams.frames import Frame
from bardo.values.degradation import Degradation
from bardo.values.events import Finish, FinishReason
from bardo.values.fold import fold
from bardo.values.request import Request
from bardo.values.response import Response
from bardo.values.usage import Usage

_COMMON: frozenset[FinishReason] = frozenset({"stop", "length", "tool_calls", "refusal"})
_COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens")


def unsayable_finish(client: str, finish: Finish) -> tuple[Degradation, ...]:
    """Return the loss where a client is told another reason than the provider gave."""
    if finish.reason in _COMMON:
        return ()
    told = _heard_finish(client, finish.reason, finish.raw)
    if told == finish.reason:
        return ()
    why = "the client's dialect has no word for it"
    return (Degradation("finish_reason", asked=finish.raw or finish.reason, sent=told, why=why),)


def unsayable_counts(client: str, usage: Usage, *, thought: bool) -> tuple[Degradation, ...]:
    """Return the counts that nobody reported and the client is told all the same, as 0.

    Reasoning that is not known to have happened (`thought`) may be told as 0.
    """
    unknown = tuple(
        name for name in _COUNTS if getattr(usage, name) is None and (thought or name != "reasoning_tokens")
    )
    if not unknown:
        return ()
    why = "nobody counted them, and the client's dialect must have a number"
    told = _heard_counts(client, unknown, usage.reported)
    return tuple(Degradation(f"usage.{name}", sent=0, why=why) for name in told)


@lru_cache(maxsize=256)
def _heard_finish(client: str, reason: FinishReason, raw: str) -> FinishReason:
    return _heard(client, Response(finish=Finish(reason, raw))).finish.reason


@lru_cache(maxsize=256)
def _heard_counts(client: str, unknown: tuple[str, ...], reported: bool) -> tuple[str, ...]:
    known = {name: 1 for name in _COUNTS if name not in unknown and reported}
    usage = _heard(client, Response(usage=Usage(**known), finish=Finish("stop"))).usage
    return tuple(name for name in unknown if getattr(usage, name) is not None)


def _heard(client: str, response: Response) -> Response:
    """Return what a client makes of a reply."""
    language = dialect(client)
    named = msgspec.structs.replace(response, id="r", model="m")
    body = language.encode_response(named, Request(model="m", messages=(), dialect=client))
    row = msgspec.convert({"id": client, "name": client, "dialect": client}, ProviderRow)
    decoder = language.open_decoder(row)
    return fold([*decoder.feed(Frame(body)), *decoder.finish()])
