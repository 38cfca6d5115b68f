"""The basket sends real work, knows what must come back, and says who stands where. Nothing here is timed."""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import sys
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import msgspec
import pytest
from benchmarks import basket, basket_contestants, interleaved, stages
from benchmarks.basket import Cell, requests_of
from benchmarks.basket_contestants import (
    CHAT_CHAT,
    KEYED,
    MESSAGES_CHAT,
    MESSAGES_MESSAGES,
    WAYS,
    Participant,
    Way,
    bardo_of,
)
from benchmarks.basket_replies import EVENTS, Delivery, name_of, problem_of, reply_to, said
from benchmarks.basket_requests import PROGRAMS, SESSIONS, Numbered, agent_turns, short_request
from benchmarks.bench import Bench, Pace, Sample
from benchmarks.contestants import FLOOR, Contestant, Gateway, Lane, Place
from benchmarks.figures import Figure, Row, Table, targets_markdown
from benchmarks.load import Asked, Job, Named, Result, Spread, execute, without_chunks
from benchmarks.sampled_app import STAGES, THREADS
from benchmarks.upstream import listen

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the benchmarks read /proc")

TINY = Pace(rounds=1, seconds=0.0, starts=1, soak_requests=20, quick=True)
PATHS = {
    "openai_chat": "/v1/chat/completions",
    "anthropic_messages": "/v1/messages",
    "openai_responses": "/v1/responses",
    "gemini": "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
}
KINDS = ("none", "short", "long")


def sent_in(dialect: str, kind: str, delivery: Delivery, number: str) -> bytes:
    """Return the body with which the upstream answers a request in this dialect."""
    request = f"POST {PATHS[dialect]} HTTP/1.1\r\n\r\n{name_of(kind, delivery, number)}".encode()
    pieces = reply_to(request)
    assert pieces is not None
    body = b"".join(pieces).partition(b"\r\n\r\n")[2]
    return body if delivery == "whole" else without_chunks(body)


@pytest.mark.parametrize("dialect", PATHS)
@pytest.mark.parametrize("delivery", ["whole", "burst", "paced"])
def test_what_the_upstream_sends_is_what_the_basket_expects(dialect: str, delivery: Delivery) -> None:
    for kind in KINDS:
        for number in ("0", "7"):
            assert problem_of(kind, number, dialect, sent_in(dialect, kind, delivery, number)) == ""


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages"])
def test_a_turn_of_an_agent_is_answered_with_thinking_its_signature_and_a_call(dialect: str) -> None:
    body = sent_in(dialect, "agent", "whole", "s.1.2")
    assert problem_of("agent", "s.1.2", dialect, body) == ""
    assert said("agent", "s.1.2").signature.encode() in body
    assert said("agent", "s.1.2").tool.encode() in body


def lacking(**changed: Any) -> bytes:
    """Return a Chat reply to "long" that lacks something."""
    body = json.loads(sent_in("openai_chat", "long", "whole", "1"))
    message = body["choices"][0]["message"]
    for name, value in changed.items():
        if value is None:
            message.pop(name, None)
        else:
            message[name] = value
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (lacking(content="Something else."), "its text has 15 letters"),
        (lacking(reasoning=None, reasoning_details=None), "its thinking has 0 letters"),
        (lacking(reasoning_details=None), "the signature of its thinking is lost"),
        (lacking(tool_calls=[{"id": "1", "function": {"name": "f", "arguments": "{}"}}]), "its calls are [('f', {})]"),
        (b'{"error": {"message": "no"}}', "it is an error"),
    ],
    ids=["another text", "no thinking", "no signature", "a call that nobody sent", "an error"],
)
def test_a_reply_that_is_not_what_was_sent_is_told_apart(reply: bytes, problem: str) -> None:
    assert problem_of("long", "1", "openai_chat", reply).startswith(problem)


@pytest.mark.parametrize(("held", "is_right"), [("{}", True), ("not {}", False)])
def test_a_signature_may_come_in_what_a_gateway_wraps_it_in(held: str, is_right: bool) -> None:
    sent = said("long", "1")
    inside = held.format(sent.signature if is_right else sent.signature[::-1])
    detail = {"type": "reasoning.encrypted", "data": base64.urlsafe_b64encode(inside.encode()).decode().rstrip("=")}
    found = problem_of("long", "1", "openai_chat", lacking(reasoning_details=[detail]))
    assert found == ("" if is_right else "the signature of its thinking is lost")


