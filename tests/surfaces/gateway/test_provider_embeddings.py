"""`[inference.embeddings]` through the gateway: a provider makes the vectors of layers, and who fails at that is not missed."""

from __future__ import annotations

from bardo.adapters.stores.log import LogRow
from support.any_model import Simulator
from support.gateway import House, house
from support.talk import ask, request

CACHE = '[inference.pipeline]\nprofile = "own"\n[inference.pipeline.profiles.own]\nlayers = ["cache"]\n'
VENICE = '[inference.embeddings]\nprovider = "venice"\nvenice_model = "text-embedding-bge-m3"\nseconds = 60\n'
MODEL = "deepseek/m"
QUESTION = "How long does a swallow take from Africa to Europe?"


def asked_for_vectors(running: House) -> list[object]:
    return [one.body for one in running.arrived("venice") if one.path.endswith("/embeddings")]


def of_vectors(row: LogRow) -> bool:
    return row.operation == "embed"


def test_venice_makes_the_vectors_of_questions_each_once_and_the_log_has_the_call() -> None:
    with house([Simulator("deepseek"), Simulator("venice")], toml=CACHE + VENICE) as running:
        replies = [ask(running.address, "openai_chat", MODEL, question=QUESTION, max_tokens=n) for n in (90, 91)]
        [row] = running.log.wait(of_vectors)
        asked = asked_for_vectors(running)
    assert [reply.status for reply in replies] == [200, 200]
    assert asked == [{"model": "text-embedding-bge-m3", "input": [QUESTION]}]
    assert (row.outcome, row.provider, row.model, row.tenant or "") == ("ok", "venice", "text-embedding-bge-m3", "")
    assert row.input_tokens


def test_where_venice_fails_this_machine_makes_the_vectors_and_it_is_not_asked_again_at_once() -> None:
    broken = VENICE.replace("bge-m3", "bge-m3+fault:status=401")
    with house([Simulator("deepseek"), Simulator("venice")], toml=CACHE + broken) as running:
        replies = [ask(running.address, "openai_chat", MODEL, question=f"{QUESTION} {n}") for n in range(3)]
        rows = running.log.wait(of_vectors)
        seen = [running.log.row(reply.headers["x-bardo-request-id"]) for reply in replies]
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert [(row.outcome, row.provider) for row in rows] == [("error", "venice")]
    assert all("similar" in row.pipeline["layers"][0]["saw"] for row in seen if row.pipeline)


def test_texts_are_masked_before_they_go_where_vectors_are_made() -> None:
    tools = [
        {"type": "function", "function": {"name": f"tool_{n}", "description": f"Number {n}", "parameters": {}}}
        for n in range(6)
    ]
    layers = CACHE.replace('["cache"]', '["tools", "privacy"]') + "[inference.pipeline.tools]\nmost = 2\n"
    with house([Simulator("deepseek"), Simulator("venice")], toml=layers + VENICE) as running:
        question = "May I write to ann.lee@example.org about the swallow?"
        body = {"model": MODEL, "messages": [{"role": "user", "content": question}], "tools": tools}
        reply = request(running.address, "POST", "/v1/chat/completions", body)
        row = running.log.row(reply.headers["x-bardo-request-id"])
        asked = str(asked_for_vectors(running))
    assert reply.status == 200
    assert "about the swallow?" in asked
    assert "ann.lee@example.org" not in asked
    assert row.pipeline is not None
    assert [one["saw"]["by"] for one in row.pipeline["layers"] if one["layer"] == "tools"] == ["provider"]
