"""A simulator that answers any model, since most tests name models of their own."""

from __future__ import annotations

from typing import Any

from bardo import simulators

AnySimulator = simulators.Simulator
"""Any simulator, also one that takes the models of its preset alone."""


class Simulator(simulators.Simulator):
    """A provider's server; `models` are the only ones it takes, by default any."""

    def __init__(self, preset: str, **options: Any) -> None:
        super().__init__(preset, **{"models": (), **options})
