"""Write regular expressions that find a marker in text, or the beginning of one where the text ends.

A marker is a literal, or a sequence of parts where its middle varies, as in a message header that names a recipient.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

NOWHERE = r"(?!)"


@dataclass(frozen=True, slots=True)
class Run:
    """Text that a pattern fits. What fits must fit cut short as well, so the pattern is a possessive repetition."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Maybe:
    """Parts that may be missing."""

    parts: tuple["Part", ...]


Part = str | Run | Maybe
Shape = Sequence[Part]


def final(literals: Iterable[str], shapes: Iterable[Shape] = ()) -> re.Pattern[str]:
    """Return a pattern that finds a marker in text that will not grow; of two that begin together, the longer."""
    longest_first = sorted(literals, key=len, reverse=True)
    choices = [*map(_whole, shapes), *map(re.escape, longest_first)]
    return re.compile("(" + "|".join(choices) + ")" if choices else NOWHERE)


def growing(literals: Iterable[str], shapes: Iterable[Shape] = ()) -> re.Pattern[str]:
    """Return a pattern that finds a marker (with a group), or the beginning of one at the end (without)."""
    choices = [*(_grown(tuple(shape)) for shape in shapes), *_branches("", sorted(literals))]
    return re.compile("|".join(choices) or NOWHERE)


def common_first(literals: Iterable[str], shapes: Collection[Shape] = ()) -> str:
    """Return the character that all markers begin with; empty if they differ."""
    firsts = {literal[0] for literal in literals} | {str(shape[0])[0] for shape in shapes}
    return firsts.pop() if len(firsts) == 1 else ""


def _whole(shape: Iterable[Part]) -> str:
    return "".join(_part(part) for part in shape)


def _part(part: Part) -> str:
    match part:
        case Run(pattern):
            return pattern
        case Maybe(parts):
            return f"(?:{_whole(parts)})?"
        case _:
            return re.escape(part)


def _grown(parts: tuple[Part, ...]) -> str:
    """Write a shape in which every place may be the end of what is known so far."""
    if not parts:
        return "()"
    first, rest = parts[0], parts[1:]
    match first:
        case Maybe(inner):
            return f"(?:{_grown((*inner, *rest))}|{_grown(rest)})"
        case Run(pattern):
            return pattern + _or_end(rest)
        case _:
            shorter = (first[1:], *rest) if first[1:] else rest
            return re.escape(first[0]) + _or_end(shorter)


def _or_end(parts: tuple[Part, ...]) -> str:
    return rf"(?:\Z|{_grown(parts)})" if parts else "()"


def _branches(stem: str, literals: list[str]) -> list[str]:
    """Write the ways in which `literals`, which all begin with `stem`, go on after it: a trie of them."""
    heads = sorted({literal[len(stem)] for literal in literals if literal != stem})
    return [
        re.escape(head) + _node(stem + head, [literal for literal in literals if literal.startswith(stem + head)])
        for head in heads
    ]


def _node(stem: str, literals: list[str]) -> str:
    if literals == [stem]:
        return "()"
    complete = ["()"] if stem in literals else []
    return "(?:" + "|".join([*_branches(stem, literals), r"\Z", *complete]) + ")"
