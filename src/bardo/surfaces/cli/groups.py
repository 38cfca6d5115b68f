"""Groups of commands that say what a mistyped word was probably meant for."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

_CHOICES = re.compile(r"'([^']*)' is not one of ('[^']*'(?:, '[^']*')*)")
_HELP = "help"


class CommandGroup(TyperGroup):
    """A group whose errors name the nearest command, also where that is the help, and the nearest of a value's choices."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is named. Raises a usage error, with the nearest names, for one that there is not."""
        try:
            return super().resolve_command(ctx, args)
        except Exception as mistake:
            message = getattr(mistake, "message", "")
            if args and "Did you mean" not in message and get_close_matches(args[0].lower(), [_HELP]):
                mistake.message = f"{message.rstrip('.')}. Did you mean '--help'?"  # type: ignore[attr-defined]
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a value that is none of its choices is told with the nearest one."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as mistake:
            found = _CHOICES.search(mistake.message)
            near = get_close_matches(found[1], found[2][1:-1].split("', '"), n=1) if found else []
            if near and "Did you mean" not in mistake.message:
                mistake.message = f"{mistake.message.rstrip('.')}. Did you mean '{near[0]}'?"
            raise