def test_the_last_reply_that_a_request_names_is_given() -> None:
    head = b"POST /v1/chat/completions HTTP/1.1\r\n\r\n"
    first, last = name_of("none", "whole", "1").encode(), name_of("none", "whole", "2").encode()
    found = reply_to(head + first + b" and then " + last + b" as it is")
    assert found is not None
    assert problem_of("none", "2", "openai_chat", b"".join(found).partition(b"\r\n\r\n")[2]) == ""
    assert reply_to(head + b"nothing is named") is None


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("dialect", "marks"),
    [
        ("openai_chat", ('"reasoning_content":"', '"reasoning":"', '"content":"')),
        ("anthropic_messages", ('"type":"thinking_delta"', '"type":"text_delta"')),
        ("openai_responses", ('"type":"response.reasoning_summary_text.delta"', '"type":"response.output_text.delta"')),
        ("gemini", ('"text":"',)),
    ],
)
def test_every_stream_has_as_many_pieces_of_text(kind: str, dialect: str, marks: tuple[str, ...]) -> None:
    events = sent_in(dialect, kind, "burst", "3").decode().split("\n\n")
    pieces = [event for event in events if any(mark in event for mark in marks) and '"content":""}' not in event]
    if dialect == "openai_chat":
        pieces = [event for event in pieces if '"signature"' not in event]
    assert len(pieces) == EVENTS


def without_a_model(numbered: Numbered) -> str:
    return json.dumps(numbered[1], sort_keys=True)


def test_no_two_requests_of_the_basket_are_equal() -> None:
    small = [cell for cell in basket.cells() if cell.calls <= 3]
    asked = [
        (cell.way.client, without_a_model(one))
        for number in range(2)
        for cell in small
        for one in sent_of(basket.requests_of(cell, number, SESSIONS if cell.calls else PROGRAMS))
    ]
    # What a client sends to another provider is another request, for its model is.
    assert len({*asked}) == len(asked)


def sent_of(requests: basket.Requests) -> Iterator[Numbered]:
    yield from requests.before
    yield from requests.measured


def test_shapes_of_requests_repeat_as_those_of_six_programs_with_three_system_prompts() -> None:
    asked = [short_request("openai_chat", "short", "whole", place, "1")[1] for place in range(60)]
    assert len({tuple(fields) for fields in asked}) > 3
    assert len({(tuple(fields), *map(tuple, fields["messages"])) for fields in asked}) <= PROGRAMS
    assert len({fields["messages"][0]["content"] for fields in asked}) == 3
    assert len({len(fields["messages"][1]["content"]) for fields in asked}) > 30


@pytest.mark.parametrize("dialect", ["openai_chat", "anthropic_messages"])
def test_a_seen_history_is_what_was_sent_before_and_one_call_more(dialect: str) -> None:
    before, turns = agent_turns(dialect, 3, "seen", 2, "1")
    sent = [*before, *turns]
    for session in range(SESSIONS):
        histories = [one[1]["messages"] for one in sent[session::SESSIONS]]
        assert all(later[:-2] == earlier for earlier, later in pairwise(histories))
    assert [one[0].rpartition(".")[2] for one in sent[::SESSIONS]] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(("calls", "played"), [(3, 3), (30, 30), (120, 10)])
def test_the_last_turns_of_a_seen_history_went_through_the_gateway(calls: int, played: int) -> None:
    before, _ = agent_turns("openai_chat", calls, "seen", 1, "1")
    behind = [int(number.rpartition(".")[2]) for number, _ in before[::SESSIONS]]
    assert behind == [*range(calls - played, calls)]
    assert len(before) == played * SESSIONS


