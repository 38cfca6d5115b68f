"""Start TensorZero's HTTP server out of its wheel and print its address. Run by the Python of its own virtual environment."""

from __future__ import annotations

import asyncio
import sys

from tensorzero.tensorzero import _start_http_gateway  # type: ignore[import-not-found]


async def _main() -> None:
    databases = {"clickhouse_url": None, "postgres_url": None, "valkey_url": None}
    gateway = await _start_http_gateway(config_file=sys.argv[1], async_setup=True, **databases)
    print(gateway.base_url, flush=True)
    await asyncio.Event().wait()


asyncio.run(_main())
