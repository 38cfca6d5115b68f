"""The table of commands, and what an error becomes: a clear line on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from bardo.adapters.log_filter import clean_log_lines
from bardo.surfaces.cli.groups import CommandGroup
from bardo.surfaces.cli.streams import INTERRUPTED, LATER, OutputFailed
from bardo.surfaces.render.console import print_problem
from bardo.values.errors import BardoError, CallerError, OperatorError

# In the order in which a newcomer needs them.
COMMANDS = (
    "demo",
    "serve",
    "run",
    "ask",
    "history",
    "prompts",
    "models",
    "explain",
    "route",
    "parse",
    "top",
    "log",
    "costs",
    "cache",
    "memory",
    "keys",
    "payments",
    "telegram",
    "discord",
    "routing",
    "classify",
    "doctor",
    "catalog",
    "probe",
    "conform",
    "simulate",
)


class Commands(CommandGroup):
    """Runs a command; its BardoError is told, not thrown."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except OutputFailed:
            raise
        except BardoError as problem:
            print_problem(problem)
            raise typer.Exit(exit_code(problem)) from problem
        except KeyboardInterrupt as interrupted:
            raise typer.Exit(INTERRUPTED) from interrupted


def exit_code(problem: BardoError) -> int:
    """Return 2 where the call or the configuration must change, 3 where a later try may work, else 1."""
    if isinstance(problem, CallerError | OperatorError):
        return 2
    return LATER if problem.retryable else 1


def make_app(*names: str) -> typer.Typer:
    """Return the application with the named commands, by default with all."""
    app = typer.Typer(
        cls=Commands,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        no_args_is_help=True,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_bardo)
    for name in names or COMMANDS:
        import_module(f"bardo.surfaces.cli.{name}").register(app)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    clean_log_lines()
    if arguments[:1] == ["help"]:
        # What other programs call `bardo --help` and `bardo log --help`.
        arguments = [*arguments[1:], "--help"]
    # Only the named command is loaded; help and a mistyped name need all of them.
    named = [name for name in COMMANDS if name in arguments[:1]]
    try:
        make_app(*named)(list(arguments), prog_name="bardo")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _version(wanted: bool) -> None:
    if wanted:
        from bardo._version import __version__

        print(f"bardo {__version__}")
        raise typer.Exit


def _bardo(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Say once how a model should think, and read every model's thinking in one form.

    Try `bardo demo` first: it needs no key and no network.
    """
