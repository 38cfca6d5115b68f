"""Rows of the log and replies each of whose texts is hostile."""

from __future__ import annotations

from bardo.adapters.stores.log import LogRow
from bardo.values.attempts import AttemptRecord
from bardo.values.blocks import ReasoningBlock, RefusalBlock, ReplyBlock, TextBlock, ToolCallBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import UpstreamRefused
from bardo.values.events import Finish
from bardo.values.response import Response


def hostile_row(text: str, number: int = 0, *, started_at: float = 1_700_000_000.0) -> LogRow:
    """Return a row each of whose texts, and each key of whose objects, is hostile."""
    layer = {"layer": text, "did": text, "saw": {text: text}, "off": text}
    candidate = {"provider": text, "model": text, "degraded": [text], "reasons": [text]}
    return LogRow(
        request_id=f"{number}-{text[:200]}",
        started_at=started_at,
        client_dialect=text,
        provider=text,
        provider_dialect=text,
        model_asked=text,
        model=text,
        operation=text,
        outcome="error",
        status=500,
        error_class=text,
        error_message=text,
        finish_reason=text,
        finish_raw=f"{text}!",
        visibility=text,
        usage_raw={text: text},
        cost_usd=0.5,
        cost_nanos=500_000_000,
        cost_parts={text: 5},
        degraded=({"what": text, "asked": text, "sent": {text: text}, "why": text},),
        receipt={
            "intent": text,
            "emitted": {text: text},
            "layer": text,
            "reason": text,
            "observed": {"visibility": text},
            "verdict": text,
        },
        reasoning_emitted=text,
        request_content=text,
        reply_content=text,
        route={
            "workload": text,
            "vitality": text,
            "strategy": text,
            "candidates": [candidate],
            "refused": [candidate],
        },
        key_id=text,
        subsystem=text,
        tags=(text,),
        attempt_records=(AttemptRecord(cause="first", provider=text, model=text, why=text, address=text, error=text),),
        pipeline={"profile": text, "layers": [layer]},
        cache=text,
    )


def hostile_reply(text: str) -> Response:
    """Return a reply each of whose texts is hostile."""
    error = UpstreamRefused(text, provider=text, status=500)
    lost = Degradation(text, asked=text, sent=text, why=text)
    finish = Finish(reason="unknown", raw=text)
    return Response(
        blocks=hostile_blocks(text), provider=text, model=text, finish=finish, degraded=(lost,), error=error
    )


def hostile_blocks(text: str) -> tuple[ReplyBlock, ...]:
    """Return a block of each kind."""
    return (
        ReasoningBlock(text=text),
        TextBlock(text=text),
        ToolCallBlock(id=text, name=text, arguments=text),
        RefusalBlock(text=text),
    )
