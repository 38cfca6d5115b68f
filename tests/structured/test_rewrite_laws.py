"""Laws of every rewrite, over drawn schemas and answers."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from bardo.structured.rewrite import Inexpressible, RewrittenSchema, rewrite
from bardo.structured.rewrite.rules import check_limits
from bardo.structured.subsets import Subset, subset, subsets
from bardo.structured.validation import Checker
from bardo.values.errors import InvalidRequest
from structured import shapes

IDS = sorted(subsets())
COMPILED = [name for name in IDS if not subset(name).verbatim]
DRAWN = settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
SEEDS = st.integers(0, 2**32)
ANSWERS = 4


def readable(schema: Any) -> Any:
    """Return a schema with `nullable`, which JSON Schema does not know, said in its words."""
    if isinstance(schema, list):
        return [readable(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    said = {word: readable(one) for word, one in schema.items()}
    return {"anyOf": [{**said, "nullable": 0}, {"type": "null"}]} if said.get("nullable") is True else said


def rewritten(schema: dict[str, Any], name: str) -> tuple[Checker, RewrittenSchema, Checker] | None:
    """Return the caller's judge, the rewritten schema and its judge; None where there is none."""
    try:
        judge, found = Checker(schema), rewrite(schema, subset(name))
    except (InvalidRequest, Inexpressible):
        return None
    return judge, found, Checker(readable(found.schema))


@pytest.mark.parametrize("name", IDS)
@given(seed=SEEDS)
@example(seed=4289)
@DRAWN
def test_an_answer_under_the_rewritten_schema_is_the_callers_or_a_widening_is_told(name: str, seed: int) -> None:
    random = Random(seed)
    made = rewritten(shapes.schema(random), name)
    if made is None:
        return
    judge, found, sent = made
    told = any(one.effect == "widening" for one in found.rewrites)
    for _ in range(ANSWERS):
        answer = shapes.answer(random, readable(found.schema))
        if not told and sent.accepts(answer):
            before = repr(answer)
            assert judge.accepts(found.restore(answer)), (answer, found.restore(answer), judge.schema, found)
            assert repr(answer) == before


@pytest.mark.parametrize("name", COMPILED)
@given(seed=SEEDS)
@DRAWN
def test_lossless_rewrites_that_leave_answers_alone_admit_the_same_values(name: str, seed: int) -> None:
    random = Random(seed)
    made = rewritten(shapes.schema(random), name)
    if made is None:
        return
    judge, found, sent = made
    if found.changes_answers or any(one.effect != "lossless" for one in found.rewrites):
        return
    for value in (shapes.value(random), shapes.answer(random, judge.schema), shapes.answer(random, found.schema)):
        assert judge.accepts(value) == sent.accepts(value), (value, judge.schema, found)


@pytest.mark.parametrize("name", IDS)
@given(seed=SEEDS)
@DRAWN
def test_rewriting_ends_within_the_subset_with_an_entry_or_with_a_reason(name: str, seed: int) -> None:
    schema, row = shapes.schema(Random(seed)), subset(name)
    found = attempt(schema, row)
    if isinstance(found, Exception):
        assert str(found)
        return
    check_limits(found.schema, row.limits)
    unused = {word: value for word, value in schema.items() if word != "$defs"}
    assert found.rewrites or found.schema in (schema, unused), found


def attempt(schema: dict[str, Any], row: Subset) -> RewrittenSchema | Exception:
    """Return the rewritten schema, or the reason why there is none; any other exception is a mistake."""
    try:
        return rewrite(schema, row)
    except (InvalidRequest, Inexpressible) as refusal:
        return refusal
