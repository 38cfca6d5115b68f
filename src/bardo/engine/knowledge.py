"""What planning a call draws on beside the request: formats, models, and what servers said of themselves."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from bardo.engine.reading import SeenStart
from bardo.engine.route import Target
from bardo.reasoning.control import PORTABLE, ControlTarget, Known, Layer, PortableBudgets, RouteFact, know
from bardo.reasoning.registry import FormatRegistry
from bardo.structured import StructuredSettings
from bardo.structured.modes import Form


def control_target(target: Target) -> ControlTarget:
    """Return a target as control knows it."""
    row = target.provider.row
    return ControlTarget(row.id, row.dialect, target.model)


def _known(target: Target) -> Known:
    return know(control_target(target))


def _nothing(_: Target) -> Sequence[Layer]:
    return ()


def _forget(_: RouteFact) -> None:
    return


def _none_refused(_: Target) -> frozenset[Form]:
    return frozenset()


def _forget_form(_: Target, __: Form) -> None:
    return


class Knowledge(msgspec.Struct, frozen=True, kw_only=True):
    """`formats` None stands for those that come with bardo.

    `known` gives all that is known of a target's model, and `layers` what of it an operator and live servers say, from memory: planning
    waits for nobody. `rendered` says whether the prompt that a server renders with some template arguments opens the thinking.
    `seen_start` is how earlier replies of a target began, to requests that asked for no thinking or to others, and `learn_start` keeps how
    one did (None: what was seen holds no more). `budgets` is the one table between levels and tokens. `learn` keeps what a refusal taught,
    dated by `today`. `structured` is how answers in a schema are asked for, `refused_forms` the ways that a target was seen to refuse,
    which `learn_form` keeps.
    """

    formats: FormatRegistry | None = None
    known: Callable[[Target], Known] = _known
    layers: Callable[[Target], Sequence[Layer]] = _nothing
    rendered: Callable[[Target, Mapping[str, Any]], bool | None] = lambda _, __: None
    seen_start: Callable[[Target, bool], SeenStart | None] = lambda _, __: None
    learn_start: Callable[[Target, bool, SeenStart | None], None] = lambda _, __, ___: None
    budgets: PortableBudgets = PORTABLE
    learn: Callable[[RouteFact], None] = _forget
    today: Callable[[], datetime.date] = lambda: datetime.date.min
    structured: StructuredSettings = StructuredSettings()
    refused_forms: Callable[[Target], frozenset[Form]] = _none_refused
    learn_form: Callable[[Target, Form], None] = _forget_form


BUILTIN = Knowledge()
