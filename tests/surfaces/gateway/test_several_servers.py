"""A provider with several addresses: conversations stay at their servers, one that is gone is passed over, the log says who answered."""

from __future__ import annotations

import re

from bardo.planning.route import address_names
from bardo.simulators import Fault
from support.any_model import Simulator
from support.servers import MODEL, servers


def pods(count: int) -> list[Simulator]:
    return [Simulator("vllm") for _ in range(count)]


def test_the_turns_of_a_conversation_go_to_one_server_and_conversations_to_all() -> None:
    with servers(pods(3)) as running:
        for name in range(24):
            said = [f"conversation {name}"]
            before = running.asked()
            for turn in range(3):
                running.ask(*said)
                said += ["I see.", f"turn {turn}"]
            grown = [now - then for now, then in zip(running.asked(), before, strict=True)]
            assert sorted(grown) == [0, 0, 3]
        assert all(running.asked())


def test_a_server_that_is_gone_costs_one_attempt_and_is_then_passed_over() -> None:
    with servers(pods(2), lost=1, toml="[health]\nleast_calls = 2\n") as running:
        degraded = 0
        for name in range(30):
            headers, _ = running.ask(f"conversation {name}")
            degraded += "x-bardo-degraded" in headers
        assert 1 <= degraded <= 4
        assert sum(running.asked()) == 30
        report = running.health()
        assert [one["connection"]["state"] for one in report["servers"]].count("down") == 1
        assert report["connection"]["state"] != "down"
        assert all(one["in_flight"] == 0 for one in report["servers"])


def test_the_log_names_the_servers_that_were_asked() -> None:
    failing, well = Simulator("vllm", fault=Fault("status", status=500)), Simulator("vllm")
    with servers([failing, well]) as running:
        bad, good = running.names
        for name in range(12):
            headers, _ = running.ask(f"conversation {name}")
            if "x-bardo-degraded" in headers:
                break
        row = running.house.log.row(headers["x-bardo-request-id"])
        assert [one.address for one in row.attempt_records] == [bad, good]
        assert row.attempt_records[-1].address == good
        assert row.attempt_records[-1].cause == "failover"
        assert row.degraded[0]["asked"] == f"pods at {bad}"
        assert row.degraded[0]["sent"] == f"pods at {good}"


def test_vectors_go_to_all_servers() -> None:
    import json
    import urllib.request

    with servers(pods(3)) as running:
        for place in range(9):
            body = json.dumps({"model": MODEL, "input": f"text {place}"}).encode()
            asked = urllib.request.Request(
                f"{running.house.address}/v1/embeddings", body, {"content-type": "application/json"}
            )
            with urllib.request.urlopen(asked) as reply:
                assert reply.status == 200
        assert all(running.asked())


def test_names_of_addresses_hold_no_secret() -> None:
    urls = ["http://user:word@a:8000/v1?key=hidden", "http://b:8000/one/v1", "http://b:8000/two/v1"]
    assert address_names(urls) == ["a:8000", "b:8000/one/v1", "b:8000/two/v1"]
    assert not re.search("user|word|hidden", "".join(address_names(urls)))
