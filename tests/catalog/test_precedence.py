"""Which row decides about an id that several globs match: no row is shadowed by a longer glob of another row."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from bardo.catalog.matching import lies_within
from bardo.catalog.models import ModelRow, builtin_models
from support.globs import common_id
from support.offenders import each_case

ROWS = builtin_models().rows

UNREAL = {
    frozenset(("qwen3*-instruct*", "qwen3*-thinking*")): "no model is tuned for both",
    frozenset(("qwen3-coder*", "qwen3*-thinking*")): "the coders do not think",
    **{
        frozenset(
            (f"qwen3-{kind}*", "qwen3*-thinking*")
        ): "models that speak, listen, rank or make vectors do not think"
        for kind in ("tts", "asr", "rerank", "embedding", "livetranslate")
    },
    frozenset(("qwen3-[0-9]*b*", "qwen3-8-max*")): "weights are named by their size, the largest hosted model is not",
    frozenset(("grok-4-20-reasoning*", "grok-4-20-*-non-reasoning*")): "no model is both",
    frozenset(("grok-4-20-0309-reasoning*", "grok-4-20-*-non-reasoning*")): "no model is both",
    frozenset(("grok-4-20-*-reasoning*", "grok-4-20-multi-agent*")): "the model of several agents comes in one kind",
    frozenset(
        ("grok-4-20-*-non-reasoning*", "grok-4-20-multi-agent*")
    ): "the model of several agents comes in one kind",
}
"""Pairs of globs of which no id is both, each with why."""


def plain(glob: str) -> str:
    return glob.lower().replace(".", "-")


def crossing(rows: tuple[ModelRow, ...]) -> Iterator[tuple[str, str, str, ModelRow, ModelRow]]:
    """Yield an id that globs of two rows of one provider match, where neither glob is only a narrower one."""
    for one, other in combinations(rows, 2):
        if one.provider != other.provider or one.goes_first != other.goes_first:
            continue
        for mine in map(plain, one.match):
            for theirs in map(plain, other.match):
                if lies_within(mine, theirs) or lies_within(theirs, mine):
                    continue
                shared = common_id(mine, theirs)
                if shared is not None:
                    yield shared, mine, theirs, one, other


def decided(shared: str, mine: str, theirs: str, rows: tuple[ModelRow, ...]) -> bool:
    """Whether a row says of such ids in particular what holds: by a glob that both globs contain."""
    globs = (plain(glob) for row in rows for glob in row.match)
    return any(
        lies_within(glob, mine) and lies_within(glob, theirs) for glob in globs if common_id(glob, shared) is not None
    )


@each_case("provider", sorted({row.provider for row in ROWS}))
def test_no_row_is_shadowed_by_a_longer_glob_of_another_row(provider: str) -> None:
    rows = tuple(row for row in ROWS if row.provider == provider)
    left = [
        f"{mine} and {theirs} both match {shared!r}: say in one row what holds there"
        for shared, mine, theirs, one, other in crossing(rows)
        if one.assumed is other.assumed is False
        and frozenset((mine, theirs)) not in UNREAL
        and not decided(shared, mine, theirs, rows)
    ]
    assert left == []


@each_case("provider", sorted({row.provider for row in ROWS}))
def test_no_assumption_decides_about_a_model_that_a_row_is_about(provider: str) -> None:
    rows = tuple(row for row in ROWS if row.provider == provider)
    left = [
        f"{shared!r}: an assumption goes before a row ({mine}, {theirs})"
        for shared, mine, theirs, one, other in crossing(rows)
        if one.assumed is not other.assumed and best(provider, shared).assumed
    ]
    assert left == []


def best(provider: str, name: str) -> ModelRow:
    found = builtin_models()._longest(name, name, lambda one: one.provider == provider)
    assert found is not None
    return found


@each_case(
    "row, glob",
    [(row, glob) for row in ROWS for glob in row.match],
    ids=[f"{row.provider}-{glob}" for row in ROWS for glob in row.match],
)
def test_a_glob_decides_about_the_shortest_id_that_it_matches(row: ModelRow, glob: str) -> None:
    shared = common_id(plain(glob), "*")
    assert shared is not None
    found = best(row.provider, shared)
    narrower = any(lies_within(plain(own), plain(glob)) for own in found.match)
    assert found is row or narrower, (
        f"another row decides about {shared!r}: make this glob narrower, or take it out of models.toml"
    )
