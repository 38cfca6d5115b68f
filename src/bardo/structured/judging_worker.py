"""A process that judges values by JSON Schemas, and that the system ends where one of them takes too long.

Run as a file. It reads a line for each value and writes one or two: first whether the value conforms, then where it does not. It ends with
its standard input, and by itself after the seconds of processor time that each line allows: nothing within a judgement can be interrupted.
"""

from __future__ import annotations

import json
import signal
import sys
from collections import OrderedDict
from itertools import islice
from typing import Any

_KEPT = 16
_LONGEST_MESSAGE = 1_000


def main() -> None:
    """Answer each line."""
    import jsonschema_rs

    validators: OrderedDict[str, Any] = OrderedDict()
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        # The system ends the process then, also where it does not come back to Python.
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, asked["seconds"])
        written = asked["schema"]
        if written not in validators:
            options = jsonschema_rs.FancyRegexOptions(
                backtrack_limit=asked["backtrack_limit"], size_limit=asked["size_limit"]
            )
            # Nothing is fetched: bardo has compiled the schema before, and it refers to itself alone.
            validators[written] = jsonschema_rs.validator_for(
                json.loads(written), validate_formats=True, pattern_options=options
            )
            while len(validators) > _KEPT:
                validators.popitem(last=False)
        validator = validators[written]
        _answer({"conforms": bool(validator.is_valid(asked["value"]))})
        if asked["limit"]:
            failures = [
                [list(error.instance_path), str(error.message)[:_LONGEST_MESSAGE], error.kind.name]
                for error in islice(validator.iter_errors(asked["value"]), asked["limit"])
            ]
            _answer({"failures": failures})
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_PROF, 0)


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
