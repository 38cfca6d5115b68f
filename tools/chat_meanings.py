"""What the keys of `[telegram]` and `[discord]` mean."""

from __future__ import annotations

import msgspec

from bardo.adapters.config.chat import DiscordSettings, TelegramSettings

CHAT_TABLES: dict[str, type[msgspec.Struct]] = {"telegram": TelegramSettings, "discord": DiscordSettings}
_COMMON = {
    "token_env": "the variable that holds the bot's token",
    "model": "the model, alias or workload that answers; empty: the first that can be asked",
    "models": "further models that users may choose with `/model`",
    "system": "a system prompt",
    "reasoning": "how the model thinks: `off`, `auto`, a level; empty: as the provider has it",
    "allowed_users": "ids of users who may ask. See [run a chat bot](../how-to/run-a-chat-bot.md)",
    "open_to_all": "whether anybody may ask, at your cost; without it a bot that has no allow list does not start",
    "requests_per_minute": "how often each user may ask; 0 is no bound",
    "usd_per_day": "what the questions of each user may cost in a day (UTC), in US dollars; 0 is no bound",
    "history": "how many earlier questions and answers of a conversation are sent along",
    "edit_seconds": "the least time between two edits of an answer that grows",
    "max_picture_megabytes": "a larger picture is left out, and the user is told; 0 takes none",
    "api_url": "the address of another server of the same API; empty: the service's own",
}
CHAT_MEANINGS = {
    **{f"{table}.{key}": meaning for table in CHAT_TABLES for key, meaning in _COMMON.items()},
    "telegram.allowed_chats": "ids of groups and channels in which everybody may ask",
    "discord.allowed_guilds": "ids of servers in which everybody may ask",
    "discord.allowed_channels": "ids of channels in which, and in whose threads, everybody may ask",
}
