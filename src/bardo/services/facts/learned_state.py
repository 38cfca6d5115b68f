"""The file in which learned routing keeps what it knows: JSON, written whole beside its place and put there at once."""

from __future__ import annotations

import errno
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bardo.adapters.config.paths import named_path, what_is_no_file
from bardo.adapters.config.settings import Settings, default_log_path
from bardo.adapters.stores.database.set_aside import set_file_aside
from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.clusters import Embedding
from bardo.routing.learned.router import LearnedRouter, LearnedState
from bardo.values.errors import ConfigError

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
    """Return what the file holds, None where there is none.

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
    """Write the state. Raises OSError, also where something else than a file stands at `path`: it is left alone."""
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
