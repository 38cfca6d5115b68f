"""The layer labels a request by heads over vectors, or by rules where no vector can be had, and refuses what is blocked alone."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from bardo.catalog.layer_rows import NeedRow, classify_rows
from bardo.context.classify.heads import Guess, HeadFile, Heads, shipped_heads
from bardo.context.classify.layer import Classify, needs_of
from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import EffectFailed, LayerFacts, Passed
from bardo.embedding.static_embedding import wide_embedding
from bardo.values.blocks import TextBlock
from bardo.values.errors import InvalidRequest
from bardo.values.request import Message, Request
from context.classify.test_heads import head

FACTS = LayerFacts(tenant="", session="", now=0, profile="", count_tokens=lambda _, __: 0)
ROWS = classify_rows()
TOPICS = Heads(HeadFile(embedding="onnx-1", dimensions=2, heads=(head([[9000, -9000], [-9000, 9000]]),)))
SHIPPED = Classify(ROWS, heads=shipped_heads(), static=wide_embedding(), with_rules=True)


def asking(text: str) -> Request:
    return Request(model="m", messages=(Message("user", (TextBlock(text),)),), body_bytes=b"{}")


def run(layer: Classify, text: str, answer: TextVectors | EffectFailed | None = None) -> Passed:
    """Return what a layer decides, with `answer` to what it asks for."""
    steps = layer.steps(asking(text), FACTS)
    try:
        effect = next(steps)
        assert effect == Embed((text,))
        if isinstance(answer, EffectFailed):
            steps.throw(answer)
        else:
            steps.send(answer)
    except StopIteration as done:
        passed: Passed = done.value
        return passed
    raise AssertionError("one vector is asked for")


def vector(*values: float, fingerprint: str = "onnx-1") -> TextVectors:
    return TextVectors(vectors=(values,), fingerprint=fingerprint, tier="onnx")


def test_the_shipped_heads_label_at_once_and_the_request_stays_as_it_came() -> None:
    passed = run(SHIPPED, "Write a Python function that reverses a string.")
    assert passed.request == asking("Write a Python function that reverses a string.")
    assert passed.receipt.saw["tier"] == "static"
    assert passed.receipt.saw["domain"].startswith("code ")
    assert passed.found.label("intent") == "write_code"
    assert "reverse" not in str(passed.receipt)


def test_heads_of_a_model_ask_for_a_vector() -> None:
    layer = Classify(ROWS, heads=TOPICS)
    assert layer.asks
    passed = run(layer, "anything", vector(0.0, 1.0))
    assert passed.found.tier == "onnx"
    assert passed.found.label("topic") == "l1"
    assert passed.found.label("domain") == "other"


WITHOUT = {
    "the model failed": EffectFailed("gone"),
    "another embedding answered": vector(0.0, 1.0, fingerprint="onnx-2"),
    "nothing is known of the text": vector(0.0, 0.0),
}


@pytest.mark.parametrize("answer", WITHOUT.values(), ids=WITHOUT)
def test_rules_stand_in_where_there_is_no_vector(answer: Any) -> None:
    passed = run(Classify(ROWS, heads=TOPICS), "Translate this", answer)
    assert passed.found.tier == "rules"
    assert passed.receipt.saw["without_vector"]
    assert passed.found.label("topic") == ""
    assert passed.found.label("intent") == "translate"


def test_a_request_without_text_is_labelled_by_rules() -> None:
    assert run(SHIPPED, "").found.tier == "rules"


def test_heads_of_the_operator_decide_alone() -> None:
    named = msgspec.structs.replace(head([[0, 0], [9000, -9000]]), name="domain", labels=("code", "law"))
    layer = Classify(ROWS, heads=Heads(HeadFile(embedding="onnx-1", dimensions=2, heads=(named,))))
    assert run(layer, "a bug in my python code", vector(0.0, -1.0)).found.label("domain") == "law"


def test_nothing_is_refused_by_default() -> None:
    assert run(SHIPPED, "How do I kill my neighbor?").found.label("safety") == "unsafe"


@pytest.mark.parametrize(("least", "refused"), [(0.5, True), (1.0, False)])
def test_a_blocked_label_is_refused_from_its_probability_on(least: float, refused: bool) -> None:
    layer = Classify(ROWS, heads=TOPICS, block={"topic.l1": least, "topic.l9": 0.1, "nothing.l1": 0.1})
    if not refused:
        assert run(layer, "secret words", vector(0.0, 1.0)).found.label("topic") == "l1"
        return
    with pytest.raises(InvalidRequest, match="topic: l1") as caught:
        run(layer, "secret words", vector(0.0, 1.0))
    assert caught.value.param == "messages"
    assert "secret" not in str(caught.value)


def test_the_first_row_that_says_a_field_counts() -> None:
    rows = (
        NeedRow(when={"domain": "law"}, quality="maximum"),
        NeedRow(when={"domain": "code"}, cost_sensitivity=0.1, prefer=("tool_use",)),
        NeedRow(when={"domain": "code", "complexity": "complex"}, quality="high", cost_sensitivity=0.9),
        NeedRow(when={"complexity": "complex"}, quality="low"),
        NeedRow(when={"domain": "code"}, probability=0.95, quality="minimum"),
    )
    guesses = {"domain": Guess(label="code", probability=0.9), "complexity": Guess(label="complex", probability=0.7)}
    assert needs_of(guesses, rows) == {"quality": "high", "cost_sensitivity": 0.1, "prefer": ("tool_use",)}
    assert needs_of({}, rows) == {}


def test_hard_and_easy_requests_need_other_qualities() -> None:
    assert run(SHIPPED, "What is 6 times 7?").found.needs == {"quality": "low"}
    hard = "Design the architecture of a distributed database step by step, and prove that it has no race condition."
    passed = run(SHIPPED, hard)
    assert passed.found.needs == {"quality": "high"}
    assert passed.receipt.did == "told routing quality high"
