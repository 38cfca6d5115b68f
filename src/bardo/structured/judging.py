"""Judge a value in a process that can be ended: what a schema asks for may take hours, and nothing interrupts it in this process.

Such are patterns that look around or back, and many alternatives for many values. The process is started when it is first needed, kept,
and ends with this one. Whoever asks waits for the answer, so that whoever serves others asks in a thread.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import subprocess
import sys
import time
from threading import Lock
from typing import Any

from bardo.structured import judging_worker

MAX_SECONDS = 2.0
"""Seconds of processor time for one value."""
# A machine that is busy makes a judgement late, not wrong.
_PATIENCE = 10 * MAX_SECONDS

Judgement = tuple[bool, list[list[Any]]]
"""Whether a value conforms, and the first places where it does not: path, message and keyword."""


class TooMuchWork(Exception):
    """A value cannot be judged within the bounds."""


class JudgingProcess:
    """Judges one value after another."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._foreign: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._read = b""

    def judge(self, schema: str, value: Any, *, limit: int, backtrack_limit: int, size_limit: int) -> Judgement:
        """Return whether a value conforms to a schema, which is JSON text, and up to `limit` failures. Raises TooMuchWork."""
        asked = {
            "schema": schema,
            "value": value,
            "limit": limit,
            "seconds": MAX_SECONDS,
            "backtrack_limit": backtrack_limit,
            "size_limit": size_limit,
        }
        with self._lock:
            line = json.dumps(asked).encode() + b"\n"
            until = time.monotonic() + _PATIENCE
            conforms = self._ask(line, until)
            if conforms is None:
                raise TooMuchWork(f"judging it takes more than {MAX_SECONDS:g} s")
            if not limit or conforms["conforms"]:
                if limit:
                    self._line(until)
                return bool(conforms["conforms"]), []
            told = self._line(until)
            if told is None:
                return False, [[[], "it does not conform, and to find out where takes too long", ""]]
            return False, told["failures"]

    def _ask(self, line: bytes, until: float) -> dict[str, Any] | None:
        """Return the first answer, or None if the process was ended."""
        if self._owner != os.getpid():
            # After a fork the process belongs to the other one: two must not read one pipe.
            self._foreign, self._process = self._process, None
        process = self._process or self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except OSError:
            # It was ended by someone else since it answered last.
            self.close()
            process = self._start()
            assert process.stdin is not None
            process.stdin.write(line)
            process.stdin.flush()
        return self._line(until)

    def _start(self) -> subprocess.Popen[bytes]:
        self._read, self._owner = b"", os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-I", judging_worker.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: value for name in ("PATH", "SYSTEMROOT") if (value := os.environ.get(name))},
        )
        return self._process

    def _line(self, until: float) -> dict[str, Any] | None:
        """Return the next answer, or None if the process has ended, or is ended because it is late."""
        process = self._process
        assert process is not None
        assert process.stdout is not None
        while b"\n" not in self._read:
            if not select.select([process.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
                self.close()
                return None
            piece = os.read(process.stdout.fileno(), 1 << 16)
            if not piece:
                self.close()
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        verdict: dict[str, Any] = json.loads(line)
        return verdict

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    # What was not written yet belongs to a process that is gone.
                    continue
        process.wait()


_shared = JudgingProcess()
atexit.register(_shared.close)


def judged_apart(schema: str, value: Any, *, limit: int, backtrack_limit: int, size_limit: int) -> Judgement:
    """Return what the process of this program says of a value. Raises TooMuchWork."""
    return _shared.judge(schema, value, limit=limit, backtrack_limit=backtrack_limit, size_limit=size_limit)
