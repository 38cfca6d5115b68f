"""Learned routing in a running program: it learns from finished calls and feedback, and keeps its state in a file.

A call costs nothing more than counting: the file is written by a thread of its own, now and then and at the end. Processes that share the
file add to it what each has learned, and go on with both.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import tempfile
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bardo.adapters.config.paths import named_path, what_is_no_file
from bardo.adapters.config.settings import Settings, default_log_path
from bardo.adapters.stores.database.set_aside import set_file_aside
from bardo.adapters.stores.log.columns import MALFORMED_CALLS
from bardo.adapters.stores.log.row import LogRow
from bardo.embedding.static_embedding import shipped_embedding
from bardo.planning.learned_order import LearnedCall, prompt_of
from bardo.routing.learned.clusters import Embedding
from bardo.routing.learned.router import OTHER_ROUTES, Learned, LearnedRouter, LearnedState, Pending
from bardo.values.errors import ConfigError
from bardo.values.request import Request

MOST_BYTES = 64 * 1024 * 1024
_DAY = 86_400.0
_log = logging.getLogger("bardo.routing")


class UnreadableState(ConfigError):
    """The file of what routing has learned is damaged."""


def state_path(settings: Settings) -> Path:
    """Return where the state stands: where the configuration says, else beside the log's usual place."""
    named = settings.routing.learned.file
    return named_path(named) if named else default_log_path().with_name("routing.json")


def embedding_of(settings: Settings) -> Embedding:
    """Return the embedding by which requests are known: the model of `[routing] embedding`, or the table that ships. Raises ConfigError."""
    folder = settings.routing.embedding
    if not folder:
        return shipped_embedding()
    # Loaded for those who have a model of their own.
    from bardo.adapters.embedding.onnx_embedding import OnnxEmbedding

    return OnnxEmbedding(named_path(folder))


def load_state(path: Path, embedding: Embedding) -> LearnedState | None:
    """Return what the file holds, or None if there is none.

    Raises UnreadableState for a file that cannot be read or is of another form, ConfigError where it was made with another embedding.
    """
    hint = f"delete {path} to begin anew, or name another file in [routing.learned]"
    try:
        if what := what_is_no_file(path):
            raise UnreadableState(f"what routing has learned cannot be read from {path}: it is {what}", hint=hint)
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableState(f"{path} has more than {MOST_BYTES:,} bytes", hint=hint)
        state = msgspec.json.decode(path.read_bytes(), type=LearnedState)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as problem:
        raise UnreadableState(f"what routing has learned cannot be read from {path}: {problem}", hint=hint) from problem
    if state.clusters.embedding != embedding.fingerprint:
        fit = "fit it anew with `bardo routing fit FILE`, name the embedding that it was made with, or delete it"
        message = f"{path} was made with another embedding than the one that [routing] has now"
        raise ConfigError(message, hint=fit)
    return state


