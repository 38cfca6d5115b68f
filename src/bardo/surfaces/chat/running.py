"""What the commands of all bots have in common: the token, the allow list, Ctrl-C, and the answers of bardo's engine in this process.

Each user of a chat has an account with limits, and rows in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence

from bardo.adapters.config.accounts import Account
from bardo.adapters.config.chat import ChatSettings
from bardo.adapters.config.settings import Settings
from bardo.adapters.log_filter import SecretHolder, cover, filtered_output
from bardo.adapters.net.keys import Keyring
from bardo.services.accounts.opening import open_limits
from bardo.services.facts.model_list import first_model
from bardo.surfaces.library.asking import Options, build_request
from bardo.surfaces.library.stream import AsyncReplyStream
from bardo.surfaces.render.console import print_stderr
from bardo.values.errors import ConfigError
from bardo.values.request import Message
from bardo.values.response import Response
from bardo.values.secrets import Secrets
from bardo.wiring import assemble

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class BotTokenFilter(SecretHolder):
    """Knows the token of a bot, so that no line of the log holds it. Keep it as long as the bot runs."""

    def __init__(self, token: str) -> None:
        self._secrets = Secrets([token])

    def secrets(self) -> Secrets:
        """Return the token."""
        return self._secrets


def token_of(settings: ChatSettings, service: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the token of a bot. Raises ConfigError where there is none."""
    environment = os.environ if environment is None else environment
    token = environment.get(settings.token_env, "").strip()
    if not token:
        hint = f"run `export {settings.token_env}=…` in the shell"
        raise ConfigError(f"{settings.token_env} is not set: {service} needs the token of a bot", hint=hint)
    return token


def check_audience(settings: ChatSettings, service: str, lists: str) -> None:
    """Raise ConfigError where nobody may use the bot. `lists` are the keys of its allow list."""
    if not settings.open_to_all and not settings.allowed:
        hint = f"give {lists} under [{service}], or open_to_all = true for a bot that spends your money for anybody"
        raise ConfigError("nobody may use the bot: it has no allow list", hint=hint)


def run_until_stopped(
    serve: Callable[[asyncio.Event], Awaitable[None]], *, token: str, libraries: tuple[str, ...]
) -> None:
    """Run a bot until SIGINT or SIGTERM; `serve` gets the event that says so. `libraries` are loggers that may see the token."""
    holder = BotTokenFilter(token)
    cover(holder)
    with filtered_output(libraries, logging.WARNING):
        asyncio.run(_run(serve))


async def _run(serve: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end() -> None:
        print_stderr("bardo: the bot stops")
        stop.set()

    for number in _SIGNALS:
        # Where an event loop takes no signals (Windows), Ctrl-C cancels.
        with contextlib.suppress(NotImplementedError):
            loop.add_signal_handler(number, end)
    await serve(stop)


class ChatEngine:
    """Asks models for the users of one chat `service`. Use it as a context manager, in one event loop. Raises ConfigError."""

    def __init__(
        self, settings: Settings, chat: ChatSettings, service: str, environment: Mapping[str, str] | None = None
    ) -> None:
        if chat.usd_per_day and not settings.log.enabled:
            hint = "set enabled = true under [log], or usd_per_day = 0 for no budget"
            raise ConfigError(f"[{service}] has a budget, and the log is off: nobody knows what is spent", hint=hint)
        self._chat = chat
        self._service = service
        self._limits = chat.limits
        self._keyring = Keyring(environment)
        self._accounts = open_limits(settings, environment)
        try:
            self._assembly = assemble(settings, environment=environment, accounts=self._accounts)
        except BaseException:
            self._accounts.close()
            raise
        self._accounts.use_log(self._assembly.log)
        self.model = chat.model
        """The model that answers where a user chose no other."""

    async def __aenter__(self) -> ChatEngine:
        services = self._assembly.services
        self._accounts.start()
        self._assembly.start()
        try:
            if not services.directory.providers:
                await services.directory.add_local()
            if not self.model:
                self.model = await first_model(services.directory, self._keyring)
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close connections and the log, and store what calls have taken."""
        await self._assembly.close()
        await self._accounts.stop()

    def stream(
        self, prompt: Sequence[Message | Response], *, user: str, session: str, model: str = ""
    ) -> AsyncReplyStream:
        """Return the reply to a conversation as it arrives. Raises BardoError when entered."""
        options: Options = {"system": self._chat.system, "session": session}
        if self._chat.reasoning:
            options["reasoning"] = self._chat.reasoning
        request = build_request(prompt, model or self.model, options, stream=True)
        return AsyncReplyStream(lambda: self._assembly.services, request, account=self._account(user))

    def _account(self, user: str) -> Account:
        """Return the account of a user: what the log, limits and budgets know the calls by."""
        name = f"{self._service}:{user}"
        # Every user has a budget, so that models without a price would be refused to all.
        limits = self._limits
        return Account(id=name, name=name, tenant=name, tags=(self._service,), limits=limits, unknown_cost="estimate")
