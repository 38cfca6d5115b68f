"""The command line. `main` is the program; each command is a file of its own, loaded when it is asked for."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` name, by default the program's own, and return the exit code.

    0: done. 1: a provider failed, or something configured does not work. 2: the call or the configuration is wrong. 130: interrupted.
    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if list(arguments) == ["--version"]:
        from bardo._version import __version__

        print(f"bardo {__version__}")
        return 0
    from bardo.surfaces.cli.app import run

    return run(arguments)
