"""bardo's own application with one more endpoint, which tells at which stage the process was found. For the stage table only.

A signal comes every few milliseconds of processor time, and the stack of the event loop's thread says which stage runs. What other threads
used, the log's above all, is told apart from it. The timer is not ITIMER_PROF, which the gateway's own watchdog sets anew twice a second.
"""

from __future__ import annotations

import json
import signal
import time
from collections import defaultdict
from types import FrameType

from bardo.surfaces.gateway.http import Receive, Scope, Send
from bardo.surfaces.gateway.main import create_app as create_gateway

PATH = "/bench/stages"
_SECONDS = 0.001
OTHER, THREADS = "other", "log, in its thread"

# The first that is found from the innermost frame outwards: a part of a file's path, and a function where not all of the file counts.
PLACES: tuple[tuple[str, str, str], ...] = (
    ("/bardo/server/", "", "server"),
    ("/gateway/http.py", "read_body", "decode"),
    ("/gateway/http.py", "", "encode"),
    ("/gateway/answer.py", "run_until_disconnect", "call"),
    ("/gateway/answer.py", "", "encode"),
    ("/gateway/context.py", "", "decode"),
    ("/gateway/callers.py", "", "decode"),
    ("/gateway/routes.py", "", "decode"),
    ("/dialects/", "decode_request", "decode"),
    ("/dialects/", "encode_request", "plan"),
    ("/dialects/", "encode_response", "encode"),
    ("/reply_out.py", "", "encode"),
    ("/replies/receipt.py", "receipt", "log"),
    ("/replies/receipt.py", "", "encode"),
    ("/stores/log/", "", "log"),
    ("/call/row.py", "", "log"),
    ("/services/facts/price_book.py", "", "log"),
    ("/stores/replay_store.py", "recall", "plan"),
    ("/stores/replay_store.py", "", "log"),
    ("/adapters/net/", "", "send"),
    ("/call/upstream.py", "_send", "send"),
    ("/call/upstream.py", "send_wire", "send"),
    ("/call/upstream.py", "", "reply"),
    ("/bardo/replies/", "", "reply"),
    ("/values/fold.py", "", "reply"),
    ("/bardo/planning/", "", "plan"),
    ("/services/facts/directory.py", "", "plan"),
    ("/services/facts/model_facts.py", "", "plan"),
    ("/facts/introspect/", "", "plan"),
    ("/bardo/services/", "", "call"),
    ("/bardo/adapters/", "", "call"),
    ("/bardo/call/", "", "call"),
    ("/surfaces/gateway/", "", "call"),
)
STAGES = tuple(dict.fromkeys(("server", "decode", "call", "plan", "send", "reply", "encode", "log", THREADS, OTHER)))


def stage_of(frame: FrameType | None) -> str:
    """Return which stage a stack is in."""
    while frame is not None:
        path, name = frame.f_code.co_filename, frame.f_code.co_name
        for part, function, stage in PLACES:
            if part in path and function in ("", name):
                return stage
        frame = frame.f_back
    return OTHER


def create_app() -> SampledApp:
    """Return the application of the configuration at hand."""
    return SampledApp()


class SampledApp:
    """The gateway, looked at. The first call of the endpoint begins, and each tells the seconds of each stage since the one before."""

    def __init__(self) -> None:
        self._app = create_gateway()
        self._seconds: dict[str, float] = defaultdict(float)
        self._looking = False
        self._seen = self._all = 0.0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] != PATH:
            await self._app(scope, receive, send)
            return
        told = json.dumps(self._tell()).encode()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": told})

    def _tell(self) -> dict[str, float]:
        if not self._looking:
            self._looking = True
            signal.signal(signal.SIGVTALRM, self._look)
            signal.setitimer(signal.ITIMER_VIRTUAL, _SECONDS, _SECONDS)
        own = sum(self._seconds.values())
        everything, self._all = time.process_time() - self._all, time.process_time()
        told = {**self._seconds, THREADS: max(0.0, everything - own)}
        self._seconds.clear()
        self._seen = time.thread_time()
        return told

    def _look(self, _number: int, frame: FrameType | None) -> None:
        now = time.thread_time()
        self._seconds[stage_of(frame)] += now - self._seen
        self._seen = now
