"""`[memory]`: whether the thinking of calls is kept to be found again, for how long, and how much of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec

from bardo.values.errors import ConfigError

if TYPE_CHECKING:
    from bardo.edge.settings import Settings

Days = Annotated[float, msgspec.Meta(ge=0, le=36_500)]
Episodes = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
PIPELINE = "pipeline"
NO_EMBEDDING = "none"


class MemorySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The reasoning memory. It needs the log's content, which is the operator's consent to keep what is said.

    `retention_days` is 0 for no end, `retention_days_of` is for single tenants. Beyond `max_episodes` the oldest of those tenants that have
    the most are removed. `embedding` is `pipeline` (that of the layers), `none` (search by words only), or a folder with a model in ONNX.
    """

    enabled: bool = False
    retention_days: Days = 90.0
    retention_days_of: dict[str, Days] = {}
    max_episodes: Episodes = 100_000
    embedding: str = PIPELINE


def check_memory(settings: Settings) -> None:
    """Raise ConfigError where the memory is on and the log does not keep what is said."""
    if not settings.memory.enabled:
        return
    missing = "enabled" if not settings.log.enabled else "content" if not settings.log.content else ""
    if missing:
        where = f"{settings.source}: " if settings.source else ""
        raise ConfigError(
            f"{where}[memory] is on, and [log] {missing} is off: reasoning is kept only where content is",
            hint=f"set {missing} = true under [log], or enabled = false under [memory]",
        )


def embedding_folder(settings: Settings) -> str | None:
    """Return the folder of the model that makes vectors of episodes, empty for the table that ships, None where none are made."""
    named = settings.memory.embedding
    if named == NO_EMBEDDING:
        return None
    return settings.inference.pipeline.embedding if named in (PIPELINE, "") else named
