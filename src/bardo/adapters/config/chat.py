"""`[telegram]` and `[discord]`: who may use the bots of bardo, which model answers them, and how much they may ask."""

from __future__ import annotations

import re
from typing import Annotated

import msgspec

from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import nanos_of_usd
from bardo.adapters.config.mistakes import Place
from bardo.adapters.config.providers import is_http_address
from bardo.dialects.shared.options import policy_of
from bardo.values.errors import ConfigError, InvalidRequest

Id = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Turns = Annotated[int, msgspec.Meta(ge=0, le=1000)]
Rate = Annotated[int, msgspec.Meta(ge=0, le=10_000)]
Money = Annotated[float, msgspec.Meta(ge=0, le=1e6)]
EditSeconds = Annotated[float, msgspec.Meta(ge=0.2, le=60)]
Megabytes = Annotated[int, msgspec.Meta(ge=0, le=20)]

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class ChatSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of the bot of any chat service. `allowed_users` and its like are an allow list: without one the bot does not start.

    `models` may be chosen beside `model`. `requests_per_minute` and `usd_per_day` hold for each user; 0 is no bound. `history` is how many
    earlier questions and answers of a conversation are sent along. `edit_seconds` is the least time between two edits of an answer.
    """

    token_env: str
    model: str = ""
    models: tuple[str, ...] = ()
    system: str = ""
    reasoning: str = ""
    allowed_users: tuple[Id, ...] = ()
    open_to_all: bool = False
    requests_per_minute: Rate = 10
    usd_per_day: Money = 1.0
    history: Turns = 20
    edit_seconds: EditSeconds = 2.0
    max_picture_megabytes: Megabytes = 5
    api_url: str = ""

    @property
    def limits(self) -> KeyLimits:
        """The limits of the calls of one user."""
        return KeyLimits(
            requests_per_minute=self.requests_per_minute or None,
            usd_per_day=nanos_of_usd(self.usd_per_day) if self.usd_per_day else None,
        )

    @property
    def allowed(self) -> tuple[Id, ...]:
        """Every id of the allow list."""
        return self.allowed_users


class TelegramSettings(ChatSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bot of `bardo telegram`. A message is answered where its user or its chat is allowed."""

    token_env: str = "TELEGRAM_BOT_TOKEN"
    allowed_chats: tuple[Id, ...] = ()

    @property
    def allowed(self) -> tuple[Id, ...]:
        """Every id of the allow list."""
        return (*self.allowed_users, *self.allowed_chats)


class DiscordSettings(ChatSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The bot of `bardo discord`. A message is answered where its user, its server or its channel is allowed."""

    token_env: str = "DISCORD_BOT_TOKEN"
    allowed_guilds: tuple[Id, ...] = ()
    allowed_channels: tuple[Id, ...] = ()

    @property
    def allowed(self) -> tuple[Id, ...]:
        """Every id of the allow list."""
        return (*self.allowed_users, *self.allowed_guilds, *self.allowed_channels)


def check_chat(chat: ChatSettings, place: Place) -> None:
    """Raise ConfigError naming the line of what makes no sense."""
    if not _VARIABLE.fullmatch(chat.token_env):
        hint = "the token does not stand in the file: put it into a variable, and write the variable's name"
        raise ConfigError(f"{place.of('token_env')}: token_env does not name an environment variable", hint=hint)
    if chat.api_url and not is_http_address(chat.api_url):
        hint = 'write it as "https://host/path", or leave it out for the service\'s own'
        raise ConfigError(f"{place.of('api_url')}: api_url is no http(s) address", hint=hint)
    if chat.open_to_all and chat.allowed:
        hint = "leave out open_to_all, or the list of who is allowed"
        raise ConfigError(f"{place.of('open_to_all')}: the bot is open to all and has an allow list", hint=hint)
    if chat.reasoning:
        try:
            policy_of(chat.reasoning, "reasoning")
        except InvalidRequest as problem:
            raise ConfigError(f"{place.of('reasoning')}: {problem.message}", hint=problem.hint) from problem
