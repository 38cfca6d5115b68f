"""Heads sum all labels at once as one integer: the sums are those of plain arithmetic, and a file that does not fit is refused."""

from __future__ import annotations

import math
import struct

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bardo.context.classify.heads import Head, HeadFile, Heads, decode_heads, shipped_heads
from bardo.embedding.static_embedding import wide_embedding

WEIGHT = st.integers(-32_768, 32_767)


def head(weights: list[list[int]], *, name: str = "topic", scale: float = 0.001, bias: float = 0.25) -> Head:
    """Return a head whose `weights` are a list of one for each label, by component."""
    labels = tuple(f"l{place}" for place in range(len(weights[0])))
    packed = b"".join(struct.pack(f"<{len(row)}h", *row) for row in weights)
    biases = tuple(bias * place for place in range(len(labels)))
    return Head(name=name, labels=labels, weights=packed, scale=scale, bias=biases, sharpness=1.0)


@given(st.lists(st.lists(WEIGHT, min_size=3, max_size=3), min_size=2, max_size=6), st.data())
def test_probabilities_are_those_of_plain_arithmetic(weights: list[list[int]], data: st.DataObject) -> None:
    count = len(weights)
    vector = data.draw(st.lists(st.integers(-(2**20), 2**20), min_size=count, max_size=count))
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    heads = Heads(HeadFile(embedding="e", dimensions=count, heads=(head(weights), head(weights, name="other"))))
    found = heads.probabilities_of(vector, length)
    if not any(vector):
        assert found == {}
        return
    for labels in found.values():
        scores = [
            0.001 * sum(value * row[place] for value, row in zip(vector, weights, strict=True)) / length + 0.25 * place
            for place in range(3)
        ]
        odds = [math.exp(score - max(scores)) for score in scores]
        assert list(labels.values()) == pytest.approx([value / sum(odds) for value in odds])
        assert sum(labels.values()) == pytest.approx(1)


@given(st.lists(st.lists(WEIGHT, min_size=3, max_size=3), min_size=2, max_size=6), st.data())
def test_sums_are_the_same_in_lanes_of_32_and_64_bits(weights: list[list[int]], data: st.DataObject) -> None:
    most = data.draw(st.sampled_from([2**4, 2**12, 2**15, 2**16]))
    vector = data.draw(st.lists(st.integers(-most, most), min_size=len(weights), max_size=len(weights)))
    heads = Heads(HeadFile(embedding="e", dimensions=len(weights), heads=(head(weights),)))
    length = math.sqrt(sum(value * value for value in vector))
    assert heads._sums(vector, length) == heads._sums(vector, math.inf)


def test_the_largest_vector_and_weights_do_not_overflow() -> None:
    size = 4_096
    heads = Heads(HeadFile(embedding="e", dimensions=size, heads=(head([[32_767, -32_768]] * size, bias=0.0),)))
    found = heads.probabilities_of([2**20] * size, 2**20 * 64.0)
    assert found["topic"]["l0"] > 0.99
    found = heads.probabilities_of([-(2**20)] * size, 2**20 * 64.0)
    assert found["topic"]["l1"] > 0.99


def test_the_shipped_heads_belong_to_the_shipped_table() -> None:
    heads, embedding = shipped_heads(), wide_embedding()
    assert (heads.embedding, heads.dimensions) == (embedding.fingerprint, embedding.dimensions)
    assert {head.name for head in heads.heads} == {"complexity", "domain", "intent", "safety"}


def test_whole_numbers_and_a_vector_of_length_1_give_the_same_labels() -> None:
    heads, embedding = shipped_heads(), wide_embedding()
    for text in ("Write a poem about the sea", "What is 6 times 7?", "你好", "x" * 500):
        whole, parts = heads.probabilities_of(*embedding.sums(text)), heads.probabilities(embedding.embed(text))
        for name, labels in whole.items():
            assert labels == pytest.approx(parts[name], abs=2e-3)


def test_a_text_of_which_nothing_is_known_has_no_label() -> None:
    assert shipped_heads().guesses(wide_embedding().embed("")) == {}


BROKEN = {
    "no JSON": b"GIF89a",
    "another form": b'{"heads": []}',
    "an unknown key": msgspec.json.encode({"embedding": "e", "dimensions": 1, "heads": [], "more": 1}),
    "too few weights": msgspec.json.encode(HeadFile(embedding="e", dimensions=3, heads=(head([[1, 2]]),))),
    "a label twice": msgspec.json.encode(
        HeadFile(embedding="e", dimensions=1, heads=(msgspec.structs.replace(head([[1, 2]]), labels=("a", "a")),))
    ),
    "two heads of one name": msgspec.json.encode(
        HeadFile(embedding="e", dimensions=1, heads=(head([[1, 2]]), head([[1, 2]])))
    ),
    "not UTF-8": b'{"embedding": "\xff"}',
}


@pytest.mark.parametrize("content", BROKEN.values(), ids=BROKEN)
def test_a_file_that_does_not_fit_is_refused(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode_heads(content)
