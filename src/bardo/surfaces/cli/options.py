"""What several commands share: options, the files and stdin that they read, and the warning of secrets in a configuration."""

from __future__ import annotations

import math
import os
import re
import stat
import sys
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from bardo.surfaces.render.console import print_stderr
from bardo.surfaces.render.wording import policy_of as policy_of
from bardo.values.errors import InvalidRequest

if TYPE_CHECKING:
    from bardo.adapters.config.settings import Settings

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", "-c", metavar="FILE", help="The configuration; by default $BARDO_CONFIG, else ./bardo.toml."
    ),
]


def gateway_option(text: str) -> Any:
    """Return the option of a command that asks a running gateway; `text` says what it is for, and what is asked without it."""
    return typer.Option("--gateway", metavar="URL", envvar="BARDO_INFERENCE_URL", show_envvar=False, help=text)


AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Only calls since then: 30m, 2h, 7d, or 2026-01-31.")
]


def finite(value: float | None) -> float | None:
    """Return the number of an option. Raises typer.BadParameter for infinity and for what is no number, which comparisons let pass."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def since_time(written: str | None, now: float, *, option: str = "--since") -> float | None:
    """Return the Unix time that `option` means: so long before `now`, or a date or time of the local zone.

    Raises InvalidRequest for anything else.
    """
    if written is None:
        return None
    ago = re.fullmatch(r"(\d{1,9}(?:\.\d{1,9})?)\s*([smhdw])", written.strip().lower())
    if ago:
        return now - float(ago[1]) * _UNITS[ago[2]]
    try:
        return datetime.fromisoformat(written.strip()).timestamp()
    except (ValueError, OverflowError, OSError) as problem:
        hint = "write 30m, 2h, 7d, 2026-01-31 or 2026-01-31T18:00"
        raise InvalidRequest(f"{option} does not understand {written!r}", hint=hint) from problem


STDIN = "-"


def read_bytes(name: str) -> bytes:
    """Return what a file, or stdin as `-`, holds. Raises InvalidRequest where it cannot be read."""
    if name == STDIN and sys.stdin.isatty():
        print_stderr("reading what you type, to Ctrl-D on a line of its own")
    try:
        return sys.stdin.buffer.read() if name == STDIN else Path(name).read_bytes()
    except OSError as problem:
        raise InvalidRequest(
            f"cannot read {name}: {problem.strerror or problem}", hint="give a file, or - for stdin"
        ) from problem


def read_schema(file: Path) -> dict[str, Any]:
    """Return the JSON Schema of a file, or of stdin as `-`. Raises InvalidRequest for anything else."""
    try:
        schema = msgspec.json.decode(read_bytes(str(file)))
    except msgspec.DecodeError as problem:
        raise InvalidRequest(f"{file} is not JSON: {problem}", hint="give a file with a JSON Schema") from problem
    if not isinstance(schema, dict):
        raise InvalidRequest(f"{file} holds no JSON Schema", hint='a schema is an object: {"type": "object", …}')
    return schema


def given_text(written: str, *, stdin_taken: bool = False, alone: bool = True) -> str:
    """Return what is written, with what is piped in below it; from stdin alone where it is `-`, or nothing and a prompt (`alone`) is due.

    `stdin_taken`: stdin is read for something else.
    """
    if stdin_taken:
        return written
    if written == STDIN:
        return _stdin_text()
    if not written:
        return _stdin_text() if (alone and not sys.stdin.isatty()) or _is_fed() else ""
    piped = _stdin_text().strip("\n") if _is_fed() else ""
    return f"{written}\n\n{piped}" if piped else written


def checked_prompt(prompt: str) -> str:
    """Return a prompt as text that providers take. Raises InvalidRequest where it says nothing."""
    if not prompt.strip():
        raise InvalidRequest("there is no prompt", hint='write it, as in: bardo ask "Why?" --model …, or pipe it in')
    # Arguments that are no text of the user's locale arrive as surrogates, which no provider takes.
    return prompt.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _stdin_text() -> str:
    return read_bytes(STDIN).decode("utf-8", "replace")


def _is_fed() -> bool:
    """Whether stdin is a pipe or a file. Anything else, such as a service's socket, may never end."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (OSError, ValueError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def warn_of_secrets(settings: Settings) -> None:
    """Print which providers have a secret in the configuration, by its place, and what to do about it."""
    from bardo.adapters.config.secrets import how_to_remove, secrets_of
    from bardo.adapters.config.settings import provider_of

    for entry in settings.providers:
        if found := secrets_of(entry):
            fix = how_to_remove(entry, found, provider_of(entry, settings.source).row.key_variables)
            print_stderr(f"warning: a secret stands in {settings.source}: {', '.join(found)} of {entry.id}; {fix}")
