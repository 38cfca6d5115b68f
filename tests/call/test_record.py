"""One finished call as a row of the log."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from bardo.adapters.stores.log.row import LogRow
from bardo.call.call import Call
from bardo.call.row import row_of_reply
from bardo.call.services import Limits
from bardo.catalog.load import builtin
from bardo.context.sessions import CallLabels
from bardo.planning.attempt import Attempt
from bardo.planning.planner import plan
from bardo.planning.route import Provider, Target
from bardo.values.blocks import TextBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BrokenStream, UpstreamRefused
from bardo.values.events import Finish
from bardo.values.reasoning import ReasoningChain, ReasoningVisibility
from bardo.values.request import BardoOptions, Message, ReasoningPolicy, Request
from bardo.values.response import Response
from bardo.values.usage import UNKNOWN_COST, CallCost, Usage
from bardo.values.wire import WireRequest

CLIENTS_KEY = "sk-proj-0123456789abcdefghij"
REQUEST = Request(model="lab/m", messages=(Message("user", (TextBlock("Hello."),)),), stream=True)
VLLM = builtin().provider("vllm")
assert VLLM is not None
ATTEMPT = Attempt(
    target=Target(provider=Provider(id="lab", row=VLLM, base_url="http://x"), model="m"),
    wire=WireRequest(path="chat/completions", body=b"{}"),
)
RESPONSE = Response(
    blocks=(TextBlock("Four."),),
    reasoning=ReasoningChain(reasoning_tokens=3, tokens_approx=True, visibility=ReasoningVisibility.VISIBLE),
    usage=Usage(input_tokens=7, output_tokens=9, cached_input_tokens=0, cost_usd=0.5, raw={"x": 1}),
    finish=Finish("stop", "end_turn"),
    degraded=(Degradation("seed", asked=7, why="no such thing"),),
)


def row_with(
    request: Request,
    *,
    attempts: int = 1,
    cost: CallCost = UNKNOWN_COST,
    keep_content: bool = False,
    **ended: Any,
) -> LogRow:
    """Return the row of a call for a request that ended so."""
    call: Any = SimpleNamespace(
        request_id="req_1",
        started_at=5.0,
        first_byte=1.0,
        attempts=SimpleNamespace(age=lambda: 2.0, count=attempts, logged_records=lambda: ()),
        cost=cost,
        streamed=request.stream,
        operation=request.operation,
        tenant="",
        labels=CallLabels("c", "codex", "github.com/o/n"),
        key_id=None,
        tags=(),
        client_key="",
        login_secrets=tuple,
        payments=None,
        layers=None,
        services=SimpleNamespace(limits=Limits(keep_content=keep_content)),
    )
    return row_of_reply(call, request, **ended)


COST = CallCost(nanos=500_000_000, parts={"answer": 500_000_000}, reported_nanos=500_000_000, source="provider")


def test_a_reply_fills_the_row() -> None:
    row = row_with(REQUEST, outcome="ok", attempts=2, attempt=ATTEMPT, response=RESPONSE, cost=COST)
    assert (row.request_id, row.outcome, row.status, row.attempts) == ("req_1", "ok", 200, 2)
    assert (row.started_at, row.seconds, row.first_byte_seconds) == (5.0, 2.0, 1.0)
    assert (row.provider, row.provider_dialect, row.model_asked, row.model) == ("lab", "openai_chat", "lab/m", "m")
    assert (row.input_tokens, row.output_tokens, row.reasoning_tokens, row.tokens_approx) == (7, 9, 3, True)
    assert (row.cached_input_tokens, row.cache_write_tokens) == (0, None)
    assert (row.cost_usd, row.cost_nanos, row.cost_parts) == (0.5, 500_000_000, {"answer": 500_000_000})
    assert (row.finish_reason, row.finish_raw, row.visibility) == ("stop", "end_turn", "visible")
    assert row.degraded == ({"what": "seed", "asked": 7, "why": "no such thing"},)
    assert row.usage_raw == {"x": 1}


def test_a_call_that_was_planned_has_its_receipt_in_words() -> None:
    asked = msgspec.structs.replace(REQUEST, reasoning=ReasoningPolicy(mode="effort", effort="high"))
    attempt = plan(asked, msgspec.structs.replace(ATTEMPT.target, model="Qwen/Qwen3-32B"))
    assert attempt.control is not None
    row = row_with(asked, outcome="ok", attempt=attempt, response=RESPONSE)
    assert (row.reasoning_intent, row.reasoning_emitted) == ("high", attempt.control.emitted)
    assert (row.reasoning_layer, row.reasoning_verdict) == (
        attempt.control.layer,
        row.receipt and row.receipt["verdict"],
    )
    assert row.reasoning_verdict is not None
    unanswered = row_with(asked, outcome="error", attempt=attempt, error=UpstreamRefused("no", status=400))
    assert (unanswered.reasoning_intent, unanswered.reasoning_verdict) == ("high", None)


def test_reasoning_nobody_reported_is_not_zero() -> None:
    silent = Response(usage=Usage(output_tokens=9))
    row = row_with(REQUEST, outcome="ok", attempt=ATTEMPT, response=silent)
    assert row.reasoning_tokens is None
    assert row_with(REQUEST, outcome="ok", attempt=ATTEMPT, response=RESPONSE).reasoning_tokens == 3


def test_an_error_has_its_class_message_and_status() -> None:
    refused = UpstreamRefused("too many", status=429, hint="wait")
    row = row_with(REQUEST, outcome="error", attempts=1, attempt=ATTEMPT, error=refused)
    assert (row.outcome, row.status, row.error_class, row.error_message) == (
        "error",
        429,
        "UpstreamRefused",
        "too many",
    )
    assert row.output_tokens is None


def test_a_broken_stream_keeps_what_had_been_counted() -> None:
    row = row_with(REQUEST, outcome="broken", attempt=ATTEMPT, response=RESPONSE, error=BrokenStream("cut"))
    assert (row.outcome, row.error_class, row.output_tokens) == ("broken", "BrokenStream", 9)


def test_a_call_nobody_answered_has_no_status() -> None:
    row = row_with(REQUEST, outcome="cancelled", attempt=ATTEMPT)
    assert (row.status, row.error_class) == (None, None)


def test_content_goes_in_only_where_it_is_kept() -> None:
    without = row_with(REQUEST, outcome="ok", attempt=ATTEMPT, response=RESPONSE)
    assert (without.request_content, without.reply_content) == (None, None)
    kept = row_with(REQUEST, outcome="ok", attempt=ATTEMPT, response=RESPONSE, keep_content=True)
    assert "Hello." in str(kept.request_content)
    assert "Four." in str(kept.reply_content)


@pytest.mark.parametrize(
    ("key", "said", "session"),
    [
        pytest.param("any", "for any of us", "for any of us", id="a word"),
        pytest.param(CLIENTS_KEY, f"of {CLIENTS_KEY}", "of [key]", id="a key"),
        pytest.param(CLIENTS_KEY, "x" * 185 + CLIENTS_KEY, "x" * 185 + "[key]", id="a key that would be cut"),
    ],
)
def test_the_session_of_a_call_holds_no_key_of_its_client(key: str, said: str, session: str) -> None:
    services: Any = SimpleNamespace(clock=lambda: 5.0, watch=lambda: 1.0, payments=None, prices=None)
    request = msgspec.structs.replace(REQUEST, options=BardoOptions(session=said))
    assert Call(services, request, client_key=key).labels.session == session
