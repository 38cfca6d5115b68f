"""A gateway of one configuration: its application, its engine, its keys and its batches, which begin and end together."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from bardo.adapters.config.settings import Settings, log_path, state_path
from bardo.adapters.sealing import Sealer, open_sealer
from bardo.batches.service import BatchService
from bardo.services.accounts.accounts import Accounts
from bardo.services.accounts.opening import open_accounts
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.gateway.batches import read_item
from bardo.surfaces.gateway.context import PanelLoader
from bardo.wiring import Assembly, assemble, preload

_log = logging.getLogger("bardo.gateway")


class ConfiguredGateway:
    """The gateway that `settings` describe. `application` answers requests; it starts and stops all of it with the server's lifespan.

    `before` is the gateway of an earlier configuration, from which it takes over what calls left there, once `commit` was called.
    Raises ConfigError, DatabaseProblem and LogProblem; nothing that was opened is left behind then.
    """

    def __init__(
        self,
        settings: Settings,
        environment: Mapping[str, str] | None = None,
        *,
        before: ConfiguredGateway | None = None,
    ) -> None:
        self.settings = settings
        self._before = before
        # A key of this process alone is kept: what it has sealed is with clients.
        same = before is not None and _seal_key(before.settings) == _seal_key(settings)
        self._sealer: Sealer = before._sealer if before is not None and same else open_sealer(settings, environment)
        kept = before._accounts if before is not None and _same_accounts(before.settings, settings) else None
        # First, because it starts no thread: nothing is left behind where keys and budgets are wrong.
        self._accounts: Accounts | None = kept or open_accounts(settings, environment)
        self._kept_accounts = kept is not None
        self._gave_accounts = False
        try:
            earlier = None if before is None else before.assembly
            self.assembly: Assembly = assemble(
                settings, environment=environment, before=earlier, for_clients=True, accounts=self._accounts
            )
        except BaseException:
            self._close_new_accounts()
            raise
        if self._accounts is not None:
            self._accounts.use_log(self.assembly.log)
        self._batches = self._batch_service(environment)
        self._panel = PanelLoader(settings, environment) if settings.gateway.panel else None
        self.application: Gateway = Gateway(
            self.assembly.services,
            settings.gateway,
            responses=self.assembly.responses,
            feedback=self.assembly.feedback,
            batches=self._batches,
            panel=self._panel,
            memory=self.assembly.memory,
            sealer=self._sealer,
            accounts=self._accounts,
            before=None if before is None else before.application,
            start=self.start,
            stop=self.stop,
        )

    def _batch_service(self, environment: Mapping[str, str] | None) -> BatchService | None:
        if not self.settings.batches.enabled:
            return None
        return BatchService(
            self.assembly.services,
            self.settings.batches,
            state_path(self.settings, environment),
            partial(read_item, sealer=self._sealer),
            log=self.assembly.log,
            log_path=log_path(self.settings, environment),
        )

    async def start(self) -> None:
        """Begin what goes on beside the requests."""
        preload()
        if self.assembly.services.pipeline is not None:
            await self.assembly.services.pipeline.load()
        if self._accounts is not None and not self._kept_accounts:
            self._accounts.start()
        if not self.settings.providers:
            await self.assembly.services.directory.add_local()
        self.assembly.start()
        if self._batches is not None:
            await self._batches.start()
        providers = self.assembly.services.directory.providers
        if providers:
            _log.info("providers: %s", ", ".join(provider.id for provider in providers))
        else:
            _log.warning("no provider: set a provider's key in the environment, or write a bardo.toml")

    def take_over(self) -> None:
        """Replace the previous gateway: from now on, that one leaves shared resources open when it stops."""
        before, self._before = self._before, None
        assert before is not None
        self.assembly.lasting.commit()
        before._gave_accounts = self._kept_accounts

    async def end_batches(self) -> None:
        """End the work on batches. A later gateway goes on with them: two never work on the same ones."""
        batches, self._batches = self._batches, None
        if batches is not None:
            await batches.close()

    async def stop(self) -> None:
        """End what goes on beside the requests, and close all that no later gateway took over."""
        await self.end_batches()
        if self._panel is not None:
            self._panel.close()
        await self.assembly.close()
        if self._accounts is not None and not self._gave_accounts:
            await self._accounts.stop()

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered."""
        return not self.application.is_busy

    def abandon(self) -> None:
        """Close a gateway that never began; the one before it goes on."""
        self.assembly.lasting.abandon()
        self._close_new_accounts()

    def _close_new_accounts(self) -> None:
        if self._accounts is not None and not self._kept_accounts:
            self._accounts.close()


def _same_accounts(before: Settings, now: Settings) -> bool:
    """Return whether keys, and where they and what they spent are kept, are the same."""
    return (
        before.keys == now.keys
        and before.state == now.state
        and before.log == now.log
        and before.budgets == now.budgets
        and before.gateway.allow_unauthenticated == now.gateway.allow_unauthenticated
    )


def _seal_key(settings: Settings) -> tuple[object, ...]:
    """Return the settings that say where the key for sealing is."""
    return settings.responses.seal_key_env, settings.state, settings.log