def test_a_history_never_seen_is_of_a_new_session_or_stands_under_another_system_prompt() -> None:
    _, seen = agent_turns("anthropic_messages", 3, "seen", 1, "1")
    before, new = agent_turns("anthropic_messages", 3, "new", 2, "1")
    known = {json.dumps(one[1]["messages"]) for one in seen}
    prompts = {one[1]["system"] for one in seen}
    known_histories = [json.dumps(one[1]["messages"]) in known for one in new]
    assert not before
    assert known_histories == [place % 2 == 0 for place in range(2 * SESSIONS)]
    assert not any(one[1]["system"] in prompts for one in new)
    firsts = {json.dumps(one[1]["messages"][0]) for one in seen}
    assert all((json.dumps(one[1]["messages"][0]) in firsts) == (place % 2 == 0) for place, one in enumerate(new))


def test_the_cells_are_those_that_the_basket_promises() -> None:
    cells = basket.cells()
    assert len({*map(str, cells)}) == len(cells)
    replies = [cell for cell in cells if not cell.calls and not cell.keyed and cell.kind != "typed"]
    turns = [cell for cell in cells if cell.calls]
    assert len(replies) == len(KINDS) * 3 * 7
    assert {(cell.calls, cell.history) for cell in turns} == {
        (calls, history) for calls in (3, 30, 120) for history in ("seen", "new")
    }
    assert {cell.way.is_forwarded for cell in turns} == {True, False}
    assert sum(cell.kind == "typed" for cell in cells) == sum(cell.keyed for cell in cells) == 1


def answered(named: Named, sent: str) -> Result:
    """Return what the load generator says of a reply that should be `named`."""

    async def both() -> Result:
        server = await listen()
        try:
            port = server.sockets[0].getsockname()[1]
            asked = Asked(path=PATHS["openai_chat"], headers={}, body=json.dumps({"say": sent}), named=named)
            return await execute(Job(port=port, asked=(asked,), concurrency=2, least=4))
        finally:
            server.close()
            await server.wait_closed()

    return asyncio.run(both())


@pytest.mark.parametrize("delivery", ["whole", "burst"])
def test_a_reply_of_the_basket_counts_where_it_is_the_one_that_was_named(delivery: Delivery) -> None:
    right = answered(Named("openai_chat", "short", "1"), name_of("short", delivery, "1"))
    wrong = answered(Named("openai_chat", "short", "2"), name_of("short", delivery, "1"))
    assert (right.requests, right.failed) == (4, 0), right.first_failure
    assert right.latency.p50 > 0
    assert (wrong.requests, wrong.failed) == (0, 4)
    assert wrong.first_failure.startswith("the reply 'short' is not what was sent: its text has")


def test_bardo_goes_each_way_to_the_dialect_that_it_says_and_gives_back_what_was_sent() -> None:
    asked: list[tuple[Way, str, Delivery]] = [
        *((way, "long", "whole") for way in WAYS),
        *((way, "short", "burst") for way in WAYS),
        *((way, "agent", "whole") for way in (CHAT_CHAT, MESSAGES_MESSAGES, MESSAGES_CHAT)),
        (CHAT_CHAT, "typed", "whole"),
    ]
    with Bench(TINY, lambda _: None) as bench:
        one = basket_contestants.participants()[0]
        gateway = bench.start(one.contestant)
        assert gateway is not None
        for way, kind, delivery in asked:
            cell = Cell(way=way, kind=kind, delivery=delivery, calls=3 if kind == "agent" else 0)
            number, fields = basket.requests_of(cell, 1, SESSIONS).measured[0]
            reply = exchange(gateway, one.asked(way, kind, number, fields))
            assert problem_of(kind, number, way.client, reply) == "", str(cell)
            # An id says in which dialect the upstream was asked.
            assert f"{way.provider}_{kind}_{number}".encode() in reply, str(cell)


def exchange(gateway: Gateway, asked: Asked) -> bytes:
    connection = http.client.HTTPConnection("127.0.0.1", gateway.port, timeout=60)
    try:
        connection.request(
            "POST", asked.path, asked.body, {"content-type": "application/json", "connection": "close", **asked.headers}
        )
        return connection.getresponse().read()
    finally:
        connection.close()