def store_state(state: LearnedState, path: Path) -> None:
    """Write the state. Raises OSError, also where something else than a file stands at `path`: it is left alone.

    The file is JSON, written whole beside its place and put there at once.
    """
    if what := what_is_no_file(path):
        raise OSError(errno.EINVAL, f"it is {what}")
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(state))
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Hold back other processes that change the state at `path`, so that none writes over what another has learned meanwhile."""
    try:
        import fcntl
    except ImportError:  # Windows, where several workers do not share a port either.
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside the state: its own file is replaced, and a folder may be locked by who sets a file of it aside.
    handle = os.open(path.with_name(f".{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def open_router(settings: Settings) -> LearnedRouter:
    """Return the router with the settings of `[routing.learned]` and what its file holds. Raises ConfigError."""
    embedding = embedding_of(settings)
    return _router(settings, embedding, load_state(state_path(settings), embedding))


def open_or_renew_router(settings: Settings) -> LearnedRouter:
    """Return the router as `open_router` does; a file that cannot be read is set aside, and the router begins anew.

    Raises ConfigError, also where the router needs clusters that somebody has to fit.
    """
    path, embedding = state_path(settings), embedding_of(settings)
    try:
        return _router(settings, embedding, load_state(path, embedding))
    except UnreadableState as problem:
        if embedding.fingerprint != shipped_embedding().fingerprint:
            raise
        try:
            aside = set_file_aside(path)
            _log.warning("%s; it is set aside as %s, and routing learns anew", problem.message, aside)
        except OSError as failure:
            _log.error("%s, and it cannot be set aside: %s", problem.message, failure.strerror or failure)
        return _router(settings, embedding, None)


def _router(settings: Settings, embedding: Embedding, state: LearnedState | None) -> LearnedRouter:
    learned = settings.routing.learned
    if state is None and embedding.fingerprint != shipped_embedding().fingerprint:
        message = f"no clusters were fitted with the embedding {settings.routing.embedding}: there is no {state_path(settings)}"
        hint = "fit them with `bardo routing fit FILE`, or leave out embedding under [routing]"
        raise ConfigError(message, hint=hint)
    return LearnedRouter(
        embedding,
        state,
        half_life=learned.half_life_days * _DAY,
        regret=learned.regret,
        comparison_share=learned.comparison_share,
    )


STORED_EVERY = 200
"""Outcomes."""
MOST_REMEMBERED = 4096
"""How many choices wait for feedback."""
_BY_CALLER = range(400, 500)
_BY_PROVIDER = (401, 402, 403, 404, 408, 409, 425, 429)


class LearnedRouting:
    """The router of a program, with its file."""

    def __init__(self, router: LearnedRouter, path: Path) -> None:
        self.router = router
        self._path = path
        self._recent: OrderedDict[str, Pending] = OrderedDict()
        self._unjudged: OrderedDict[str, LogRow | None] = OrderedDict()
        self._unstored: list[Learned] = []
        self._storing: list[Learned] | None = None
        self._writing: Future[LearnedState | None] | None = None
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bardo-routing")
        self._embedder = ThreadPoolExecutor(max_workers=1, thread_name_prefix="bardo-embedding")

    @classmethod
    def of(cls, settings: Settings) -> LearnedRouting:
        """Return the router of a configuration with what its file holds. Raises ConfigError."""
        return cls(open_or_renew_router(settings), state_path(settings))

    async def call(self, request: Request, request_id: str, at: float, workload: str) -> LearnedCall:
        """Return what a choice for one request needs. `at` is Unix time; `workload` is empty for a call that names none.

        A slow embedding runs in a thread, one request after the other.
        """
        shares = None
        if self.router.slow:
            loop = asyncio.get_running_loop()
            shares = await loop.run_in_executor(self._embedder, self.router.shares, prompt_of(request))
        route = workload or OTHER_ROUTES
        return LearnedCall(router=self.router, request_id=request_id, at=at, route=route, shares=shares)

    def await_verdict(self, request_id: str) -> None:
        """Count an answer of this call only when `judge` has said whether it is good enough."""
        self._unjudged[request_id] = None
        if len(self._unjudged) > MOST_REMEMBERED:
            self._unjudged.popitem(last=False)

    def judge(self, request_id: str, *, good: bool) -> None:
        """Count the call whose verdict was awaited; an answer that is not good enough is a failure of its model."""
        row = self._unjudged.pop(request_id, None)
        if row is not None:
            self._count(row, rejected=not good)

    def note(self, row: LogRow) -> None:
        """Count what came of a finished call that was put to somebody by what was learned."""
        if row.outcome == "ok" and row.request_id in self._unjudged:
            self._unjudged[row.request_id] = row
            return
        self._unjudged.pop(row.request_id, None)
        self._count(row)

    def _count(self, row: LogRow, *, rejected: bool = False) -> None:
        pending = pending_of(row)
        success = None if pending is None else success_of(row, pending.choice.asked)
        success = 0.0 if rejected and success is not None else success
        if pending is None or success is None:
            return
        answered = f"{row.provider}/{row.model}" == pending.choice.asked
        at = row.started_at + row.seconds
        self._learn(Learned(pending, success, row.cost_usd if answered else None, at))
        self._recent[row.request_id] = pending
        if len(self._recent) > MOST_REMEMBERED:
            self._recent.popitem(last=False)
        if len(self._unstored) >= STORED_EVERY and self._storing is None:
            state = msgspec.json.encode(
                self.router.state
            )  # A copy, because calls go on counting while the thread writes.
            self._storing, self._unstored = self._unstored, []
            self._writing = self._writer.submit(self._store, self._storing, state)

    def correct(self, request_id: str, score: float, at: float) -> None:
        """Count feedback on one of the last calls. One that is no longer remembered, or was not learned from, changes nothing."""
        pending = self._recent.get(request_id)
        if pending is not None:
            self._learn(Learned(pending, score, None, at, is_feedback=True))

    def close(self) -> None:
        """Store what was learned since the last time, and end the threads."""
        self._embedder.shutdown()
        self._writer.shutdown()
        self._take_stored()
        if self._unstored:
            self._store(self._unstored, msgspec.json.encode(self.router.state))

    def _learn(self, learned: Learned) -> None:
        self._take_stored()
        self.router.take(learned)
        self._unstored.append(learned)
        del self._unstored[:-MOST_REMEMBERED]

    def _take_stored(self) -> None:
        """Take what other processes have stored, once the thread has written this one's to it."""
        if self._storing is None or self._writing is None or not self._writing.done():
            return
        merged, storing = self._writing.result(), self._storing
        self._storing = self._writing = None
        if merged is None:
            self._unstored = [*storing, *self._unstored][-MOST_REMEMBERED:]
        else:
            self.router.learn_again(merged, self._unstored)

    def _store(self, learned: Sequence[Learned], encoded: bytes) -> LearnedState | None:
        """Add what was learned to what the file holds by now, and return both, or None if it cannot be written.

        `kept` is all that this process knows, which is written where the file can no longer be read.
        """
        own = msgspec.json.decode(encoded, type=LearnedState)
        try:
            with alone_with(self._path):
                try:
                    stored = load_state(self._path, self.router.embedding) or LearnedState(clusters=own.clusters)
                except UnreadableState:
                    stored, learned = own, ()
                if stored.clusters != own.clusters:
                    raise ConfigError(f"{self._path} was fitted anew", hint="start bardo again to go on from it")
                merged = self.router.after(stored, learned)
                store_state(merged, self._path)
            return merged
        except ConfigError as problem:
            _log.warning("what routing has learned is not stored: %s", problem.message)
        except OSError as problem:
            _log.warning("what routing has learned could not be stored in %s: %s", self._path, problem)
        return None


