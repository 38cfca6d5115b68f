"""Learned routing as the gateway does it: each choice is made before its outcome is seen, and only the chosen model's outcome is learned.

Nothing is fitted beforehand; the clusters are those that ship. It is measured beside always asking each single model.
"""

from __future__ import annotations

from pathlib import Path
from random import Random

from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.clusters import shipped_clusters
from bardo.routing.learned.outcomes import Outcome, OutcomeTable
from bardo.routing.learned.router import Budget, choose, seed_of
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table
from benchmarks.routing_data import Outcomes, load

_SETS = ("nine-models", "routellm-gsm8k", "routellm-mmlu", "routerarena")
# Success that the dearest model's price is worth.
_PRICE_WEIGHT = 0.05


def online_table(bench: Bench, folder: Path) -> Table:
    """Return what was reached on each set, as worth: score less 0.05 times the price in units of the dearest model's."""
    rows = []
    for name in _SETS:
        data = load(folder, name, quick=bench.pace.quick)
        orders = 1 if bench.pace.quick or len(data.prompts) > 3_000 else 5
        bench.tell(f"routing-quality: {name}, learning as it goes")
        learned = [stream(data, seed) for seed in range(orders)]
        rows.append(_row(name, data, learned))
    notes = (
        "Worth is the mean score less 0.05 times the price in units of the dearest model's. ± over random orders of the rows.",
        "The best single model is known only afterwards. Exploring may lose 0.02 of worth a choice.",
    )
    columns = ("learned", "best single", "mean of the models", "oracle")
    return Table(
        subject="routing-online", title="routing: learning as it goes", columns=columns, rows=tuple(rows), notes=notes
    )


def stream(data: Outcomes, seed: int) -> float:
    """Return the mean worth of learned routing over the rows in one random order."""
    clusters, embedding = shipped_clusters(), shipped_embedding()
    table, budget = OutcomeTable(clusters), Budget()
    rows = list(range(len(data.prompts)))
    Random(seed).shuffle(rows)
    worth = 0.0
    for row in rows:
        shares = clusters.shares(data.prompts[row], embedding)
        estimates = table.estimates(data.models, shares)
        choice = choose(estimates, seed=seed_of(f"{seed} {row}"), price_weight=_PRICE_WEIGHT, budget=budget)
        budget = budget.after(choice.regret)
        model = data.models.index(choice.model)
        table.add(Outcome(shares=shares, model=choice.model, success=data.scores[row][model], cost=data.prices[model]))
        worth += worth_of(data, row, model)
    return worth / len(rows)


def worth_of(data: Outcomes, row: int, model: int) -> float:
    """Return the worth of asking one model on one row."""
    return data.scores[row][model] - _PRICE_WEIGHT * data.prices[model] / max(data.prices)


def _row(name: str, data: Outcomes, learned: list[float]) -> Row:
    models, rows = range(len(data.models)), range(len(data.prompts))
    single = [sum(worth_of(data, row, model) for row in rows) / len(rows) for model in models]
    best = sum(max(worth_of(data, row, model) for model in models) for row in rows) / len(rows)
    fixed = {"best single": max(single), "mean of the models": sum(single) / len(single), "oracle": best}
    figures = {key: Figure(median=value, low=value, high=value, rounds=1) for key, value in fixed.items()}
    found = Figure.of(learned)
    assert found is not None
    return Row(measure=name, unit="worth", figures={"learned": found, **figures})
