"""What bardo's log, usage and budgets tell of a mixture of calls, beside what their upstreams counted themselves.

The mixture is drawn by a seed: whole streams, clients that leave at any point, upstreams that break off at any point. Nothing that passed
counts as nothing, nothing counts as more than was sent and a bound, and what is spent is the sum of the log.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple

import httpx
import pytest

from bardo.adapters.stores.log import LogReader
from bardo.simulators import Incoming
from bardo.simulators.delivery import Action, End, Head, Pause, Send
from support.any_model import Simulator
from support.keyed_gateway import PRICE, keyed_gateway
from support.patience import PATIENCE
from support.sampling import NIGHTLY
from support.talk import Caller, body_for, path_for

CALLS = 300 if NIGHTLY else 30
CLIENTS = ("openai_chat", "anthropic_messages", "openai_responses")
PIECE = ("a story of many words " * 10)[:200]
PIECE_TOKENS = 50
INPUT_TOKENS = 40
NANOS_IN, NANOS_OUT = 1_000, 10_000
SHARE, INPUT_BOUND = 0.15, 60
"""By how much an estimate of what was written, and of how many tokens one of a prompt, may be off."""


class Plan(NamedTuple):
    """One call: who asks, who answers, how it ends, and after how many pieces."""

    number: int
    client: str
    upstream: str
    ends: Literal["whole", "left", "broken"]
    after: int

    @property
    def model(self) -> str:
        return f"m{self.number}-{self.ends}-{self.after}"


def mixture(seed: int) -> list[Plan]:
    drawn = random.Random(seed)
    return [
        Plan(
            number, drawn.choice(CLIENTS), drawn.choice(["anthropic", "deepseek"]), drawn.choice(["whole", "left", "broken", "broken"]),
            drawn.choice([0, 1, 2, drawn.randint(3, 60)]),
        )
        for number in range(CALLS)
    ]  # fmt: skip


class Counted:
    """What upstreams counted of each model: the attempts that they got, and the pieces that they sent."""

    def __init__(self) -> None:
        self.attempts: dict[str, int] = {}
        self.pieces: dict[str, int] = {}
        self._lock = threading.Condition()

    def add(self, model: str, *, attempts: int = 0, pieces: int = 0) -> None:
        with self._lock:
            self.attempts[model] = self.attempts.get(model, 0) + attempts
            self.pieces[model] = self.pieces.get(model, 0) + pieces
            self._lock.notify_all()

    def wait_for(self, model: str) -> None:
        """Wait until an upstream was asked for a model."""
        with self._lock:
            assert self._lock.wait_for(lambda: model in self.attempts, PATIENCE)


class Billing(Simulator):
    """An upstream that does what the name of the model says, and counts what it sends."""

    def __init__(self, provider: str, counted: Counted) -> None:
        super().__init__(provider)
        self._counted = counted
        self._is_claude = provider == "anthropic"

    def actions(self, incoming: Incoming) -> Iterator[Action]:
        if incoming.method != "POST":
            yield from super().actions(incoming)
            return
        model = str(incoming.fields["model"])
        _, ends, after = model.split("-")
        self._counted.add(model, attempts=1)
        yield Head(200, (("content-type", "text/event-stream"),), None)
        yield from self._begin()
        for place in range(int(after) if ends != "left" else 5_000):
            if ends == "left":
                yield Pause(0.002)
            self._counted.add(model, pieces=1)
            yield Send(self._piece(place))
        if ends == "whole":
            yield from self._end(int(after) * PIECE_TOKENS)
        yield End()

    def _begin(self) -> Iterator[Action]:
        if self._is_claude:
            usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 1}
            message = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [],
                "usage": usage,
            }
            yield Send(event({"type": "message_start", "message": message}))
            yield Send(
                event({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
            )

    def _piece(self, place: int) -> bytes:
        text = f"<{place}>".ljust(10) + PIECE[10:]
        if self._is_claude:
            return event({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        return data(chunk({"content": text}))

    def _end(self, tokens: int) -> Iterator[Action]:
        if self._is_claude:
            yield Send(event({"type": "content_block_stop", "index": 0}))
            yield Send(
                event(
                    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": tokens}}
                )
            )
            yield Send(event({"type": "message_stop"}))
            return
        usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": tokens, "total_tokens": INPUT_TOKENS + tokens}
        yield Send(data(chunk({}, "stop")))
        yield Send(data({**chunk({}), "choices": [], "usage": usage}))
        yield Send(b"data: [DONE]\n\n")


def event(value: dict[str, Any]) -> bytes:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n".encode()


def data(value: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def make(plan: Plan, address: str, key: str, counted: Counted) -> int:
    """Make a call, and return how many pieces of its answer the client has got."""
    model = f"{plan.upstream}/{plan.model}"
    body, path = body_for(plan.client, model, stream=True), path_for(plan.client, model, stream=True)
    if plan.ends == "left":
        with Caller(address, path, body, key=key) as caller:
            if plan.after:
                caller.hear(f"<{plan.after - 1}>".encode())
            counted.wait_for(plan.model)
        return plan.after
    with suppress(httpx.RemoteProtocolError):
        answer = httpx.post(f"{address}{path}", json=body, headers={"authorization": f"Bearer {key}"}, timeout=PATIENCE)
        assert answer.status_code == 200 or plan.after == 0, answer.text
    return plan.after


@pytest.mark.parametrize("seed", [20261129, pytest.param(7, marks=pytest.mark.nightly)])
def test_what_is_counted_is_what_the_upstreams_counted(tmp_path: Path, seed: int) -> None:
    plans, counted = mixture(seed), Counted()
    upstreams: list[Simulator] = [Billing("anthropic", counted), Billing("deepseek", counted)]
    with keyed_gateway(tmp_path, upstreams, toml=PRICE) as gateway, ThreadPoolExecutor(6) as threads:
        key = gateway.key(usd_per_day=1_000.0, tokens_per_minute=100_000_000)
        heard = dict(
            zip(plans, threads.map(lambda plan: make(plan, gateway.address, key, counted), plans), strict=True)
        )
        usage = usage_of(gateway.address, key, calls=len(plans))
        log = gateway.log
    with LogReader(log) as reader:
        rows = {row.model: row for row in reader.recent(10_000)}
        (group,) = reader.costs(())
    assert sorted(rows) == sorted(plan.model for plan in plans)
    wrong = []
    for plan in plans:
        row, attempts = rows[plan.model], counted.attempts.get(plan.model, 0)
        sent = counted.pieces.get(plan.model, 0) * PIECE_TOKENS * NANOS_OUT
        passed = heard[plan] * PIECE_TOKENS * NANOS_OUT
        most = sent * (1 + SHARE) + attempts * ((INPUT_TOKENS + INPUT_BOUND) * NANOS_IN + PIECE_TOKENS * NANOS_OUT)
        least = passed * (1 - SHARE)
        exact = attempts * INPUT_TOKENS * NANOS_IN + sent
        cost = row.cost_nanos
        if cost is None:
            # Nobody knows what a call costs that was left before a word of it came.
            good = passed == 0 and plan.ends != "whole"
        elif plan.ends == "whole":
            good = cost == exact
        else:
            good = max(1, least) <= cost <= most and row.tokens_approx
        if not good:
            wrong.append((plan, row.outcome, row.attempts, least, cost, most))
    assert wrong == []
    spent = sum(row.cost_nanos or 0 for row in rows.values())
    assert group.sums.cost_nanos == spent
    assert group.sums.estimated_nanos == sum(row.cost_nanos or 0 for row in rows.values() if row.tokens_approx)
    today = usage["today"]
    assert today["spent_usd"] == pytest.approx(spent / 1e9, abs=1e-9)
    assert today["calls_of_unknown_cost"] == sum(row.cost_nanos is None for row in rows.values())
    assert usage["limits"]["usd_per_day"]["used"] == pytest.approx(today["spent_usd"] + today["reserved_usd"], abs=1e-9)


def usage_of(address: str, key: str, *, calls: int) -> Any:
    """Return the usage of a key once all of its calls are counted."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        told = httpx.get(f"{address}/v1/bardo/usage", headers={"authorization": f"Bearer {key}"}).json()
        if told["today"]["calls"] == calls:
            return told
        time.sleep(0.05)
    raise AssertionError(told)
