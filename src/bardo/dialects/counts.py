"""Token counts as providers report them, brought under bardo's algebra."""

from __future__ import annotations

from typing import Any

from bardo.values.degradation import Degradation

_LARGEST = 1 << 53


def token_count(value: Any) -> int | None:
    """Return a token count, or None where it is absent, negative, absurdly large, or no whole number."""
    if value is None:
        return None
    if type(value) is int:
        return value if 0 <= value < _LARGEST else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if 0 <= value < _LARGEST and value == int(value) else None


def doubted(name: str, value: Any) -> tuple[Degradation, ...]:
    """Report a count that cannot be true."""
    if value is None or token_count(value) is not None:
        return ()
    return (Degradation(name, asked=value, sent=None, why="the provider reported an impossible count"),)


def output_with_reasoning(
    output: int | None, reasoning: int | None, *, prompt: int | None, total: int | None, excludes_reasoning: bool | None
) -> tuple[int | None, int | None, tuple[Degradation, ...]]:
    """Return (output including reasoning, reasoning, what had to be corrected).

    `excludes_reasoning` is the provider's fact: its output count leaves reasoning out. Where that is not known, the reply's total decides:
    prompt + output + reasoning means that it is left out, prompt + output that it is included. Where the total decides nothing, reasoning
    above the output is left out of it. Reasoning above an output that includes it is capped there. A total that holds more than prompt and
    output, where no reasoning is named, holds reasoning.
    """
    if reasoning is None and excludes_reasoning is not False:
        return _with_unnamed(output, prompt, total)
    if output is None or not reasoning:
        return output, reasoning, ()
    if excludes_reasoning is None:
        told = None if prompt is None or total is None else total - prompt
        excludes_reasoning = told == output + reasoning or (reasoning > output and told != output)
    if excludes_reasoning:
        return output + reasoning, reasoning, ()
    if reasoning > output:
        why = "the provider reports more reasoning than output, which includes it"
        return output, output, (Degradation("usage.reasoning_tokens", asked=reasoning, sent=output, why=why),)
    return output, reasoning, ()


def cache_within_input(
    prompt: int | None, cached: int | None, written: int | None = None
) -> tuple[int | None, int | None, tuple[Degradation, ...]]:
    """Return (cached, written, what had to be corrected): both are parts of the input, so together they are not more than that."""
    if prompt is None:
        return cached, written, ()
    read = None if cached is None else min(cached, prompt)
    kept = None if written is None else min(written, prompt - (read or 0))
    if read == cached and kept == written:
        return read, kept, ()
    why = "the provider reports more of it than input, which includes it"
    pairs = (("usage.cached_input_tokens", cached, read), ("usage.cache_write_tokens", written, kept))
    return read, kept, tuple(Degradation(what, asked=was, sent=now, why=why) for what, was, now in pairs if was != now)


def _with_unnamed(
    output: int | None, prompt: int | None, total: int | None
) -> tuple[int | None, int | None, tuple[Degradation, ...]]:
    """Take what a total holds beside prompt and output for reasoning: Gemini's Chat Completions route names it nowhere else."""
    if output is None or prompt is None or total is None or total <= prompt + output:
        return output, None, ()
    rest = total - prompt - output
    why = "the provider's own total holds this much more than input and output"
    return output + rest, rest, (Degradation("usage.reasoning_tokens", sent=rest, why=why),)
