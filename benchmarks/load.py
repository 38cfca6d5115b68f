"""The load generator, a process of its own: `python -m benchmarks.load` reads jobs as JSON lines and answers each with a result.

A closed loop over bare sockets: each connection sends its next request when the last reply is complete. A reply counts only where it is
complete and holds every word that it should; one of the basket only where its text, its thinking and its calls are those that were sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import re
import statistics
import sys
import time

import msgspec

from benchmarks import basket_replies
from benchmarks.canned import WORD

_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_CHUNKS_END = b"0\r\n\r\n"
_WORD = WORD.encode()
_PATIENCE_SECONDS = 90.0


class Named(msgspec.Struct, frozen=True):
    """A reply of the basket: the dialect that the client gets it in, its kind and its number."""

    dialect: str
    kind: str
    number: str


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """One request, and how many words its reply must hold, or which reply of the basket it must be."""

    path: str
    headers: dict[str, str]
    body: str
    words: int = 0
    named: Named | None = None

    def wire(self) -> bytes:
        """Return the request's bytes."""
        body = self.body.encode()
        fields = {"host": "127.0.0.1", "content-type": "application/json", "content-length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in {**fields, **self.headers}.items())
        return f"POST {self.path} HTTP/1.1\r\n{head}\r\n".encode() + body


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Requests to be sent in turn: for `seconds`, and at least `least` of them.

    `rate` is how many are due in a second, whether those before are answered or not: a request that waits for a connection is late, and its
    time counts from when it was due. 0: each connection sends its next request when it has the last reply. `pace` are the seconds from one
    event of a reply to the next, where it is to be known how late events come; 0 where it is not.
    """

    port: int
    asked: tuple[Asked, ...]
    concurrency: int = 1
    rate: float = 0.0
    seconds: float = 0.0
    least: int = 1
    pace: float = 0.0


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """Times of many requests, in microseconds."""

    p50: float = 0.0
    p99: float = 0.0


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a job. Failed requests are in no time."""

    requests: int
    failed: int
    first_failure: str
    seconds: float
    latency: Spread
    first_byte: Spread
    late: Spread = Spread()
    """How much later events came than the earliest of their stream lets expect."""


class Run:
    """One job while it runs."""

    def __init__(self, job: Job) -> None:
        self.wires = [(asked.wire(), asked) for asked in job.asked]
        self.replies: list[tuple[Named, bytes, bool, float, float]] = []
        self.latencies: list[float] = []
        self.first_bytes: list[float] = []
        self.late: list[float] = []
        self.pace = job.pace
        self.failures: list[str] = []
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._job = job
        self._started = 0
        self._open = job.concurrency
        self._began = time.perf_counter()

    def next(self) -> tuple[bytes, Asked] | None:
        """Return the next request, or None where it is over."""
        late = time.perf_counter() - self._began >= self._job.seconds
        if (late and self._started >= self._job.least) or len(self.failures) > self._job.concurrency:
            return None
        self._started += 1
        return self.wires[(self._started - 1) % len(self.wires)]

    def due(self) -> float:
        """Return when the request that was taken last is to be sent, by `time.perf_counter`; 0 for at once."""
        return self._began + (self._started - 1) / self._job.rate if self._job.rate else 0.0

    def left(self) -> None:
        """Note that a connection has nothing more to do."""
        self._open -= 1
        if self._open == 0 and not self.done.done():
            self.done.set_result(None)

    def result(self) -> Result:
        """Return what the job gave. Replies of the basket are read here, when nothing is under way."""
        seconds = time.perf_counter() - self._began
        for named, sent, is_chunked, latency, first_byte in self.replies:
            body = without_chunks(sent) if is_chunked else sent
            problem = basket_replies.problem_of(named.kind, named.number, named.dialect, body)
            if problem:
                start = body[:200].decode(errors="replace")
                self.failures.append(f"the reply {named.kind!r} is not what was sent: {problem}; it begins {start!r}")
            else:
                self.latencies.append(latency)
                self.first_bytes.append(first_byte)
        return Result(
            requests=len(self.latencies),
            failed=len(self.failures),
            first_failure=self.failures[0] if self.failures else "",
            seconds=seconds,
            latency=spread(self.latencies),
            first_byte=spread(self.first_bytes),
            late=spread(self.late),
        )


def spread(seconds: list[float]) -> Spread:
    """Return median and 99th percentile, in microseconds."""
    if not seconds:
        return Spread()
    ranked = sorted(seconds)
    return Spread(p50=statistics.median(ranked) * 1e6, p99=ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))] * 1e6)


