"""How rows are found by what people write: model ids that globs match, and names, whatever their spelling.

A wildcard never splits a number: `claude-5-2*` matches `claude-5-2` and `claude-5-2-fast`, and not `claude-5-20260610`, which is a date
behind another model's name; `gpt-5*` matches `gpt-5o` and `gpt-5.1`, and not `gpt-50`; `*2b` matches `x-2b` and not `x-12b`. A class that
a glob writes out is no part of a number: `kimi-k2-0[0-9]*` matches `kimi-k2-0711`, and `o[0-9]*` matches `o5` and `o10`.

Of several globs that match, the most specific one decides (`specificity`): one without wildcards, else the one with the most letters that
must stand as they are, else the one with the most classes and `?`. A row that only assumes something gives way to one that does not, unless
its glob lies within the other's: `claude-opus-5-[0-9]` before `claude-opus-5*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

_LONGEST_CACHED = 256
_WILDCARD = r"\*+|\?|\[!?\]?[^\]]{1,100}\]"
_WILDCARDS, _TOKENS = re.compile(_WILDCARD), re.compile(f"{_WILDCARD}|.", re.DOTALL)
_NOTHING = re.compile(r"(?!)")


def matches_glob(text: str, glob: str) -> bool:
    """Return whether the whole text matches the glob (`*`, `?`, `[…]`), letter by letter. Takes time linear in the text.

    A glob with a range that ends before it begins matches nothing: `broken_class` finds it.
    """
    # Most globs hold another maker's word: an expression is compiled for those alone that may match.
    return _longest_word(glob) in text and _compiled(glob).fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _longest_word(glob: str) -> str:
    """Return the most letters in a row that must stand as they are."""
    return max(_WILDCARDS.split(glob), key=len)


def matches_any(text: str, globs: Iterable[str]) -> bool:
    """Return whether the whole text matches one of the globs. Answers for tuples of globs are cached."""
    if type(globs) is tuple and len(text) <= _LONGEST_CACHED:
        return _cached_match(text, globs)
    return any(matches_glob(text, glob) for glob in globs)


@lru_cache(maxsize=4096)
def _cached_match(text: str, globs: tuple[str, ...]) -> bool:
    return any(matches_glob(text, glob) for glob in globs)


@lru_cache(maxsize=4096)
def specificity(glob: str) -> tuple[bool, int, int]:
    """Return how much a glob says of an id; of the globs that match one, the greatest decides.

    In this order: whether it has no wildcard, how many letters must stand as they are, how many places must hold one letter of a class.
    """
    tokens = _TOKENS.findall(glob)
    wild = sum(token.startswith("*") for token in tokens)
    classes = sum(token == "?" or len(token) > 1 for token in tokens if not token.startswith("*"))
    return wild == classes == 0, len(tokens) - wild - classes, classes


def broken_class(glob: str) -> str:
    """Return the first class of a glob whose range ends before it begins (`[z-a]`), which no text can be matched with, or nothing."""
    for token in _TOKENS.findall(glob):
        try:
            re.compile(_token(token))
        except re.error:
            return str(token)
    return ""


def best_specificity(text: str, globs: Iterable[str]) -> tuple[bool, int, int]:
    """Return what the most specific of the globs that match a text says of it. Raises ValueError where none does."""
    return max(specificity(glob) for glob in globs if matches_any(text, (glob,)))


def lies_within(narrow: str, wide: str) -> bool:
    """Return whether `wide` matches all that `narrow` matches, a wildcard or class of `narrow` being no letter that `wide` names."""
    sample = "".join(
        "\0" if token[0] == "*" or token == "?" or len(token) > 1 else token for token in _TOKENS.findall(narrow)
    )
    return matches_glob(sample, wide)


def fits(pattern: str, model_id: str) -> bool:
    """Return whether a part of the model id matches the pattern, a glob, however hosts spell the id."""
    return matches_glob(_comparable(model_id), _part(pattern))


def plain_id(model: str) -> str:
    """Return a model id in small letters with dashes for dots, so that globs and ids compare."""
    return model.lower().replace(".", "-")


def canonical(name: str) -> str:
    """Return the one spelling under which a format's name is looked up."""
    return name.strip().lower().replace("-", "_")


@lru_cache(maxsize=1024)
def _part(pattern: str) -> str:
    return f"*{_comparable(pattern)}*"


def _comparable(model_id: str) -> str:
    # Hosts write one model as qwen3:32b, qwen3_32b and Qwen/Qwen3-32B.
    return model_id.lower().replace("_", "-").replace(":", "-")


@lru_cache(maxsize=4096)
def _compiled(glob: str) -> re.Pattern[str]:
    """Return the glob as a regular expression that never goes back: the first place where a fixed part stands is as good as any."""
    # What stands between the wildcards, each with its number kept whole.
    parts: list[list[str]] = [[]]
    for token in _TOKENS.findall(glob):
        if token.startswith("*"):
            parts.append([])
        else:
            parts[-1].append(token)
    last = len(parts) - 1
    first, *others = [_fixed(tokens, after=place > 0, before=place < last) for place, tokens in enumerate(parts)]
    expression = first
    if others:
        *middle, end = others
        expression += "".join(f"(?>.*?{part})" for part in middle if part) + f".*{end}"
    try:
        return re.compile(expression, re.DOTALL)
    except re.error:
        return _NOTHING


def _fixed(tokens: list[str], *, after: bool, before: bool) -> str:
    """Return one part between wildcards; `after` and `before` say on which sides a wildcard stands."""
    if not tokens:
        return ""
    begin = "(?<![0-9])" if after and _is_digit(tokens[0]) else ""
    end = "(?![0-9])" if before and _is_digit(tokens[-1]) else ""
    return begin + "".join(map(_token, tokens)) + end


def _token(token: str) -> str:
    if token == "?":
        return "."
    if len(token) > 1:
        members = token[1:-1].removeprefix("!").replace("\\", r"\\").replace("[", r"\[").replace("^", r"\^")
        return f"[{'^' if token[1] == '!' else ''}{members}]"
    return re.escape(token)


def _is_digit(token: str) -> bool:
    return len(token) == 1 and token.isascii() and token.isdigit()
