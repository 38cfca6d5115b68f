"""The headers of a reply stay small, whatever was degraded and however things are called."""

from __future__ import annotations

import msgspec
import pytest

from bardo import decode
from bardo.catalog.load import builtin
from bardo.planning.attempt import Attempt
from bardo.planning.exchange import first_attempt
from bardo.planning.route import Provider, Target
from bardo.replies.receipt import early_headers, late_headers, receipt
from bardo.values.blocks import Carried, TextBlock
from bardo.values.degradation import Degradation, distinct
from bardo.values.request import Message, ReasoningPolicy, Request
from bardo.values.response import Response
from bardo.values.usage import UNKNOWN_COST

# A usual proxy allows 8 kB for all headers of a reply.
MOST_BYTES = 4_000


def _attempt(degraded: tuple[Degradation, ...], model: str = "m1") -> Attempt:
    row = builtin().provider("deepseek")
    assert row is not None
    target = Target(provider=Provider(id="deepseek", row=row, base_url=row.base_url), model=model)
    request = Request(model=model, messages=(Message("user", (TextBlock("x"),)),))
    return msgspec.structs.replace(first_attempt(request, [target]), degraded=distinct(degraded))


@pytest.mark.parametrize(
    "names",
    [
        [f"field_{place}" for place in range(16_000)],
        ["x" * 200_000],
        [f"{place}{'y' * 5_000}" for place in range(200)],
        ["\r\nset-cookie: a=b"],
        ["ß" * 3_000],
    ],
    ids=["many", "one long", "many long", "a line break", "not ascii"],
)
@pytest.mark.parametrize("finished", [False, True], ids=["streamed", "whole"])
def test_all_headers_together_stay_small(names: list[str], finished: bool) -> None:
    attempt = _attempt(tuple(map(Degradation, names)), model="m" * 256)
    response = Response(degraded=attempt.degraded) if finished else None
    headers = early_headers("req_" + "0" * 24, attempt, response)
    headers += late_headers(response, attempt, UNKNOWN_COST) if response is not None else []
    assert sum(len(name) + len(value) + 4 for name, value in headers) < MOST_BYTES
    assert all(value.isascii() and value.isprintable() for _, value in headers)


def test_the_names_after_the_bound_are_counted() -> None:
    attempt = _attempt(tuple(Degradation(f"field_{place}") for place in range(16_000)))
    listed = dict(early_headers("r", attempt))["X-Bardo-Degraded"].split(", ")
    assert listed[0] == "field_0"
    assert listed[-1] == f"{16_000 - len(listed) + 1} more"


def test_a_name_stands_once() -> None:
    attempt = _attempt((Degradation("seed", asked=1), Degradation("seed", asked=2), Degradation("stop")))
    assert dict(early_headers("r", attempt))["X-Bardo-Degraded"] == "seed, stop"


def test_the_reasoning_that_a_provider_left_out_is_in_the_receipt() -> None:
    left_out = [{"type": "reasoning", "id": "rs_1", "action": "removed", "reason": "model_mismatch"}]
    response = Response(carried=Carried("openai_responses", {"input_transformations": left_out}))
    assert receipt(response, _attempt(()), forwarded=False)["input_transformations"] == left_out
    assert "input_transformations" not in receipt(Response(), _attempt(()), forwarded=False)


@pytest.mark.parametrize(
    ("applied", "verdict"),
    [("medium", "clamped"), ("max", "honoured"), (None, "honoured"), ("x" * 5_000, "honoured"), (7, "honoured")],
    ids=["another", "the same", "no word", "no level", "no text"],
)
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
def test_what_a_reply_says_was_applied_is_in_the_receipt_and_the_verdict(
    applied: object, verdict: str, streamed: bool
) -> None:
    """CT8: `effort: "medium"` in the reply to a request for `max`."""
    row = builtin().provider("openai")
    assert row is not None
    target = Target(provider=Provider(id="openai", row=row, base_url=row.base_url), model="gpt-5.6")
    asked = Request(
        model="gpt-5.6",
        messages=(Message("user", (TextBlock("x"),)),),
        reasoning=ReasoningPolicy(mode="effort", effort="max"),
    )
    body: dict[str, object] = {
        "id": "r",
        "object": "response",
        "status": "completed",
        "model": "gpt-5.6",
        "output": [],
        "reasoning": {"effort": applied, "summary": None},
        "usage": {"input_tokens": 1, "output_tokens": 99, "output_tokens_details": {"reasoning_tokens": 90}},
    }
    sent: dict[str, object] = {"type": "response.completed", "response": body} if streamed else body
    data = msgspec.json.encode(sent)
    response = decode(b"data: " + data + b"\n\n" if streamed else data, "openai", streamed=streamed)
    attempt = first_attempt(asked, [target])
    told = receipt(response, attempt, forwarded=False)
    assert told["verdict"] == verdict
    assert told["observed"]["effort"] == (applied if applied in ("medium", "max") else None)
    assert dict(late_headers(response, attempt, UNKNOWN_COST))["X-Bardo-Reasoning"].endswith(f"verdict={verdict}")