class Connection(asyncio.Protocol):
    """One keep-alive connection of a run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._pieces: list[bytes] = []
        self._size = 0
        self._head = 0
        self._length: int | None = None
        self._asked = run.wires[0][1]
        self._waiting = False
        self._events: list[float] = []
        self._sent_at = self._first_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def data_received(self, data: bytes) -> None:
        now = time.perf_counter()
        self._pieces.append(data)
        self._size += len(data)
        if self._run.pace:
            self._events += [now] * data.count(_WORD)
        if not self._head and not self._read_head():
            return
        if not self._first_at and self._size > self._head:
            self._first_at = now
        if self._complete(data):
            self._take(now)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting:
            self._run.failures.append(f"the connection closed after {self._size} bytes")
        self._run.left()

    def _send(self) -> None:
        following = self._run.next()
        if following is None:
            self._transport.close()
            return
        wire, self._asked = following
        self._pieces, self._size, self._head, self._length = [], 0, 0, None
        due = self._run.due()
        wait = due - time.perf_counter()
        if wait > 0:
            asyncio.get_running_loop().call_later(wait, self._write, wire, due)
        else:
            self._write(wire, due)

    def _write(self, wire: bytes, due: float) -> None:
        self._waiting, self._first_at, self._sent_at = True, 0.0, due or time.perf_counter()
        self._transport.write(wire)

    def _read_head(self) -> bool:
        joined = b"".join(self._pieces)
        end = joined.find(b"\r\n\r\n")
        if end < 0:
            return False
        length = _LENGTH.search(joined, 0, end + 2)
        self._pieces, self._head = [joined], end + 4
        self._length = int(length[1]) if length else None
        return True

    def _complete(self, data: bytes) -> bool:
        if self._length is not None:
            return self._size >= self._head + self._length
        # The last chunk's mark can come in two reads.
        tail = data if len(data) >= len(_CHUNKS_END) else b"".join(self._pieces[-len(_CHUNKS_END) :])
        return tail.endswith(_CHUNKS_END) and self._size > self._head

    def _take(self, now: float) -> None:
        self._waiting = False
        reply = b"".join(self._pieces)
        times = now - self._sent_at, self._first_at - self._sent_at
        if problem := self._count(reply):
            start = reply[:300].decode(errors="replace")
            self._run.failures.append(f"{problem} in a reply that begins {start!r}")
        elif self._asked.named is not None:
            self._run.replies.append((self._asked.named, reply[self._head :], self._length is None, *times))
        else:
            self._run.latencies.append(times[0])
            self._run.first_bytes.append(times[1])
            shifted = [came - place * self._run.pace for place, came in enumerate(self._events)]
            self._run.late += [one - min(shifted) for one in shifted] if shifted else []
        self._events = []
        self._send()

    def _count(self, reply: bytes) -> str:
        """Return what is wrong with the head of a reply, or with the number of its words; empty where nothing is."""
        wanted = self._asked.words
        found = reply.count(_WORD)
        if found != wanted and self._length is None:
            found = without_chunks(reply[self._head :]).count(_WORD)
        return "" if reply.startswith(b"HTTP/1.1 200") and found == wanted else f"{found} of {wanted} words"


def without_chunks(body: bytes) -> bytes:
    """Return a body without HTTP's chunk sizes: a gateway may cut anywhere, in the middle of a word too."""
    pieces, place = [], 0
    while (line_end := body.find(b"\r\n", place)) >= 0:
        length = int(body[place:line_end].partition(b";")[0], 16)
        pieces.append(body[line_end + 2 : line_end + 2 + length])
        place = line_end + 2 + length + 2
    return b"".join(pieces)


async def execute(job: Job) -> Result:
    """Run one job to its end."""
    run = Run(job)
    loop = asyncio.get_running_loop()
    try:
        opening = (
            loop.create_connection(lambda: Connection(run), "127.0.0.1", job.port) for _ in range(job.concurrency)
        )
        transports = [transport for transport, _ in await asyncio.gather(*opening)]
    except OSError as problem:
        run.failures.append(f"no connection: {problem}")
        return run.result()
    try:
        await asyncio.wait_for(run.done, job.seconds + _PATIENCE_SECONDS + job.least * 0.05)
    except TimeoutError:
        run.failures.append("the job took too long")
    result = run.result()
    for transport in transports:
        transport.abort()
    return result


def main() -> None:
    """Answer jobs until the input ends."""
    gc.disable()
    with contextlib.suppress(BrokenPipeError):
        for line in sys.stdin:
            result = asyncio.run(execute(msgspec.json.decode(line, type=Job)))
            print(msgspec.json.encode(result).decode(), flush=True)
            gc.collect()


if __name__ == "__main__":
    main()
