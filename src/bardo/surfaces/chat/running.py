"""What the commands of all bots have in common: the token, the allow list, Ctrl-C, and what libraries may write."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping

from bardo.adapters.config.chat import ChatSettings
from bardo.adapters.log_filter import SecretHolder, cover, filtered_output
from bardo.surfaces.render.console import print_stderr
from bardo.values.errors import ConfigError
from bardo.values.secrets import Secrets

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
