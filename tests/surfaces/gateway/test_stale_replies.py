"""Where nobody answers, a caller that allows it gets the reply to an earlier, equal call, marked as old; nobody else does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from bardo.adapters.config.routing import FailoverSettings
from bardo.catalog.load import builtin
from bardo.context.cache.entries import identity_of
from bardo.planning.attempt import Attempt
from bardo.planning.route import Provider, Target
from bardo.services.facts.failover import Failover, StaleReplies, StaleReply
from bardo.simulators import Fault
from bardo.values.blocks import TextBlock
from bardo.values.request import BardoOptions, Message, Request
from bardo.values.wire import WireRequest
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import CLIENTS, ask
from surfaces.gateway.cells import whole_and_streamed

MODEL = "deepseek/m"
each_client = pytest.mark.parametrize("client", CLIENTS)
DOWN = Fault("status", status=500)


@contextmanager
def keeping(entries: int = 10, **settings: Any) -> Iterator[House]:
    chosen = FailoverSettings(backoff_seconds=0.01, stale_entries=entries, **settings)
    with house([Simulator("deepseek")], failover=Failover(chosen)) as running:
        yield running


@each_client
@whole_and_streamed
@pytest.mark.parametrize("earlier", [False, True], ids=["after whole", "after streamed"])
def test_an_old_reply_is_given_where_nobody_answers(client: str, stream: bool, earlier: bool) -> None:
    with keeping() as running:
        good = ask(running.address, client, MODEL, stream=earlier)
        assert "x-bardo-stale" not in good.headers
        running.simulators["deepseek"].fail(DOWN)
        old = ask(running.address, client, MODEL, stream=stream, bardo={"allow_stale": 600, "include": ["receipt"]})
        assert old.status == 200
        assert "1161" in old.text
        assert int(old.headers["x-bardo-stale"]) >= 0
        assert "stale" in old.headers["x-bardo-degraded"].split(", ")
        assert "stale_seconds" in old.text
        row = running.log.row(old.headers["x-bardo-request-id"])
        assert row.outcome == "ok"
        assert [one["what"] for one in row.degraded if one["what"] == "stale"] == ["stale"]
        assert (row.input_tokens, row.output_tokens) == (None, None), "an old reply used nothing again"
        assert row.attempts == 2, "and those who failed are in the log"


def test_nobody_gets_an_old_reply_who_did_not_allow_it_or_asks_something_else() -> None:
    with keeping() as running:
        assert ask(running.address, "openai_chat", MODEL).status == 200
        running.simulators["deepseek"].fail(DOWN)
        assert ask(running.address, "openai_chat", MODEL).status == 500
        allowed = {"allow_stale": 600}
        assert ask(running.address, "openai_chat", MODEL, bardo=allowed).status == 200
        assert ask(running.address, "openai_chat", MODEL, bardo=allowed, temperature=0.3).status == 500
        assert ask(running.address, "openai_chat", MODEL, bardo=allowed, question="What is 2 + 2?").status == 500
        assert ask(running.address, "openai_chat", MODEL, bardo={"allow_stale": 1e-9}).status == 500


def test_a_callers_mistake_is_told_and_nothing_is_kept_unless_the_operator_wants_it() -> None:
    allowed = {"allow_stale": 600}
    with keeping() as running:
        assert ask(running.address, "openai_chat", MODEL).status == 200
        running.simulators["deepseek"].fail(Fault("status", status=400))
        assert ask(running.address, "openai_chat", MODEL, bardo=allowed).status == 400
    with keeping(entries=0) as running:
        assert ask(running.address, "openai_chat", MODEL).status == 200
        running.simulators["deepseek"].fail(DOWN)
        assert ask(running.address, "openai_chat", MODEL, bardo=allowed).status == 500


def reply(size: int, at: float = 0.0) -> StaleReply:
    row = builtin().provider("deepseek")
    assert row is not None
    target = Target(provider=Provider(id="p", row=row, base_url=row.base_url), model="m")
    return StaleReply(Attempt(target=target, wire=WireRequest(path="", body=b"")), "application/json", b"x" * size, at)


def test_what_is_the_same_request_hangs_on_the_tenant_and_the_question_and_not_on_how_it_is_sent() -> None:
    def asked(**fields: Any) -> Request:
        return Request(model="m", messages=(Message("user", (TextBlock("Hello"),)),), **fields)

    plain = identity_of(asked(), "one")
    assert plain == identity_of(asked(stream=True, options=BardoOptions(allow_stale=9.0, include=("receipt",))), "one")
    different = [
        identity_of(asked(), "two"),
        identity_of(asked(max_output_tokens=9), "one"),
        identity_of(asked(extra={"user": "u"}), "one"),
        identity_of(asked(headers={"anthropic-beta": "x"}), "one"),
        identity_of(msgspec.structs.replace(asked(), model="other"), "one"),
    ]
    assert plain not in different
    assert len(set(different)) == len(different)


def test_the_oldest_replies_make_room_and_large_ones_are_not_kept() -> None:
    kept = StaleReplies(entries=2, most_bytes=80)
    for name in (b"a", b"b", b"c"):
        kept.keep(name, reply(10))
    assert [kept.find(name, 9, 0) is None for name in (b"a", b"b", b"c")] == [True, False, False]
    kept.keep(b"b", reply(11))
    assert kept.find(b"b", 9, 0) is None
    assert kept.find(b"c", 9, 10) is None
    assert kept.find(b"c", 10, 10) is not None
