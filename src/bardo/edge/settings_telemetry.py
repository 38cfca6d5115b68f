"""`[telemetry]`: what monitoring systems are told of calls."""

from __future__ import annotations

from typing import Literal

import msgspec


class TelemetrySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`metrics`: Prometheus finds them at /metrics. `otlp` is the address of a collector, to which spans and metrics go by OTLP over HTTP.

    `service` is what this process is called there. `logs` is the form of the lines that bardo writes to its standard error.
    """

    metrics: bool = False
    otlp: str = ""
    service: str = "bardo"
    logs: Literal["text", "json"] = "text"
