"""Checks of names, rows and fields, each one item of pytest: a failure lists all that is wrong, with what to do."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

_LONGEST = 2_000


def offenders(found: Iterable[object], advice: str) -> None:
    """Fail with all that was found wrong, where anything was. `advice` says what is wrong with each, and what to do."""
    listed = [str(one).replace("\n", "\n    ") for one in found]
    if listed:
        pytest.fail("\n  ".join([f"{len(listed)} × {advice}:", *listed]), pytrace=False)


def each_case(
    names: str, cases: Iterable[Any], *, ids: Iterable[str] | Callable[[Any], Any] | None = None, optional: bool = False
) -> Callable[[Callable[..., None]], Any]:
    """Run a test over all cases in one item, where `pytest.mark.parametrize` makes an item of each.

    For checks of rows, names and fields, which take less time than an item of pytest does. A failure names every case that is wrong. No
    cases are a failure too, unless they are `optional`, which those are that lie beside the project.
    """
    fields = [name.strip() for name in names.split(",")]
    rows = [(case,) if len(fields) == 1 else tuple(case) for case in cases]
    if ids is None or callable(ids):
        told = ids or str
        named = ["-".join(str(told(value)) for value in row) for row in rows]
    else:
        named = list(ids)

    def decorate(test: Callable[..., None]) -> Any:
        @wraps(test)
        def run(*owner: Any, **fixtures: Any) -> None:
            if optional and not rows:
                pytest.skip("there are no cases here")
            assert rows, "there are no cases"
            problems = [_problem(test, owner, dict(zip(fields, row, strict=True)) | fixtures) for row in rows]
            wrong = [f"{name}: {problem}" for name, problem in zip(named, problems, strict=True) if problem]
            offenders(wrong, f"{test.__name__}, of {len(rows)} cases")

        taken = inspect.signature(test)
        kept = [one for name, one in taken.parameters.items() if name not in fields]
        run.__signature__ = taken.replace(parameters=kept)  # type: ignore[attr-defined]
        return run

    return decorate


def _problem(test: Callable[..., None], owner: tuple[Any, ...], arguments: dict[str, Any]) -> str:
    """Return what is wrong with one case; empty where nothing is."""
    try:
        test(*owner, **arguments)
    except pytest.skip.Exception:
        return ""
    except (AssertionError, pytest.fail.Exception) as problem:
        said = str(problem).strip() or "an assertion failed"
        return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"
    except Exception as problem:  # noqa: BLE001
        return f"{type(problem).__name__}: {problem}"
    return ""
