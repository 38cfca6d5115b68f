"""Say whether a reply begins inside a block of reasoning, by where it begins and never by the model's name.

Who knows best is asked first: the caller, the end of the rendered prompt, the request's toggles, the format's row.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import msgspec
import tomli

from bardo.reasoning.formats import ReasoningFormat
from bardo.reasoning.splitter import Splitter, phases_of

# Servers write one of these into templates that know the other; an effort of none turns both off.
SWITCHES = frozenset({"enable_thinking", "thinking"})
OFF_WORDS = frozenset({"", "0", "none", "off", "no", "false", "disabled", "no_think", "nothink"})
# No delimiter is longer, nor a header that goes on with the assistant's turn.
END_OF_PROMPT = 512


class Start(msgspec.Struct, frozen=True):
    """Whether a reply begins inside a block, and who said so."""

    inside: bool
    because: Literal["asked", "prompt", "toggles", "row"]


def starting_state(
    format: ReasoningFormat,  # noqa: A002
    *,
    starts_inside: bool | None = None,
    prompt: str | None = None,
    toggles: Mapping[str, Any] | None = None,
) -> bool:
    """Say whether a reply begins inside a block; `explain_start` says why as well."""
    return explain_start(format, starts_inside=starts_inside, prompt=prompt, toggles=toggles).inside


def explain_start(
    format: ReasoningFormat,  # noqa: A002
    *,
    starts_inside: bool | None = None,
    prompt: str | None = None,
    toggles: Mapping[str, Any] | None = None,
) -> Start:
    """Say whether a reply begins inside a block, and why.

    `prompt` is the rendered prompt or its tail, of which only the assistant's last turn counts; `toggles` are the arguments
    of the chat template, among them the effort. A request without any ({}) leaves the template its default; where nothing is known
    of the request (None), text without a marker is answer.
    """
    if starts_inside is not None:
        return Start(starts_inside, "asked")
    if prompt and (format.starts or format.restores):
        return Start(_left_open(format, prompt), "prompt")
    switched = None if toggles is None else _switched(format, toggles)
    if switched is not None:
        return Start(switched and format.starts_inside is not False, "toggles")
    return Start(format.starts_inside is True, "row")


def _left_open(row: ReasoningFormat, prompt: str) -> bool:
    """Read what the prompt has of the assistant's turn as the reply itself would be read."""
    if row.restores:
        return prompt.rstrip().endswith(row.restores)
    turn = _turn(row, prompt)
    return _ends_with_opener(row, prompt) if turn is None else Splitter(row, starts_inside=False).ends_inside(turn)


def _turn(row: ReasoningFormat, prompt: str) -> str | None:
    """Return what follows the last header of the assistant; None if no header is known.

    Markers in earlier turns, and in a system message about tools, say nothing about this reply.
    """
    headers = (*row.turns, *turn_headers())
    begin = max((prompt.rfind(header) + len(header) for header in headers if header in prompt), default=None)
    if begin is None and prompt.lstrip().startswith(row.starts):
        return prompt
    return None if begin is None else prompt[begin:]


def _ends_with_opener(row: ReasoningFormat, prompt: str) -> bool:
    phases = phases_of(row)
    return any(
        phases[phases["before"].move(match.group()).to].reasoning
        for end in (prompt[-END_OF_PROMPT:], prompt.rstrip()[-END_OF_PROMPT:])
        for match in phases["before"].final.finditer(end)
        if match.end() == len(end)
    )


def _switched(row: ReasoningFormat, toggles: Mapping[str, Any]) -> bool | None:
    """Say whether the request thinks, or None if its toggles do not decide that."""
    switchable = not SWITCHES.isdisjoint(row.toggles)
    names = (*row.toggles, *sorted(SWITCHES), "reasoning_effort") if switchable else row.toggles
    for name in names:
        thinks = _means(toggles.get(name))
        if thinks is not None:
            return thinks is not name.startswith("/no")
    return True if row.thinks else None


def toggles_thinking(toggles: Mapping[str, Any]) -> bool | None:
    """Say whether template arguments that any model may know turn thinking on or off, or None if they say neither."""
    if not toggles:
        return None
    return next((thinks for name in sorted(SWITCHES) if (thinks := _means(toggles.get(name))) is not None), None)


def _means(value: object) -> bool | None:
    if isinstance(value, str):
        return value.strip().lower() not in OFF_WORDS
    return None if value is None else bool(value)


@cache
def turn_headers() -> tuple[str, ...]:
    """Return what chat templates begin the assistant's turn with."""
    source = files("bardo.catalog").joinpath("data", "reasoning_formats.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomli.loads(source)["turns"], tuple[str, ...])
