"""`bardo log prune`: remove old calls from the log."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bardo.adapters.config.settings import load_settings, log_path
from bardo.surfaces.cli.options import AsJson, Config, since_time
from bardo.surfaces.render.console import print_stderr, show_json
from bardo.surfaces.render.wording import count
from bardo.values.errors import InvalidRequest

if TYPE_CHECKING:
    pass


def prune(
    before: Annotated[str, typer.Option("--before", metavar="TIME", help="Written 90d, or 2026-01-31.")],
    shrink: Annotated[bool, typer.Option("--shrink", help="Write SQLite's file anew, smaller.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: AsJson = False,
    config: Config = None,
) -> None:
    """Remove the calls of all days (UTC) before that of a time, for good.

    Their feedback and episodes go too; sums of costs by day stay. A gateway may write meanwhile, but waits while a file is written anew.
    """
    from bardo.adapters.stores.log.pruning import first_day_kept
    from bardo.adapters.stores.retention import LogPruning

    moment = since_time(before, time.time(), option="--before") or 0.0
    day = datetime.fromtimestamp(first_day_kept(moment), UTC).date()
    with LogPruning(log_path(load_settings(config))) as log:
        number = log.count(moment)
        if number and not yes:
            _confirm(number, f"before {day}")
        size = log.size()
        done = log.prune(moment)
        shrunk = log.shrink() if shrink else None
        now = log.size()
        if as_json:
            show_json(
                {"calls": done.calls, "feedback": done.feedback, "before": str(day), "bytes": now, "shrunk": shrunk}
            )
            return
        print_stderr(f"{_calls(done.calls)} before {day} removed; the sums of their costs stay")
        _print_size(size, now, shrunk)


def _print_size(before: int | None, now: int | None, shrunk: bool | None) -> None:
    if shrunk:
        print_stderr(f"the log takes {_megabytes(now)} now, {_megabytes(before)} before")
    elif shrunk is False:
        print_stderr(
            "the file could not be written anew: another program uses it, or the log is not SQLite's. Try again later"
        )
    else:
        print_stderr("the room they took is used for new calls; --shrink makes a file of SQLite smaller")


def _confirm(number: int, which: str) -> None:
    """Ask whether so many calls are to be removed. Raises InvalidRequest where nobody can be asked, Abort for a no."""
    if not sys.stdin.isatty():
        raise InvalidRequest(f"{_calls(number)} {which} would be removed", hint="add --yes where nobody can be asked")
    typer.confirm(f"Remove {_calls(number)} {which} for good?", abort=True, err=True)


def _calls(number: int) -> str:
    return f"{count(number)} call{'' if number == 1 else 's'}"


def _megabytes(size: int | None) -> str:
    return "an unknown number of bytes" if size is None else f"{size / 1_000_000:.1f} MB"
