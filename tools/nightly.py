"""Run what is too expensive for each change: every law over everything, real servers and clients, soak, chaos and fuzzing.

`make nightly SHARD=1/4` runs a quarter of it: a quarter of the tests, and those of the other parts that fall to this shard. Each part
runs, whatever becomes of the others; at the end stands what was covered and what was not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

SERVERS_PYTHON = str(Path(".venv-servers/bin/python").absolute())


@dataclass(frozen=True)
class Part:
    """A command, and what it covers."""

    covers: str
    command: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)


TESTS = Part(
    "every law over every recording and cell, clients, cookbook and pages",
    # What was skipped, and why, is what the night did not cover.
    (sys.executable, "tools/run_tests.py", "-rs"),
    {"BARDO_NIGHTLY": "1", "BARDO_TEST_INSTALL": "all"},
)
_PLANNED = ("conformance", "dialects", "planning", "replies", "reasoning", "structured", "tools", "surfaces/gateway")
"""The tests of what is planned, written and read for requests and replies."""
WITHOUT_REUSE = Part(
    "the laws over requests and replies while nothing is kept of earlier requests",
    (sys.executable, "tools/run_tests.py", *(f"tests/{name}" for name in _PLANNED)),
    {"BARDO_NIGHTLY": "1", "BARDO_REUSE": "off"},
)
WHOLE = (
    Part(
        "vLLM on the processor and transformers, word by word",
        (sys.executable, "-m", "pytest", "tests/servers/test_other_servers.py"),
        {"BARDO_NIGHTLY": "1", "BARDO_SERVERS_PYTHON": SERVERS_PYTHON},
    ),
    Part("processes killed under load", (sys.executable, "-m", "benchmarks", "chaos", "--strict")),
    Part(
        "200,000 mixed requests at two workers",
        (sys.executable, "-m", "benchmarks", "soak", "--requests", "200000", "--strict"),
    ),
    Part("ten minutes of broken inputs", (sys.executable, "-m", "fuzzing", "--minutes", "10")),
)
"""The parts that are not divided: the first falls to the first shard, the second to the second, and so on around."""


def parts_of(number: int, count: int) -> Iterator[Part]:
    """Yield the parts of one shard."""
    yield TESTS
    yield WITHOUT_REUSE
    yield from (part for index, part in enumerate(WHOLE) if index % count == number - 1)


def run(part: Part, shard: str) -> bool:
    """Run a part to its end, and return whether it passed."""
    # The servers' libraries are large: only the shard that asks them installs them.
    if "BARDO_SERVERS_PYTHON" in part.variables:
        subprocess.run(["make", ".venv-servers/.ready"], stdin=subprocess.DEVNULL, check=False)
    sharded = {"SHARD": shard} if part in (TESTS, WITHOUT_REUSE) else {}
    environment = os.environ | part.variables | sharded
    return subprocess.run(part.command, env=environment, stdin=subprocess.DEVNULL, check=False).returncode == 0


def main() -> int:
    """Run the parts of a shard, print how each ended, and return 1 where one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shard", default="1/1", help="1/4 for the first of four (default: all)")
    shard: str = parser.parse_args().shard
    number, _, count = shard.partition("/")
    lines, failed = [], False
    for part in parts_of(int(number), int(count)):
        begin = time.monotonic()
        print(f"\n== {part.covers}: {' '.join(part.command)}", flush=True)
        passed = run(part, shard)
        failed = failed or not passed
        lines.append(f"{'passed' if passed else 'FAILED'}  {(time.monotonic() - begin) / 60:5.1f} min  {part.covers}")
    print(f"\n== the night, shard {shard}")
    print("\n".join(lines))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
