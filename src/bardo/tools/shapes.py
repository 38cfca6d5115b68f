"""Compile the parts of a row, which show what a call looks like, into steps to read one by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from bardo.tools.formats import ToolCallFormat
from bardo.values.errors import InvalidRequest

_HOLE = re.compile(r"\{(\w+)\}")
CALL_HOLES = {
    "name",
    "id",
    "recipient",
    "identifier",
    "word",
    "named",
    "arguments",
    "parameters",
    "empty",
    "elements",
    "json",
    "objects",
    "python",
    "call",
    "gemma",
}
PARAMETER_HOLES = {"key", "value", "string", "type"}


@dataclass(frozen=True, slots=True)
class ShapeStep:
    """One thing to read: a `literal` with its text, an `optional` group, or the hole that `kind` names."""

    kind: str
    text: str = ""
    group: tuple[ShapeStep, ...] = ()
    until: tuple[str, ...] = ()
    """For a hole: what may follow it in the shape."""


Shape = tuple[ShapeStep, ...]


@dataclass(frozen=True, slots=True)
class Shapes:
    """A row, ready to read calls by."""

    calls: tuple[Shape, ...]
    parameters: tuple[Shape, ...]
    firsts: tuple[str, ...]
    """The literals that calls begin with."""
    openers: tuple[str, ...]
    """All that may begin a section or a call outside one."""
    parameter_firsts: tuple[str, ...]
    borders: tuple[str, ...]
    """All that may not stand inside a call's loose end: section ends and openers."""


@lru_cache(maxsize=256)
def shapes_of(row: ToolCallFormat) -> Shapes:
    """Return the steps of a format. They are immutable, and shared by all replies in this row. Raises InvalidRequest."""
    calls = tuple(_compiled(parts, CALL_HOLES, row.name) for parts in row.shapes)
    parameters = tuple(_compiled(parts, PARAMETER_HOLES, row.name) for parts in row.parameters)
    return Shapes(
        calls=calls,
        parameters=parameters,
        firsts=_firsts(calls),
        openers=row.begin,
        parameter_firsts=_firsts(parameters),
        borders=(*row.end, *row.begin),
    )


def _firsts(shapes: Sequence[Shape]) -> tuple[str, ...]:
    return tuple(shape[0].text for shape in shapes if shape[0].kind == "literal")


def _compiled(parts: Sequence[str], holes: set[str], name: str) -> Shape:
    steps = [step for part in parts for step in _part(part, holes, name)]
    if not steps:
        raise InvalidRequest(f"tool-call format {name!r} has an empty shape", hint="give it at least one part")
    return _with_what_follows(steps, ())


def _part(part: str, holes: set[str], name: str) -> list[ShapeStep]:
    pieces = _HOLE.split(part.removeprefix("?"))
    steps = [_step(piece, hole=bool(at % 2)) for at, piece in enumerate(pieces) if piece]
    if unknown := {step.kind for step in steps} - holes - {"literal"}:
        raise InvalidRequest(
            f"tool-call format {name!r} has a hole {unknown.pop()!r}", hint=f"known: {', '.join(sorted(holes))}"
        )
    if not part.startswith("?"):
        return steps
    if steps[0].kind != "literal":
        raise InvalidRequest(
            f"tool-call format {name!r}: a part that may be missing begins with a hole", hint="begin it with text"
        )
    return [ShapeStep("optional", group=tuple(steps))]


def _step(piece: str, *, hole: bool) -> ShapeStep:
    return ShapeStep(piece) if hole else ShapeStep("literal", text=piece)


def _with_what_follows(steps: Sequence[ShapeStep], after: tuple[str, ...]) -> Shape:
    done: list[ShapeStep] = []
    for step in reversed(steps):
        if step.kind == "literal":
            after = (step.text,)
        elif step.kind == "optional":
            step = ShapeStep("optional", group=_with_what_follows(step.group, after))
            after = (step.group[0].text, *after)
        else:
            step = ShapeStep(step.kind, until=after)
            after = ()
        done.append(step)
    return tuple(reversed(done))
