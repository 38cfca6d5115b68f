"""`[batches]`: which batches the gateway takes, how they are run, and how long they are kept."""

from __future__ import annotations

import msgspec

from bardo.edge.settings_gateway import Count, Seconds


class BatchSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which batches the gateway takes, how they are run, and how long they are kept. Sizes are bytes.

    `run_without_api`: items whose model nobody takes in batches are sent one by one, `concurrency` at once, after the calls of clients
    who wait. Jobs at providers hold at most `max_job_bytes`, and are asked for after `poll_seconds` and ever less often, up to every
    `max_poll_seconds`. A job that its provider may have taken, but did not confirm, is sent again only where it is not in the provider's
    list after `settling_seconds`. Files and finished batches are kept for `retention_seconds`.
    """

    enabled: bool = True
    run_without_api: bool = False
    concurrency: Count = 2
    poll_seconds: Seconds = 10.0
    max_poll_seconds: Seconds = 300.0
    settling_seconds: Seconds = 60.0
    max_file_bytes: Count = 200_000_000
    max_bytes_per_tenant: Count = 2_000_000_000
    max_items: Count = 50_000
    max_open_per_tenant: Count = 100
    max_job_bytes: Count = 32 * 1024 * 1024
    retention_seconds: Seconds = 30 * 24 * 3600.0
