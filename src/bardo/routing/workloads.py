"""Workloads: names for kinds of work that clients ask for as they ask for a model, `bardo/cheap`.

A workload is a row: what the work needs (an Intent), how it is answered (a profile), and the models that are tried in order. A row whose
`model` is another workload has all that this one has, and its own keys go before it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Annotated

import msgspec
import tomli

from bardo.routing.fallback_route import RouteStep
from bardo.routing.pressure import SubsystemPressure
from bardo.values.errors import ConfigError, UnknownModel
from bardo.values.profile import InferenceProfile
from bardo.values.request import Intent, Quality

PREFIX = "bardo/"
"""The prefix of a workload's name in the place of a model."""
Features = Annotated[tuple[Annotated[str, msgspec.Meta(min_length=1, max_length=64)], ...], msgspec.Meta(max_length=32)]
_INTENT = tuple(name for name in Intent.__struct_fields__ if name != "subsystem")


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of work.

    `intent` is what it needs, `fallbacks` the models that are tried in order after the intent's own. `profile` is how it is answered;
    where that is `locked`, the profile goes before what the caller asks for. `private`: only providers that keep nothing of a call are
    asked. `escalate` are models that are asked in order where an answer is not good enough. `verify` is a second model that is asked
    whether it agrees with the answer. `pipeline` names the profile whose layers
    work on its calls, empty where nothing is said. `route` are the
    steps by which models are looked for where none is named. `tier` names the tier that decides whether a model is asked at all.
    `pressure` is how an agent's falling vitality changes it, or None if it is no part of an agent. `about` is a sentence for people.
    """

    name: str
    intent: Intent = Intent()
    fallbacks: tuple[str, ...] = ()
    profile: InferenceProfile | None = None
    locked: bool = False
    private: bool = False
    escalate: tuple[str, ...] = ()
    verify: str = ""
    pipeline: str = ""
    route: tuple[RouteStep, ...] = ()
    tier: str = ""
    pressure: SubsystemPressure | None = None
    about: str = ""

    @property
    def model_name(self) -> str:
        """The name that a client writes in the place of a model's."""
        return PREFIX + self.name


class WorkloadRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The keys of `[workloads.NAME]`, with the meanings that they have in Intent and Workload. None: the row does not say."""

    model: str | None = None
    fallbacks: tuple[str, ...] | None = None
    require: Features | None = None
    prefer: Features | None = None
    quality: Quality | None = None
    max_latency_ms: Annotated[int, msgspec.Meta(ge=1)] | None = None
    cost_sensitivity: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    diem_available: bool | None = None
    profile: InferenceProfile | None = None
    locked: bool | None = None
    private: bool | None = None
    escalate: tuple[str, ...] | None = None
    verify: str | None = None
    pipeline: str | None = None
    route: tuple[RouteStep, ...] | None = None
    tier: str | None = None
    about: str | None = None


class SubsystemRow(WorkloadRow, frozen=True, kw_only=True):
    """The row of an agent's subsystem. What its `pressure` is cannot be said in a configuration."""

    pressure: SubsystemPressure | None = None


class Workloads:
    """Workloads by their names. `own` names those that clients may also ask for without the prefix."""

    def __init__(self, workloads: Iterable[Workload] = (), own: Iterable[str] = ()) -> None:
        self._by_name = {workload.name: workload for workload in workloads}
        self._own = frozenset(own)
        self.of_agent = any(workload.pressure is not None for workload in self)
        """Whether some are subsystems of an agent."""

    def __iter__(self) -> Iterator[Workload]:
        return iter(self._by_name.values())

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names, without the prefix."""
        return tuple(self._by_name)

    def find(self, model: str) -> Workload | None:
        """Return the workload that a client names in the place of a model; None for any other name."""
        if model.startswith(PREFIX):
            return self._by_name.get(model.removeprefix(PREFIX))
        return self._by_name.get(model) if model in self._own else None

    def of_call(self, intent: Intent | None, model: str) -> Workload | None:
        """Return the workload of a call: its subsystem, or else the one that its model's name stands for, or None if it is none."""
        return self.get(intent.subsystem) if intent is not None and intent.subsystem else self.find(model)

    def get(self, name: str) -> Workload | None:
        """Return the workload of a name, with or without the prefix, or None if there is none."""
        return self._by_name.get(name.removeprefix(PREFIX))

    def with_rows(self, rows: Mapping[str, WorkloadRow]) -> Workloads:
        """Return these and those of an operator's rows, which go before. Raises WorkloadMistake for a row that leads to itself."""
        own = (*self._own, *rows)
        return Workloads((*self, *(self._build_workload(name, rows) for name in rows)), own)

    def _build_workload(self, name: str, rows: Mapping[str, WorkloadRow], path: tuple[str, ...] = ()) -> Workload:
        """Return the workload of a row with what the workload has that its model is. `path` are the rows that led here."""
        path = (*path, name)
        base = self._base(name, rows)
        if base is None:
            return _laid_over(rows[name], name)
        if base in path and not (base == name and name in self._by_name):
            way = " -> ".join((*path, base))
            raise WorkloadMistake(f"the workload {path[0]!r} leads to itself: {way}", name=path[0])
        made = self._build_workload(base, rows, path) if base in rows and base != name else self._by_name[base]
        return _laid_over(rows[name], name, made)

    def _base(self, name: str, rows: Mapping[str, WorkloadRow]) -> str | None:
        """Return the name of the workload that the model of a row is, or None if it is a model. Raises WorkloadMistake."""
        model = rows[name].model or ""
        if not model.startswith(PREFIX):
            return model if model in rows and model != name else None
        base = model.removeprefix(PREFIX)
        if base in rows or base in self._by_name:
            return base
        hint = near_workload(base, (*rows, *self.names))
        raise WorkloadMistake(f"the model of the workload {name!r} is no workload: {model!r}", hint=hint, name=name)


def _laid_over(row: WorkloadRow, name: str, base: Workload | None = None) -> Workload:
    """Return the workload of a name: what the row says over what `base` says, whose model it has."""
    fields = {key: value for key, value in msgspec.structs.asdict(row).items() if value is not None}
    if base is not None:
        fields.pop("model")
    intent = {key: fields.pop(key) for key in _INTENT if key in fields}
    base = base or Workload(name=name)
    needs = msgspec.structs.replace(base.intent, **intent, subsystem=name)
    return msgspec.structs.replace(base, **fields, name=name, intent=needs)


class WorkloadMistake(ConfigError):
    """A row of `[workloads]` that cannot be used. `name` is the row's."""

    def __init__(self, message: str, *, hint: str = "let its model be a model", name: str) -> None:
        super().__init__(message, hint=hint)
        self.name = name


def unknown_workload(name: str, workloads: Workloads) -> UnknownModel:
    """Return the error for a name that no workload has."""
    return UnknownModel(f"no workload is called {name[:100]!r}", hint=near_workload(name, workloads.names))


def near_workload(name: str, known: Sequence[str]) -> str:
    """Return which of the known names may be meant."""
    near = get_close_matches(name[:100], known, n=2, cutoff=0.5)
    listed = [PREFIX + name for name in near]
    return f"did you mean {' or '.join(listed)}?" if listed else f"workloads are {', '.join(sorted(known)[:30])}"


@cache
def builtin_workloads() -> Workloads:
    """Return the workloads that everyone has."""
    text = files("bardo.catalog").joinpath("data/workloads.toml").read_text(encoding="utf-8")
    rows = msgspec.convert(tomli.loads(text), dict[str, WorkloadRow])
    return Workloads(_laid_over(row, name) for name, row in rows.items())