def pending_of(row: LogRow) -> Pending | None:
    """Return the choice that a call's row in the log records, or None if it was not made by what was learned."""
    choice = (row.route or {}).get("learned")
    return None if choice is None else msgspec.convert(choice, Pending)


def has_unreadable_call(row: LogRow) -> bool:
    """Whether the model called a tool with arguments that are no JSON object, or in a form that no call could be read from."""
    if (row.route or {}).get(MALFORMED_CALLS):
        return True
    # The readers of calls in text give back as text what they cannot read.
    return any(lost.get("what") == "tool_calls" and lost.get("sent") == "text" for lost in row.degraded)


def success_of(row: LogRow, asked: str) -> float | None:
    """Return how the model that was asked first did, 1 or 0, or None if the call says nothing of it.

    A refusal, a cut answer, one that fits no schema and a call of a tool that cannot be read are failures; so is another model's answer,
    because the first one gave none. A call that its client left, or that no model can answer, says nothing.
    """
    if row.outcome == "cancelled":
        return None
    if f"{row.provider}/{row.model}" != asked:
        return 0.0 if row.outcome == "ok" else None
    if row.outcome == "ok":
        return float(row.finish_reason not in ("refusal", "content_filter", "length") and not has_unreadable_call(row))
    faulty = row.status in _BY_CALLER and row.status not in _BY_PROVIDER
    return None if faulty else 0.0
