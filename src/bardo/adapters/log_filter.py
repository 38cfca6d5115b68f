"""Keep secrets and control characters out of the lines that bardo, and the server it runs in, write through `logging`.

Tracebacks quote what they failed at, and messages quote providers and clients; the lines go to a terminal as they are.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from bardo.values.error_cleaning import printable
from bardo.values.secrets import NO_SECRETS, Secrets, secrets_of

LOGGERS = (
    "bardo",
    "bardo.agent",
    "bardo.batches",
    "bardo.cache",
    "bardo.caching",
    "bardo.catalog",
    "bardo.chat",
    "bardo.control",
    "bardo.directory",
    "bardo.embeddings",
    "bardo.gateway",
    "bardo.health",
    "bardo.introspection",
    "bardo.keys",
    "bardo.log",
    "bardo.memory",
    "bardo.payments",
    "bardo.pipeline",
    "bardo.replay",
    "bardo.responses",
    "bardo.routing",
    "bardo.search",
    "bardo.server",
    "bardo.settings",
    "bardo.telemetry",
    "uvicorn",
    "uvicorn.error",
)
"""A filter sees only the lines of its own logger, so each of them gets it."""


class SecretHolder:
    """Something that knows secrets of this process: `call.services.Services`."""

    def secrets(self) -> Secrets:
        """Return them."""
        return secrets_of(())


class SecretFilter(logging.Filter):
    """Takes `known` secrets and those of its holders, and what could play with a terminal, out of each line."""

    def __init__(self, known: Secrets = NO_SECRETS) -> None:
        super().__init__()
        self._known = known
        self._holders: weakref.WeakSet[SecretHolder] = weakref.WeakSet()

    def add(self, holder: SecretHolder) -> None:
        """Take out the secrets of `holder` too, as long as it lives."""
        self._holders.add(holder)

    def filter(self, record: logging.LogRecord) -> bool:
        """Change the record where it holds a secret or a control character. Every record passes."""
        known = [self._known, secrets_of(known_values()), *(holder.secrets() for holder in list(self._holders))]
        message = record.getMessage()
        cleaned = _cleaned(message, known)
        if cleaned != message:
            record.msg, record.args = cleaned, ()
        if record.exc_info and not record.exc_text:
            # Formatters take what stands here for the formatted exception.
            record.exc_text = _cleaned(logging.Formatter().formatException(record.exc_info), known)
        return True


def know(values: Iterable[str]) -> None:
    """Keep these secrets of the configuration out of the log, and out of the errors of commands, from now on."""
    _VALUES.update(values)


def known_values() -> tuple[str, ...]:
    """Return the secrets of the configurations that this process has read."""
    return tuple(sorted(_VALUES))


def cover(holder: SecretHolder) -> None:
    """Keep what `holder` knows out of the log from now on."""
    _FILTER.add(holder)
    clean_log_lines()


def clean_log_lines() -> None:
    """Keep control characters, and what has the shape of a key, out of the log from now on."""
    for name in LOGGERS:
        logging.getLogger(name).addFilter(_FILTER)  # Adding it once more changes nothing.


@contextmanager
def filtered_output(names: Iterable[str], level: int) -> Iterator[None]:
    """Have the loggers of libraries, and all below them, write to stderr through this filter and nowhere else, from `level` on."""
    handler = logging.StreamHandler()
    handler.addFilter(_FILTER)
    loggers = [logging.getLogger(name) for name in names]
    before = [(logger.level, logger.propagate) for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(level)
        logger.propagate = False
    try:
        yield
    finally:
        for logger, (old_level, propagate) in zip(loggers, before, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(old_level)
            logger.propagate = propagate


def _cleaned(text: str, known: Iterable[Secrets]) -> str:
    for secrets in known:
        text = secrets.in_text(text)
    return printable(text)


_FILTER = SecretFilter()
_VALUES: set[str] = set()
