"""Where words go: answers to stdout, everything else to stderr.

Colours appear only on a terminal, and never against NO_COLOR. In a pipe no line is cut or wrapped.

All that a command prints goes through here (a reply as it arrives: `answer.py`), is cleaned by `printable`, so that no name, message or
row can play with a terminal, and is flushed, so that a program which waits for a line gets it.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from bardo.adapters.log_filter import configured_secrets
from bardo.surfaces.render.wording import printable
from bardo.values.error_cleaning import escaped_json
from bardo.values.errors import BardoError, UpstreamRefused
from bardo.values.secrets import secrets_of

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_WIDE = 10_000


def console(*, stderr: bool = False) -> Console:
    """Return rich's console for one of the two streams."""
    from rich.console import Console

    found = Console(stderr=stderr, highlight=False, emoji=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, emoji=False, width=_WIDE)


def full_screen_console() -> Console:
    """Return rich's console for a program that fills the screen: of the size that the terminal has now, whatever LINES and COLUMNS say."""
    from rich.console import Console

    fixed = ("LINES", "COLUMNS")
    environment = {name: value for name, value in os.environ.items() if name not in fixed}
    return Console(highlight=False, emoji=False, _environ=environment)


def show(renderable: RenderableType, *, stderr: bool = False) -> None:
    """Print a table or a text."""
    target = console(stderr=stderr)
    stream = sys.stderr if stderr else sys.stdout
    if target.is_terminal:
        target.print(renderable)
        stream.flush()
        return
    with target.capture() as capture:
        target.print(renderable)
    lines = [line.rstrip() for line in capture.get().splitlines()]
    print("\n".join(lines), file=stream, flush=True)


def show_text(text: str = "") -> None:
    """Print lines of text on stdout."""
    print(printable(text), flush=True)


def show_json(value: Any) -> None:
    """Print a value as JSON, for programs, which may wait for it."""
    show_json_text(msgspec.json.format(msgspec.json.encode(value, enc_hook=as_plain), indent=2).decode())


def show_json_text(encoded: str) -> None:
    """Print JSON. What could play with a terminal is escaped as JSON does it, which changes no value."""
    print("\n".join(map(escaped_json, encoded.split("\n"))), flush=True)


def as_plain(value: Any) -> Any:
    """Return what JSON has no word for as plain values: an error as its fields, anything else as text."""
    if isinstance(value, BardoError):
        return {"code": value.code, "kind": value.kind, "status": value.status, **vars(value)}
    return str(value)


def print_stderr(message: str) -> None:
    """Print lines of text on stderr."""
    _write_stderr(printable(message))


def _write_stderr(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def print_problem(problem: BardoError) -> None:
    """Print what went wrong and what to do about it, on stderr."""
    mark = "\x1b[1;31mbardo:\x1b[0m" if has_colours() else "bardo:"
    _write_stderr(f"{mark} {printable(_without_passwords(_provider_note(problem) + problem.message))}")
    hint = problem.hint or _retry_note(problem)
    if hint:
        print_stderr(f"       {_without_passwords(hint)}")


def _without_passwords(text: str) -> str:
    """Return a message without what is secret of the addresses in the configuration: drivers quote what they were given."""
    known = configured_secrets()
    return secrets_of(known).in_text(text) if known else text


def _provider_note(problem: BardoError) -> str:
    """Name the provider whose words the message is."""
    if isinstance(problem, UpstreamRefused):
        return f"{problem.provider} answered {problem.status}: "
    return ""


def _retry_note(problem: BardoError) -> str:
    retry_after = getattr(problem, "retry_after", None)
    return f"it asks to be left alone for {retry_after} seconds" if retry_after else ""


def has_colours() -> bool:
    """Whether stderr takes colours; an error is no reason to load rich."""
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
