"""The layer `classify` through the gateway: requests are labelled, and the labels choose the model of a call that leaves it open."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

import bardo
from bardo.adapters.config.settings import parse_settings
from bardo.context.classify.heads import HeadFile
from context.classify.test_heads import head
from support.any_model import Simulator
from support.gateway import House, house
from support.onnx_model import write_model
from support.talk import CLIENTS, Answer, ask
from surfaces.gateway.cells import whole_and_streamed

MODEL = "deepseek/m"
ON = '[inference.pipeline]\nprofile = "minimal"\n'
EASY, HARD = (
    "What is 6 times 7?",
    "Design a distributed database step by step and prove that its algorithm has no race condition.",
)
each_client = pytest.mark.parametrize("client", CLIENTS)


def receipt_of(running: House, reply: Answer) -> dict[str, Any]:
    """Return the receipt of the layer for the call of a reply."""
    row = running.log.row(reply.headers["x-bardo-request-id"])
    assert row.pipeline is not None
    [receipt] = [one for one in row.pipeline["layers"] if one["layer"] == "classify"]
    return dict(receipt)


@each_client
@whole_and_streamed
def test_every_clients_request_is_labelled_and_sent_as_it_came(client: str, stream: bool) -> None:
    question = "Write a Python function that sorts a list of numbers."
    with house([Simulator("deepseek")], toml=ON) as running:
        reply = ask(running.address, client, MODEL, question=question, stream=stream)
        sent = running.last("deepseek")
        plain = ask(running.address, client, MODEL, question=question, stream=stream, bardo={"pipeline": "off"})
        assert reply.status == plain.status == 200
        assert running.last("deepseek") == sent
        seen = receipt_of(running, reply)["saw"]
        assert running.log.row(plain.headers["x-bardo-request-id"]).pipeline is None
    assert seen["tier"] == "static"
    assert seen["domain"].startswith("code ")
    assert seen["intent"].startswith("write_code ")
    assert seen["safety"].startswith("safe ")


def test_a_call_that_leaves_it_open_goes_where_its_labels_say() -> None:
    providers = [Simulator("deepseek", models=["deepseek-chat"]), Simulator("anthropic", models=["claude-opus-4-1"])]
    with house(providers, toml=ON) as running:
        asked = {"include": ["route"]}
        routes = {
            text: ask(running.address, "openai_chat", "bardo/auto", question=text, bardo=asked).json["bardo"]["route"]
            for text in (EASY, HARD)
        }
        own: Mapping[str, Any] = {**asked, "intent": {"quality": "maximum"}}
        said = ask(running.address, "openai_chat", "bardo/auto", question=EASY, bardo=own).json["bardo"]["route"]
        named = ask(running.address, "openai_chat", "deepseek/deepseek-chat", question=HARD)
    assert [routes[text]["intent"]["quality"] for text in (EASY, HARD)] == ["low", "high"]
    assert said["intent"]["quality"] == "maximum"
    assert named.headers["x-bardo-provider"] == "deepseek"


def test_what_would_be_asked_is_explained_with_the_labels() -> None:
    settings = parse_settings(f'{ON}[[providers]]\nid = "local"\npreset = "deepseek"\nmodels = ["m"]\n')
    request = {"model": "bardo/auto", "messages": [{"role": "user", "content": EASY}]}
    found = bardo.explain(request, config=settings)
    assert found.intent is not None
    assert found.intent.quality == "low"
    assert "told routing quality low" in str(found.pipeline)


def test_a_workload_that_says_a_quality_keeps_it() -> None:
    toml = f'{ON}[workloads.best]\nquality = "maximum"\n'
    with house([Simulator("deepseek", models=["deepseek-chat"])], toml=toml) as running:
        reply = ask(running.address, "openai_chat", "best", question=EASY, bardo={"include": ["route"]})
        assert receipt_of(running, reply)["did"] == "told routing quality low"
    assert reply.json["bardo"]["route"]["intent"]["quality"] == "maximum"


@each_client
@whole_and_streamed
def test_a_blocked_label_is_refused_in_the_clients_dialect(client: str, stream: bool) -> None:
    toml = f'{ON}[inference.pipeline.classify]\nblock = {{ "domain.mathematics" = 0.5 }}\n'
    with house([Simulator("deepseek")], toml=toml) as running:
        refused = ask(running.address, client, MODEL, question=EASY, stream=stream)
        passed = ask(running.address, client, MODEL, question="hello", stream=stream)
        assert "refused the call" in receipt_of(running, refused)["did"]
    assert (refused.status, passed.status) == (400, 200)
    assert "domain: mathematics" in refused.text
    assert "6 times 7" not in refused.text


def topics(folder: Path, embedding: str) -> Path:
    """Write a head that tells code from history by the vectors of the tests' model."""
    rows = [[9000, -9000], [-9000, 9000], [0, 0]]
    made = msgspec.structs.replace(head(rows), name="topic", labels=("code", "history"), bias=(0.0, 0.0))
    path = folder / "heads.json"
    path.write_bytes(msgspec.json.encode(HeadFile(embedding=embedding, dimensions=3, heads=(made,))))
    return path


def test_heads_of_a_model_in_onnx_label_requests(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("tokenizers", reason="the extra onnx is not installed")
    from bardo.adapters.embedding.onnx_embedding import OnnxEmbedding

    model = write_model(tmp_path / "model")
    heads = topics(tmp_path, OnnxEmbedding(model).fingerprint)
    toml = f'{ON}embedding = "{model}"\n[inference.pipeline.classify]\nheads = "{heads}"\n'
    with house([Simulator("deepseek")], toml=toml) as running:
        seen = [
            receipt_of(running, ask(running.address, "openai_chat", MODEL, question=text))["saw"]
            for text in ("write python code", "history king france")
        ]
    assert [one["tier"] for one in seen] == ["onnx", "onnx"]
    assert [one["topic"].split()[0] for one in seen] == ["code", "history"]


def test_a_model_that_fails_leaves_the_rules(tmp_path: Path) -> None:
    model = write_model(tmp_path / "model")
    (model / "model.onnx").write_bytes(b"GIF89a")
    toml = f'{ON}embedding = "{model}"\n[inference.pipeline.classify]\nheads = "{topics(tmp_path, "onnx-1")}"\n'
    with house([Simulator("deepseek")], toml=toml) as running:
        reply = ask(running.address, "openai_chat", MODEL, question="Translate this into French")
        assert reply.status == 200
        seen = receipt_of(running, reply)["saw"]
    assert seen["tier"] == "rules"
    assert seen["intent"].startswith("translate ")
