"""`bardo telegram`: a Telegram bot that models answer."""

from __future__ import annotations

import asyncio
from functools import partial

import typer

from bardo.adapters.config.settings import Settings, load_settings
from bardo.surfaces.cli.options import Config
from bardo.surfaces.render.console import print_stderr
from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("telegram", epilog="Example: bardo telegram --config bardo.toml")(telegram)


def telegram(config: Config = None) -> None:
    """Answer the messages to a Telegram bot until Ctrl-C. [telegram] of the configuration says who may ask, and which model answers."""
    settings = load_settings(config)
    # Loaded here, because the library takes long to load.
    from bardo.surfaces.chat.running import check_audience, run_until_stopped, token_of

    check_audience(settings.telegram, "telegram", "allowed_users or allowed_chats")
    token = token_of(settings.telegram, "Telegram")
    try:
        from bardo.surfaces.chat.telegram_bot import LOGGERS
    except ImportError as problem:
        hint = f"install it: {how_to_install('telegram')}"
        raise ConfigError("the Telegram bot needs python-telegram-bot", hint=hint) from problem
    run_until_stopped(partial(_serve, settings), token=token, libraries=LOGGERS)


async def _serve(settings: Settings, stop: asyncio.Event) -> None:
    from bardo.surfaces.chat.telegram_bot import serve_telegram

    await serve_telegram(settings, stop, announce=lambda name: print_stderr(f"bardo: {name} listens; Ctrl-C stops it"))
