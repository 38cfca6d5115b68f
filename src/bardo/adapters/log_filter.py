"""Keep secrets and control characters out of the lines that bardo, and the server it runs in, write through `logging`.

Tracebacks quote what they failed at, and messages quote providers and clients; the lines go to a terminal as they are, or become lines
of JSON.
"""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from bardo.values.error_cleaning import printable
from bardo.values.secrets import NO_SECRETS, Secrets, secrets_of

_FIELDS = ("request_id", "provider", "model", "field", "shutdown")
"""The fields of lines beside their message."""


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
    "bardo.sealing",
    "bardo.search",
    "bardo.server",
    "bardo.server.websocket",
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
        secrets = [self._known, secrets_of(configured_secrets()), *(holder.secrets() for holder in list(self._holders))]
        message = record.getMessage()
        cleaned = _cleaned(message, secrets)
        if cleaned != message:
            record.msg, record.args = cleaned, ()
        if record.exc_info and not record.exc_text:
            # Formatters take what stands here for the formatted exception.
            record.exc_text = _cleaned(logging.Formatter().formatException(record.exc_info), secrets)
        return True


def know(values: Iterable[str]) -> None:
    """Keep these secrets of the configuration out of the log, and out of the errors of commands, from now on."""
    _VALUES.update(values)


def configured_secrets() -> tuple[str, ...]:
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


def _cleaned(text: str, all_secrets: Iterable[Secrets]) -> str:
    for secrets in all_secrets:
        text = secrets.in_text(text)
    return printable(text)


class JsonFormatter(logging.Formatter):
    """Writes a record as one line of JSON: time (UTC), level, logger, message, what the line is about, and the exception."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: str(value) for name in _FIELDS if (value := getattr(record, name, None)) is not None}
        if record.exc_info or record.exc_text:
            line["exception"] = record.exc_text or self.formatException(record.exc_info or (None, None, None))
        return msgspec.json.encode(line).decode()


def write_json_logs() -> None:
    """Have every line of this process written as JSON, to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter())
    for logger in (logging.getLogger(), logging.getLogger("uvicorn")):
        logger.handlers = [handler]


_FILTER = SecretFilter()
_VALUES: set[str] = set()
