"""Lines of `logging` as JSON, one object in a line, for programs that collect them.

Secrets and control characters were taken out of the message by the filter of bardo's loggers (`adapters/log_filter.py`).
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

import msgspec

_FIELDS = ("request_id", "provider", "model", "field", "shutdown")
"""What lines say beside their message, where they do."""


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
