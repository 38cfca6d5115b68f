"""The index of questions: the most similar first, within bounds, the same with numpy and without."""

from __future__ import annotations

import math
from importlib import import_module
from random import Random
from typing import Any

import pytest

from bardo.context.cache.similar_lookup import packed
from bardo.services.pipeline.reply_cache.similarity import VectorIndex, VectorRow

Vector = tuple[float, ...]


def numpies() -> list[Any]:
    try:
        return [None, import_module("numpy")]
    except ImportError:
        return [None]


@pytest.fixture(params=numpies(), ids=lambda numpy: "plain Python" if numpy is None else "numpy")
def numpy(request: pytest.FixtureRequest) -> Any:
    return request.param


def unit(chance: Random, size: int = 8) -> Vector:
    values = [chance.gauss(0, 1) for _ in range(size)]
    length = math.sqrt(sum(value * value for value in values))
    return tuple(value / length for value in values)


def row(number: int, expires: float = 100.0) -> VectorRow:
    return VectorRow(number, b"%d" % number, f"q{number}", "a", expires)


def filled(numpy: Any, count: int, most: int = 1_000) -> tuple[VectorIndex, list[Vector]]:
    chance, index = Random(7), VectorIndex(most, numpy=numpy)
    vectors = [unit(chance) for _ in range(count)]
    for number, vector in enumerate(vectors):
        index.add(b"scope", packed(vector), row(number))
    return index, vectors


def test_the_most_similar_come_first_and_none_below_the_floor(numpy: Any) -> None:
    index, vectors = filled(numpy, 300)
    asked = unit(Random(8))
    scores = sorted(((sum(map(float.__mul__, asked, one)), n) for n, one in enumerate(vectors)), reverse=True)
    found = index.search(b"scope", asked, least=0.3, most=5, now=0)
    assert [hit.number for _, hit in found] == [n for score, n in scores if score >= 0.3][:5]
    assert [cosine for cosine, _ in found] == pytest.approx(
        [score for score, _ in scores[:5] if score >= 0.3], abs=1e-5
    )
    assert index.search(b"another scope", asked, least=0, most=5, now=0) == []
    assert index.search(b"scope", asked[:4], least=0, most=5, now=0) == []


def test_what_expired_or_was_removed_is_not_found(numpy: Any) -> None:
    index, vectors = filled(numpy, 50)
    index.add(b"scope", packed(vectors[3]), row(3, expires=1.0))
    index.remove(b"scope", b"7")
    assert index.search(b"scope", vectors[3], least=0.99, most=1, now=2.0) == []
    assert index.search(b"scope", vectors[7], least=0.99, most=1, now=2.0) == []
    assert index.search(b"scope", vectors[9], least=0.99, most=1, now=2.0)[0][1].number == 9
    assert index.rows == index.size(b"scope") == 48


def test_an_entry_that_is_put_again_is_there_once(numpy: Any) -> None:
    index, vectors = filled(numpy, 5)
    index.add(b"scope", packed(vectors[0]), VectorRow(9, b"4", "new", "a", 100.0))
    found = index.search(b"scope", vectors[0], least=0.99, most=9, now=0)
    assert sorted(hit.question for _, hit in found) == ["new", "q0"]
    assert index.rows == 5


def test_the_oldest_go_where_there_are_too_many(numpy: Any) -> None:
    index, vectors = filled(numpy, 60, most=40)
    assert index.size(b"scope") <= 40
    assert index.rows == index.size(b"scope")
    assert index.search(b"scope", vectors[59], least=0.99, most=1, now=0)[0][1].number == 59
    assert index.search(b"scope", vectors[0], least=0.99, most=1, now=0) == []


def test_the_scope_that_was_not_used_for_the_longest_goes_first(numpy: Any) -> None:
    index, chance = VectorIndex(30, numpy=numpy), Random(3)
    for number in range(40):
        index.add(b"%d" % (number // 10), packed(unit(chance)), row(number))
        index.search(b"0", unit(chance), least=0, most=1, now=0)
    assert [index.size(b"%d" % scope) for scope in range(4)] == [10, 0, 10, 10]
    assert index.rows == 30


def test_a_vector_of_another_length_is_left_out(numpy: Any) -> None:
    index, vectors = filled(numpy, 3)
    index.add(b"scope", packed(vectors[0][:4]), row(9))
    assert index.size(b"scope") == 3