def test_bardo_with_keys_asks_for_one_and_answers_it() -> None:
    cell = Cell(way=CHAT_CHAT, kind="none", keyed=True)
    with Bench(TINY, lambda _: None) as bench:
        one = next(one for one in basket_contestants.participants() if one.name == KEYED)
        gateway = bench.start(one.contestant)
        assert gateway is not None
        number, fields = basket.requests_of(cell, 1, 1).measured[0]
        asked = one.asked(cell.way, cell.kind, number, fields)
        assert problem_of(cell.kind, number, "openai_chat", exchange(gateway, asked)) == ""
        nobody = msgspec.structs.replace(asked, headers={})
        assert b"error" in exchange(gateway, nobody)
    assert [who.name for who in basket_contestants.participants() if basket.can(who, cell)] == [KEYED, FLOOR]


class Scripted:
    """A bench that measures nothing: a request to bardo takes 30 µs, to anybody else 10; the peer's replies are wrong."""

    def __init__(self) -> None:
        self.pace = TINY
        self.sent: list[tuple[str, int]] = []

    def tell(self, text: str) -> None:
        """Nobody listens."""

    def send(self, gateway: Any, asked: tuple[Asked, ...], *, concurrency: int, least: int) -> Sample:
        self.sent.append((gateway, least))
        failed = least if gateway == "peer" else 0
        said_wrong = "7 words in a reply that begins 'x'" if failed else ""
        result = Result(
            requests=least - failed,
            failed=failed,
            first_failure=said_wrong,
            seconds=1,
            latency=Spread(),
            first_byte=Spread(),
        )
        return Sample(cpu=30 if gateway == "bardo" else 10, result=result)


def nothing(_: Place) -> list[str]:
    return []


def participant(name: str, *, packages: tuple[str, ...] = ()) -> Participant:
    contestant = Contestant(
        name=name, lanes=(Lane(name="forwarded"),), command=nothing, packages=packages, slow=bool(packages)
    )
    return Participant(contestant=contestant, model=str)


def test_a_peer_whose_replies_are_wrong_is_asked_once_and_it_is_said_why() -> None:
    bench = Scripted()
    cells = [Cell(way=CHAT_CHAT, kind="none"), Cell(way=CHAT_CHAT, kind="agent", calls=3)]
    running = [
        (participant("bardo"), "bardo"),
        (participant(FLOOR), FLOOR),
        (participant("p", packages=("p",)), "peer"),
    ]
    found, problems, loads = basket.measure_rounds(cast(Any, bench), cast(Any, running), cells)
    assert problems == {"p: … words in a reply": [str(cell) for cell in cells]}
    assert len(loads) == 2
    assert len(found["bardo", cells[0]]) == 1
    assert not any(sample.usable for cell in cells for sample in found["p", cell])
    # A slow peer gets an eighth of the requests, of a seen history its last turn before, and a wrong one none in the second round.
    assert [count for name, count in bench.sent if name == "peer"] == [2, 2, 2]
    assert [count for name, count in bench.sent if name == "bardo"] == [
        8,
        3 * SESSIONS,
        SESSIONS,
        32,
        3 * SESSIONS,
        2 * SESSIONS,
    ]


def found_table(figures: dict[str, dict[str, float]]) -> Table:
    rows = [
        Row(
            measure=str(cell),
            unit="µs",
            figures={
                name: Figure(median=one, low=one, high=one, rounds=1)
                for name, one in figures.get(str(cell), {}).items()
            },
            cannot=("LiteLLM",),
        )
        for cell in basket.cells()
    ]
    return Table(subject="basket", title="basket", columns=("bardo", FLOOR, "LiteLLM"), rows=tuple(rows), floor=FLOOR)


