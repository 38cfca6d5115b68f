"""Compile formats whose tags carry a suffix that the tokenizer of the checkpoint chose: `<think:opensource>`, or none."""

import re
from collections.abc import Mapping

from bardo.reasoning.delimiters import delimiter_phases
from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.patterns import Maybe, Run
from bardo.reasoning.phases import Move, Phase, Phases, content, reasoning

SUFFIX = re.compile(r":[\w-]+>$")
NAME = Run(r"[\w-]{1,64}+")


def suffixed_phases(row: ReasoningFormat) -> Phases:
    """Return the phases of a format by name. Its delimiters are written without suffix, and end with `>`."""
    return {name: _suffixed(phase) for name, phase in delimiter_phases(row).items()}


def _suffixed(phase: Phase) -> Phase:
    moves: Mapping[str, Move] = phase.moves
    shapes = [(marker.removesuffix(">"), Maybe((":", NAME)), ">") for marker in moves]

    def read(marker: str) -> Move:
        return moves[SUFFIX.sub(">", marker)]

    if phase.reasoning:
        return reasoning(moves, shapes=shapes, header=read, settles=phase.settles)
    return content(moves, shapes=shapes, header=read, settles=phase.settles, fenced=phase.fenced)
