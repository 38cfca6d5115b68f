"""`bardo discord`: a Discord bot that models answer."""

from __future__ import annotations

import asyncio
import warnings
from functools import partial

import typer

from bardo.adapters.config.settings import Settings, load_settings
from bardo.surfaces.cli.options import Config
from bardo.surfaces.render.console import print_stderr
from bardo.values.errors import ConfigError
from bardo.values.request import how_to_install


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("discord", epilog="Example: bardo discord --config bardo.toml")(discord)


def discord(config: Config = None) -> None:
    """Answer the messages to a Discord bot until Ctrl-C. [discord] of the configuration says who may ask, and which model answers."""
    settings = load_settings(config)
    # Loaded here, because the library takes long to load.
    from bardo.surfaces.chat.running import check_audience, run_until_stopped, token_of

    check_audience(settings.discord, "discord", "allowed_users, allowed_guilds or allowed_channels")
    token = token_of(settings.discord, "Discord")
    try:
        # The library loads a module for sound that Python has deprecated.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            from bardo.surfaces.chat.discord_bot import LOGGERS
    except ImportError as problem:
        raise ConfigError(
            "the Discord bot needs discord.py", hint=f"install it: {how_to_install('discord')}"
        ) from problem
    run_until_stopped(partial(_serve, settings), token=token, libraries=LOGGERS)


async def _serve(settings: Settings, stop: asyncio.Event) -> None:
    from bardo.surfaces.chat.discord_bot import serve_discord

    await serve_discord(settings, stop, announce=lambda name: print_stderr(f"bardo: {name} listens; Ctrl-C stops it"))
