"""The record of a probe: what was sent, what came back, and what was concluded. A probe that stopped goes on from it.

It holds bodies, never headers: no key is in it.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from bardo._version import __version__
from bardo.operators.probe.cells import Cell
from bardo.operators.probe.samples import Trial
from bardo.operators.probe.verdicts import Decision
from bardo.values.errors import ConfigError, InvalidRequest

VERSION = 2


class AuditedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A cell with the request it stands for: the path below the provider's address, and the body."""

    cell: Cell
    path: str
    body: dict[str, Any]


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything a probe sends. `address` is host and port alone; `seed` orders the requests."""

    provider: str
    address: str
    dialect: str
    model: str
    forms: tuple[str, ...]
    repeats: int
    seed: int
    requests: tuple[AuditedRequest, ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """The cells alone."""
        return tuple(sent.cell for sent in self.requests)

    @property
    def calls(self) -> int:
        """How many requests there are in all."""
        return len(self.requests) * self.repeats


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """A plan, what came of it so far, and what that shows. `stopped` says why it is not finished, empty where it is."""

    version: int = VERSION
    bardo: str = __version__
    plan: Plan
    trials: tuple[Trial, ...] = ()
    decision: Decision | None = None
    row: dict[str, Any] | None = None
    stopped: str = ""

    @property
    def settled(self) -> set[tuple[str, int]]:
        """The cells and rounds that need not be sent again: answered, or refused."""
        return {(trial.cell, trial.round) for trial in self.trials if trial.outcome != "failed"}

    @property
    def cost_usd(self) -> float | None:
        """The cost as the provider reports it, or None if it never did."""
        costs = [trial.cost_usd for trial in self.trials if trial.cost_usd is not None]
        return sum(costs) if costs else None


def write_audit(audit: Audit, path: Path) -> None:
    """Write the audit's file anew. Raises ConfigError where it cannot be written."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(audit, enc_hook=str), indent=2) + b"\n")


def write_whole(path: Path, content: bytes) -> None:
    """Write a file anew, whole or not at all: whoever is interrupted keeps what was there. Raises ConfigError where that fails."""
    try:
        handle, name = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(name).unlink()
            raise
    except OSError as problem:
        message = f"cannot write {path}: {problem.strerror or problem}"
        raise ConfigError(message, hint="name another file with --out") from problem


def read_audit(path: Path) -> Audit:
    """Return the audit of a file. Raises InvalidRequest where it is none."""
    try:
        audit = msgspec.json.decode(path.read_bytes(), type=Audit)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise InvalidRequest(
            f"{path} is no audit of a probe: {problem}", hint="begin anew, without --resume"
        ) from problem
    if audit.version != VERSION:
        raise InvalidRequest(f"{path} was written by another version of bardo", hint="begin anew, without --resume")
    return audit


def resumed(audit: Audit, plan: Plan) -> Audit:
    """Return the audit to go on with. Raises InvalidRequest where it asked other things: its counts would not compare.

    The order of a plan, and how often it repeats, may differ.
    """
    same = (audit.plan.provider, audit.plan.dialect, audit.plan.model) == (plan.provider, plan.dialect, plan.model)
    if not same or _bodies(audit.plan) != _bodies(plan):
        raise InvalidRequest("that audit is of other requests", hint="begin anew, without --resume")
    return Audit(plan=plan, trials=tuple(trial for trial in audit.trials if trial.outcome != "failed"))


def _bodies(plan: Plan) -> dict[str, dict[str, Any]]:
    return {sent.cell.id: sent.body for sent in plan.requests}