def test_the_basket_is_the_geometric_mean_of_its_cells_and_misses_are_shown_as_misses() -> None:
    plain, thinks = Cell(way=CHAT_CHAT, kind="none"), Cell(way=CHAT_CHAT, kind="long")
    turn = Cell(way=MESSAGES_CHAT, kind="agent", calls=30, history="new")
    table = found_table(
        {
            str(plain): {"bardo": 200, FLOOR: 100, "LiteLLM": 8_000},
            str(thinks): {"bardo": 300, FLOOR: 100, "TensorZero": 150},
            str(turn): {"bardo": 900, FLOOR: 200, "sglang-router": 1_000, "LiteLLM": 9_000},
        }
    )
    found = {target.says: (target.found, target.met) for target in basket.targets(table)}
    assert found == {
        "basket: bardo over the bare proxy, geometric mean": (pytest.approx(3.0), False),
        f"each cell over the bare proxy ({turn})": (4.5, False),
        f"each agent's turn behind 30 calls ({turn})": (900, False),
        f"a reply that thinks over the same that does not ({thinks})": (1.5, False),
        f"each cell over TensorZero, where it can ({thinks})": (2.0, False),
        f"agents' turns from 30 calls on over sglang-router ({turn})": (0.9, True),
        "LiteLLM over bardo, where it can": (pytest.approx(20.0), False),
        "LiteLLM over bardo, agents' turns": (pytest.approx(10.0), False),
        "cells in which every reply was right": (3, False),
    }
    assert "**not met**" in targets_markdown(basket.targets(table))
    lines = basket.summary(table).markdown()
    assert "| **basket**: bardo's time over the bare proxy's (3 cells, 2.00 to 4.50), × | 3.00 |" in lines
    assert "| LiteLLM's time over bardo's, where it can (2 cells, 10.0 to 40.0), × | 20.0 |" in lines


def test_who_cannot_do_a_cell_is_told_from_who_failed() -> None:
    row = Row(measure="m", unit="µs", failed={"bardo": "wrong"}, cannot=("LiteLLM",))
    table = Table(subject="t", title="t", columns=("bardo", "LiteLLM", "nobody"), rows=(row,))
    assert "| m, µs | failed | cannot | – |" in table.markdown()


def test_a_target_that_nothing_was_measured_for_is_not_met_and_not_missed() -> None:
    targets = basket.targets(found_table({}))
    assert {target.met for target in targets} == {None, False}
    assert [target.says for target in targets if target.met is False] == ["cells in which every reply was right"]
    assert basket.summary(found_table({})).rows == ()


def test_interleaved_conversations_take_turns_and_only_the_later_turns_count(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    class Growing(Scripted):
        def send(self, gateway: Any, asked: tuple[Asked, ...], *, concurrency: int, least: int) -> Sample:
            sent.extend(one.named.number for one in asked if one.named is not None)
            calls = int(sent[-1].rpartition(".")[2])
            sample = super().send(gateway, asked, concurrency=concurrency, least=least)
            return msgspec.structs.replace(sample, cpu=calls)

    monkeypatch.setattr(interleaved, "_BATCH", 3)
    one = participant("bardo")
    bench, gateway = cast(Bench, Growing()), cast(Gateway, "bardo")
    figure = interleaved.measured(bench, one, gateway, MESSAGES_CHAT, 5)
    turns = [[number for number in sent if number.endswith(f".{calls}")] for calls in range(33, 40)]
    assert [number for turn in turns for number in turn] == sent
    assert [len(set(turn)) for turn in turns] == [5] * 7
    assert figure.median == sum(range(35, 40)) / 5
    with pytest.raises(ValueError, match="7 words"):
        interleaved.measured(bench, one, cast(Gateway, "peer"), MESSAGES_CHAT, 5)


def test_one_conversation_ends_before_the_next_begins() -> None:
    bench = Scripted()
    interleaved.measured(cast(Bench, bench), participant("bardo"), cast(Gateway, "bardo"), CHAT_CHAT, 1)
    assert bench.sent == [("bardo", 1)] * 12 * 7


@pytest.mark.parametrize("cell", stages.CELLS, ids=str)
def test_the_least_of_each_stage_is_measured_on_what_the_cell_sends(cell: Cell) -> None:
    requests = requests_of(cell, 1, 16)
    one = bardo_of("benchmarks.sampled_app:create_app")
    least = stages.least_of(cell, stages.asked_of(one, cell, requests)[0], requests.measured[0][0])
    always = {"server", "decode", "send", "reply", THREADS}
    assert set(least) == (always if cell.way.is_forwarded else always | {"plan", "encode"})
    assert set(least) <= set(STAGES)
    assert min(least.values()) > 0
