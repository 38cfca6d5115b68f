"""Mixed load for the soak and for chaos, in a process of its own: whole, streamed, with tools, typed, mistaken, left.

`python -m benchmarks.mixed_client` reads one job as a JSON line, answers with a result, and reads the next. Of each request it says what
the client saw: a whole reply, an error that says so, a connection that broke, or a reply that ended as if it were whole and was not.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

import msgspec

_ID = re.compile(rb"\r\nx-bardo-request-id: ([^\r]+)\r\n", re.IGNORECASE)
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_PATIENCE_SECONDS = 60.0
_TOOL = {
    "type": "function",
    "function": {"name": "tide_at", "parameters": {"type": "object", "properties": {"port": {"type": "string"}}}},
}
_SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
    "additionalProperties": False,
}
KINDS = (
    "whole",
    "stream",
    "translated",
    "translated stream",
    "tools",
    "typed",
    "refused",
    "upstream error",
    "cut",
    "leave",
    "leave stream",
)
"""What is asked, in turn. `refused` is a mistake of the client; `cut` a stream that the provider breaks off."""


class MixedJob(msgspec.Struct, frozen=True, kw_only=True):
    """Requests to send. `seconds` ends the job before all `requests` are sent; 0: when they are sent."""

    port: int
    requests: int
    concurrency: int
    seed: int = 0
    seconds: float = 0.0
    keep_ids: bool = False


class MixedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What the clients saw: `ends` counts by kind and end, `answered` are the ids of calls with a whole reply or an error of a call."""

    sent: int
    ends: dict[str, int]
    answered: tuple[str, ...] = ()
    headed: tuple[str, ...] = ()
    quiet: tuple[str, ...] = ()


def body_of(kind: str) -> tuple[str, bytes]:
    """Return the path and the body of one kind of request."""
    model = {"upstream error": "p/m1+fault:status=500", "cut": "p/m1+fault:cut=2"}.get(kind, "p/m1")
    fields: dict[str, Any] = {
        "model": model,
        "max_tokens": 200,
        "messages": [{"role": "user", "content": "When does the tide turn?"}],
    }
    if kind in ("stream", "translated stream", "cut", "leave stream"):
        fields["stream"] = True
    if kind == "tools":
        fields["tools"] = [_TOOL]
    if kind == "typed":
        fields["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "t", "schema": _SCHEMA, "strict": True},
        }
    if kind == "refused":
        fields["messages"] = "no list"
    path = "/v1/messages" if kind.startswith("translated") else "/v1/chat/completions"
    return path, json.dumps(fields).encode()


def wire_of(kind: str) -> bytes:
    """Return one request as it is sent."""
    path, body = body_of(kind)
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    return head.encode() + body


class MixedClients:
    """Sends the requests of one job over as many connections as may be open together."""

    def __init__(self, job: MixedJob) -> None:
        self._job = job
        self._dice = random.Random(job.seed)
        self._wires = {kind: wire_of(kind) for kind in KINDS}
        self.sent = 0
        self.ends: Counter[str] = Counter()
        self.answered: list[str] = []
        self.headed: list[str] = []
        self.quiet: list[str] = []

    async def run(self) -> MixedResult:
        """Send all, and return what came."""
        self._end = asyncio.get_running_loop().time() + (self._job.seconds or 1e9)
        await asyncio.gather(*(self._one_after_another() for _ in range(self._job.concurrency)))
        return MixedResult(
            sent=self.sent,
            ends=dict(self.ends),
            answered=tuple(self.answered),
            headed=tuple(self.headed),
            quiet=tuple(self.quiet[:20]),
        )

    async def _one_after_another(self) -> None:
        line: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        while self.sent < self._job.requests and asyncio.get_running_loop().time() < self._end:
            kind = KINDS[self.sent % len(KINDS)]
            self.sent += 1
            try:
                line = line or await asyncio.open_connection("127.0.0.1", self._job.port)
                end, keeps = await asyncio.wait_for(self._ask(kind, *line), _PATIENCE_SECONDS)
            except TimeoutError:
                end, keeps = "no end in time", False
            except (OSError, EOFError) as problem:
                end, keeps = "connection broke", False
                if isinstance(problem, ConnectionRefusedError):
                    end = "not connected"
                    await asyncio.sleep(0.02)
            self.ends[f"{kind}: {end}"] += 1
            if not keeps and line is not None:
                line[1].close()
                line = None
        if line is not None:
            line[1].close()

    async def _ask(self, kind: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, bool]:
        writer.write(self._wires[kind])
        if kind == "leave" and self._dice.random() < 0.5:
            await asyncio.sleep(self._dice.random() * 0.004)
            return "left", False
        head = await reader.readuntil(b"\r\n\r\n")
        found = _ID.search(head)
        name = found[1].decode() if found else ""
        if self._job.keep_ids and name:
            self.headed.append(name)
        if kind.startswith("leave"):
            with suppress(EOFError, OSError):
                await reader.readexactly(self._dice.choice((0, 1, 40)))
            return "left", False
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1])) if length else await _chunks(reader)
        end = end_of(kind, int(head[9:12]), body)
        if end == "quietly cut":
            self.quiet.append(f"{kind}: {body[-200:]!r}")
        if self._job.keep_ids and name and end in ("whole", "error"):
            self.answered.append(name)
        return end, b"connection: close" not in head.lower()


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Return a body in chunks. Raises EOFError where it breaks off."""
    body = b""
    while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readuntil(b"\r\n")
    return body


def end_of(kind: str, status: int, body: bytes) -> str:
    """Return what a reply that HTTP says is whole is: whole, an error that says so, or quietly cut."""
    if status != 200:
        return "error" if b'"error"' in body else "quietly cut"
    if kind in ("stream", "cut", "leave stream"):
        if b'"error"' in body:
            return "error"
        return (
            "whole" if b"data: [DONE]" in body and b'"finish_reason":"' in body.replace(b": ", b":") else "quietly cut"
        )
    if kind == "translated stream":
        return "error" if b"event: error" in body else "whole" if b"event: message_stop" in body else "quietly cut"
    try:
        reply = json.loads(body)
    except ValueError:
        return "quietly cut"
    if "error" in reply:
        return "error"
    ends = reply.get("stop_reason") or (reply.get("choices") or [{}])[0].get("finish_reason")
    return "whole" if ends else "quietly cut"


def main() -> None:
    """Answer jobs until the input ends."""
    for line in sys.stdin:
        result = asyncio.run(MixedClients(msgspec.json.decode(line, type=MixedJob)).run())
        print(msgspec.json.encode(result).decode(), flush=True)


if __name__ == "__main__":
    main()
