"""Subject `routing-quality`: how well the model that is chosen answers, at the price of the best single model and below.

No figure is of a row that was fitted to: five folds, or with `--held-out` the other half. ± is half of a 95 % bootstrap interval over rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.routing_data import EVAL, Outcomes, Split, halves, load, splits
from benchmarks.routing_methods import METHODS, Expected
from benchmarks.routing_online import online_table

PRICES = (0.90, 0.75, 0.63, 0.45, 0.20)
_WEIGHTS = (0.0, *(0.005 * 1.22**step for step in range(30)))
_PAIRS = ("routellm-gsm8k", "routellm-mmlu")
_SEED = 14


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure every method on every set whose file is there."""
    folder = bench.eval_folder or EVAL
    if not (folder / "router-nine-models").is_dir():
        bench.note(f"routing-quality is left out: {folder} has no router-nine-models; name the folder with --eval")
        return [], []
    draws = 100 if bench.pace.quick else 1000
    rows = _nine_models(bench, draws)
    for name in _PAIRS:
        rows.append(_pair(bench, name, draws))
    notes = (
        "Nine models: mean score (0 to 1) at a mean price in USD per million tokens. Pairs: APGR, the mean part of the gap between the "
        "weak and the strong model that is closed over all shares of strong calls; sending at random closes 0.50.",
        "Two points of a method's curve are mixed to meet a price exactly. Single models: the best mixture of at most two of them.",
        "No price or task is told to bardo or kNN; the task table is told the true task (MMLU: its subject).",
        "The shipped clusters were fitted to texts of these sets and of two sets of intents, never to an outcome.",
        "RouterArena is for evaluation only: nothing is fitted to it.",
    )
    columns = ("bardo", *(name for name in METHODS if name != "bardo"), "best single models")
    table = Table(
        subject="routing-quality", title="routing: quality at a price", columns=columns, rows=tuple(rows), notes=notes
    )
    found = table.figure(_measure(0.75), "bardo")
    target = Target(
        says="nine models, score at price 0.75",
        limit=0.70,
        unit="",
        found=None if found is None else found.median,
        better="higher",
    )
    return [table, online_table(bench, folder)], [target]


def _nine_models(bench: Bench, draws: int) -> list[Row]:
    data, parts = _data(bench, "nine-models")
    rows = _measured(parts)
    figures: dict[str, list[Figure]] = {}
    for name in METHODS:
        bench.tell(f"routing-quality: nine models, {name}")
        figures[name] = _at_prices(data, rows, _expected(name, data, parts), draws)
    constant: Expected = [data.means(parts[0].fit)] * len(rows)
    figures["best single models"] = _at_prices(data, rows, constant, draws)
    return [
        Row(measure=_measure(price), unit="score", figures={name: found[place] for name, found in figures.items()})
        for place, price in enumerate(PRICES)
    ]


def _measure(price: float) -> str:
    return f"nine models at price {price:.2f}"


def _data(bench: Bench, name: str) -> tuple[Outcomes, list[Split]]:
    quick = bench.pace.quick
    data = load(bench.eval_folder or EVAL, name, quick=quick)
    if bench.held_out_folder is not None:
        return halves(data, load(bench.held_out_folder, name, quick=quick))
    return data, splits(len(data.prompts), _SEED)


def _measured(parts: Sequence[Split]) -> list[int]:
    return [row for part in parts for row in part.measure]


def _expected(name: str, data: Outcomes, parts: Sequence[Split]) -> Expected:
    return [one for part in parts for one in METHODS[name](data, part)]


def _at_prices(data: Outcomes, rows: Sequence[int], expected: Expected, draws: int) -> list[Figure]:
    """Return the score at each price, with its interval over bootstrap samples of the rows."""
    chosen = [_choices(expected, data.prices, weight) for weight in _WEIGHTS]
    spent = [[data.prices[model] for model in one] for one in chosen]
    reached = [[data.scores[row][model] for row, model in zip(rows, one, strict=True)] for one in chosen]
    count, random = len(rows), Random(_SEED)
    whole = _curve(spent, reached, range(count))
    samples = [_curve(spent, reached, random.choices(range(count), k=count)) for _ in range(draws)]
    return [_figure(_score_at(whole, price), [_score_at(one, price) for one in samples]) for price in PRICES]


def _choices(expected: Expected, prices: Sequence[float], weight: float) -> list[int]:
    models = range(len(prices))
    return [max(models, key=lambda model: one[model] - weight * prices[model]) for one in expected]


def _curve(
    spent: Sequence[Sequence[float]], reached: Sequence[Sequence[float]], rows: Sequence[int]
) -> list[tuple[float, float]]:
    """Return mean price and mean score for each weight of the price."""
    count = len(rows)
    return [
        (sum(map(price.__getitem__, rows)) / count, sum(map(score.__getitem__, rows)) / count)
        for price, score in zip(spent, reached, strict=True)
    ]


def _score_at(curve: Sequence[tuple[float, float]], price: float) -> float:
    """Return the best score of a mixture of two points whose mean price is at most `price`."""
    below = [point for point in curve if point[0] <= price + 1e-9]
    above = [point for point in curve if point[0] > price + 1e-9]
    best = max((score for _, score in below), default=min(curve)[1])
    for low, low_score in below:
        for high, high_score in above:
            part = (price - low) / (high - low)
            best = max(best, low_score + part * (high_score - low_score))
    return best


def _pair(bench: Bench, name: str, draws: int) -> Row:
    data, parts = _data(bench, name)
    rows = _measured(parts)
    figures, random = {}, Random(_SEED)
    samples = [random.choices(range(len(rows)), k=len(rows)) for _ in range(draws // 5)]
    for method in METHODS:
        bench.tell(f"routing-quality: {name}, {method}")
        gains = [one[1] - one[0] for one in _expected(method, data, parts)]
        differences = [data.scores[row][1] - data.scores[row][0] for row in rows]
        order = sorted(range(len(rows)), key=lambda place: -gains[place])
        found = [apgr([differences[place] for place in order])]
        ranks = {place: rank for rank, place in enumerate(order)}
        for sample in samples:
            found.append(apgr([differences[place] for place in sorted(sample, key=ranks.__getitem__)]))
        figures[method] = _figure(found[0], found[1:])
    return Row(measure=f"{name.removeprefix('routellm-')}, weak and strong", unit="APGR", figures=figures)


def apgr(differences: Sequence[float]) -> float:
    """Return the mean part of the gap that is closed, for what each call gains with the strong model, in the order of calling it."""
    whole, closed, area = sum(differences), 0.0, 0.0
    for difference in differences:
        closed += difference
        area += closed
    return area / len(differences) / whole if whole else 0.0


def _figure(value: float, samples: Sequence[float]) -> Figure:
    ranked = sorted(samples)
    low, high = ranked[len(ranked) * 25 // 1000], ranked[min(len(ranked) - 1, len(ranked) * 975 // 1000)]
    return Figure(median=value, low=low, high=high, rounds=len(samples))
