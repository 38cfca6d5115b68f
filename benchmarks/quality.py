"""Subject `quality`: how often the layers of the pipeline are right, as shares of labelled rows with their 95 % intervals.

Each task is a module `benchmarks.quality_TASK` with `run(bench)`. No figure is of a row that was fitted to: five folds, or with
`--held-out` the other half.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from benchmarks.bench import Bench
from benchmarks.figures import Table, Target
from benchmarks.routing_data import EVAL

TASKS = ("classify", "cache", "tools", "privacy", "injection")


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure every task that there is a module for. What it needs and does not find, it notes."""
    folder = bench.eval_folder or EVAL
    if not folder.is_dir():
        bench.note(f"quality is left out: there is no folder {folder}; name the folder of labelled rows with --eval")
        return [], []
    tables: list[Table] = []
    targets: list[Target] = []
    for task in TASKS:
        name = f"benchmarks.quality_{task}"
        if find_spec(name) is None:
            continue
        bench.tell(f"quality: {task}")
        found, aims = import_module(name).run(bench)
        tables += found
        targets += aims
    return tables, targets
