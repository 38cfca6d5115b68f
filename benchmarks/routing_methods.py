"""Ways to expect how well each model answers a prompt: bardo's table of outcomes, and what it is measured beside.

Each is fitted to some rows and gives an expected score of every model for every other row.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from operator import mul
from random import Random

from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.clusters import Clusters, Point, fit_clusters, point_of, shipped_clusters
from bardo.routing.learned.outcomes import Outcome, OutcomeTable
from benchmarks.routing_data import Outcomes, Split

Expected = list[tuple[float, ...]]
Method = Callable[[Outcomes, Split], Expected]
_NEIGHBOURS = 80
_PRIOR = 10.0
_LENGTH_GROUPS = 10
_SEED = 14


def own_clusters(data: Outcomes, split: Split) -> Expected:
    """bardo's table over clusters that were fitted to the same rows."""
    prompts = [data.prompts[row] for row in split.fit]
    return _table(data, split, fit_clusters(prompts, shipped_embedding(), Random(_SEED)))


def shipped(data: Outcomes, split: Split) -> Expected:
    """bardo's table over the clusters that ship with it."""
    return _table(data, split, shipped_clusters())


def _table(data: Outcomes, split: Split, clusters: Clusters) -> Expected:
    embedding, table = shipped_embedding(), OutcomeTable(clusters)
    for row in split.fit:
        shares = clusters.shares(data.prompts[row], embedding)
        for model, score in zip(data.models, data.scores[row], strict=True):
            table.add(Outcome(shares=shares, model=model, success=score))
    found = []
    for row in split.measure:
        estimates = table.estimates(data.models, clusters.shares(data.prompts[row], embedding))
        found.append(tuple(estimates[model].success for model in data.models))
    return found


def neighbours(data: Outcomes, split: Split) -> Expected:
    """The mean of the nearest fitted prompts by the static embedding."""
    embedding = shipped_embedding()
    return _neighbours(data, split, lambda prompt: embedding.embed(prompt))


def neighbours_with_form(data: Outcomes, split: Split) -> Expected:
    """The mean of the nearest fitted prompts by the static embedding and the form of the prompt."""
    clusters, embedding = shipped_clusters(), shipped_embedding()
    return _neighbours(data, split, lambda prompt: _unit(point_of(prompt, embedding, clusters.means, clusters.scales)))


def _neighbours(data: Outcomes, split: Split, embed: Callable[[str], Point]) -> Expected:
    points = [(embed(data.prompts[row]), row) for row in split.fit]
    found = []
    for row in split.measure:
        point = embed(data.prompts[row])
        near = heapq.nlargest(_NEIGHBOURS, ((sum(map(mul, point, other)), place) for other, place in points))
        found.append(data.means([place for _, place in near]))
    return found


def _unit(point: Point) -> Point:
    length = sum(map(mul, point, point)) ** 0.5 or 1.0
    return tuple(value / length for value in point)


def task_table(data: Outcomes, split: Split) -> Expected:
    """The mean of each model over the fitted rows of the same task, whose true name is told."""
    return _by_group(data, split, data.tasks)


def length_rule(data: Outcomes, split: Split) -> Expected:
    """The mean of each model over the tenth of the fitted rows whose prompts are about as long."""
    lengths = sorted(len(data.prompts[row]) for row in split.fit)
    limits = [lengths[len(lengths) * group // _LENGTH_GROUPS] for group in range(1, _LENGTH_GROUPS)]
    return _by_group(data, split, [sum(len(prompt) >= limit for limit in limits) for prompt in data.prompts])


def _by_group(data: Outcomes, split: Split, groups: Sequence[object]) -> Expected:
    whole = data.means(split.fit)
    rows: dict[object, list[int]] = {}
    for row in split.fit:
        rows.setdefault(groups[row], []).append(row)
    means = {group: _shrunk(data.means(members), whole, len(members)) for group, members in rows.items()}
    return [means.get(groups[row], whole) for row in split.measure]


def _shrunk(means: Sequence[float], whole: Sequence[float], count: int) -> tuple[float, ...]:
    pairs = zip(means, whole, strict=True)
    return tuple((mean * count + wide * _PRIOR) / (count + _PRIOR) for mean, wide in pairs)


def oracle(data: Outcomes, split: Split) -> Expected:
    """What each model really scored: no router can be better."""
    return [data.scores[row] for row in split.measure]


METHODS: Mapping[str, Method] = {
    "bardo": own_clusters,
    "bardo, shipped clusters": shipped,
    "kNN, text": neighbours,
    "kNN, text and form": neighbours_with_form,
    "task table (told the task)": task_table,
    "length rule": length_rule,
    "oracle": oracle,
}
