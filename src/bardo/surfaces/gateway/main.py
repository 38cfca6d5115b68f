"""The gateway as a server process loads it: configured by `BARDO_CONFIG`, ./bardo.toml, or what is found."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from bardo.edge.accounts.call_gate import CallGate
from bardo.edge.accounts.opening import has_keys, open_accounts
from bardo.edge.assembly import Assembly, assemble
from bardo.edge.batches.service import BatchService
from bardo.edge.data_paths import log_path, state_path
from bardo.edge.preloading import preload
from bardo.edge.settings import Settings, load_settings
from bardo.edge.settings_gateway import check_bind
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.gateway.batch_items import read_item
from bardo.surfaces.gateway.panel import PanelLoader

_log = logging.getLogger("bardo.gateway")


def create_app() -> Gateway:
    """Return the application of the configuration at hand. Raises ConfigError."""
    settings = load_settings()
    if settings.telemetry.logs == "json":
        from bardo.edge.telemetry.json_logs import write_json_logs

        write_json_logs()
    check_bind(settings.gateway, has_keys=has_keys(settings))
    return gateway_of(settings)


def gateway_of(settings: Settings, environment: Mapping[str, str] | None = None) -> Gateway:
    """Return the application of `settings`, with an engine of its own that ends with it."""
    # First, because it starts no thread: nothing is left behind where keys and budgets are wrong.
    accounts = open_accounts(settings, environment)
    try:
        assembly = assemble(settings, environment=environment)
    except BaseException:
        if accounts is not None:
            accounts.close()
        raise
    runner = assembly.runner
    if accounts is not None:
        accounts.use_log(assembly.log)
        runner.gate = CallGate(accounts, runner.prices, settings.budgets, clock=runner.clock)

    batches = None
    if settings.batches.enabled:
        batches = BatchService(
            assembly.runner,
            settings.batches,
            state_path(settings, environment),
            read_item,
            log=assembly.log,
            log_path=log_path(settings, environment),
        )

    panel = PanelLoader(settings, environment) if settings.gateway.panel else None

    async def start() -> None:
        preload(settings.http.client)
        if accounts is not None:
            accounts.start()
        if not settings.providers:
            await assembly.runner.directory.add_local()
        assembly.start()
        if batches is not None:
            await batches.start()
        _announce(assembly)

    async def stop() -> None:
        if batches is not None:
            await batches.close()
        if panel is not None:
            panel.close()
        await assembly.close()
        if accounts is not None:
            await accounts.stop()

    return Gateway(
        runner,
        settings.gateway,
        responses=assembly.responses,
        feedback=assembly.feedback,
        batches=batches,
        panel=panel,
        start=start,
        accounts=accounts,
        stop=stop,
    )


def _announce(assembly: Assembly) -> None:
    providers = assembly.runner.directory.providers
    if providers:
        _log.info("providers: %s", ", ".join(provider.id for provider in providers))
    else:
        _log.warning("no provider: set a provider's key in the environment, or write a bardo.toml")
