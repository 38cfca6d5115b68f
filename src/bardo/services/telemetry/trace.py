"""W3C Trace Context: read what a client sent, and write what a provider gets (w3.org/TR/trace-context, level 1)."""

from __future__ import annotations

import re
from typing import NamedTuple

from bardo.values.chance import CHANCE
from bardo.values.request import TRACE_HEADERS

TRACEPARENT, TRACESTATE = TRACE_HEADERS
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_SAMPLED = 0x01
_LONGEST_STATE = 512


class TraceContext(NamedTuple):
    """The span of one call. `parent` is the client's span, 0 where it sent none; `state` is passed on as it came."""

    trace_id: int
    span_id: int
    parent: int = 0
    sampled: bool = True
    state: str = ""

    def headers(self) -> dict[str, str]:
        """Return the headers by which a provider's spans become children of this one."""
        flags = _SAMPLED if self.sampled else 0
        found = {TRACEPARENT: f"00-{self.trace_id:032x}-{self.span_id:016x}-{flags:02x}"}
        return found | {TRACESTATE: self.state} if self.state else found


def begin_trace(traceparent: str = "", tracestate: str = "") -> TraceContext:
    """Return the context of a new span: a child of the client's where its header is sound, else the root of a trace of its own."""
    found = _FORM.fullmatch(traceparent.strip())
    span = CHANCE.getrandbits(64) or 1
    if (
        found is None
        or found[1] == "ff"
        or (found[1] == "00" and found[5])
        or not int(found[2], 16)
        or not int(found[3], 16)
    ):
        return TraceContext(CHANCE.getrandbits(128) or 1, span)
    state = tracestate if len(tracestate) <= _LONGEST_STATE else ""
    return TraceContext(int(found[2], 16), span, int(found[3], 16), bool(int(found[4], 16) & _SAMPLED), state)
