"""The command line. `main` is the program; each command is a file of its own, loaded when it is asked for."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

from bardo.surfaces.cli.streams import INTERRUPTED, PIPE_CLOSED, OutputFailed, StdoutClosed, standard_streams

# A command makes 80,000 objects while it loads, which stay: looking at them again takes a tenth of its start, and finds nothing.
_COLLECTION_THRESHOLD = 150_000


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command that `arguments` name, by default the program's own, and return the exit code.

    0: done. 1: a provider failed, something configured does not work, or the output cannot be written. 2: the call or the configuration
    is wrong. 3: a provider does not answer now, and a later try may work. 4: the model's answer does not conform to the schema.
    130: interrupted. 141: whoever read the output left.
    """
    gc.set_threshold(max(_COLLECTION_THRESHOLD, gc.get_threshold()[0]))
    with standard_streams():
        try:
            code = _run(sys.argv[1:] if arguments is None else list(arguments))
            sys.stdout.flush()
        except StdoutClosed:
            return PIPE_CLOSED
        except OutputFailed as problem:
            from bardo.surfaces.render.console import print_problem

            print_problem(problem)
            return 1
        except KeyboardInterrupt:
            return INTERRUPTED
        return code


def _run(arguments: Sequence[str]) -> int:
    if list(arguments) == ["--version"]:
        from bardo._version import __version__

        print(f"bardo {__version__}")
        return 0
    from bardo.surfaces.cli.app import run

    return run(arguments)
