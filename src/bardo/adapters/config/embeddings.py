"""`[inference.embeddings]` of `bardo.toml`: who makes the vectors by which layers and the reasoning memory compare texts."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Annotated

import msgspec

from bardo.adapters.config.problems import Place
from bardo.adapters.config.providers import ProviderEntry, provider_ids, provider_of
from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.values.errors import ConfigError

LOCAL = "local"
"""The provider that stands for this machine: the table that ships, or the model of `[inference.pipeline] embedding`."""
VENICE = "venice"


class EmbeddingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who makes vectors of texts (003, "Venice embeddings for the Grimoire").

    `provider` is `local`, or the id of a provider that makes vectors, with `model`; for Venice `venice_model` holds where no `model` is
    named. Vectors that take longer than `seconds` are made on this machine, and so are those of a provider that fails.
    """

    provider: str = LOCAL
    model: str = ""
    venice_model: str = "text-embedding-bge-m3"
    seconds: Annotated[float, msgspec.Meta(gt=0, le=300)] = 2.0


def model_asked(asked: EmbeddingSettings, providers: Sequence[ProviderEntry], source: str) -> str | None:
    """Return the model that is asked for vectors, with its provider (`venice/text-embedding-bge-m3`); None where no provider is."""
    if asked.provider == LOCAL:
        return None
    row = _row(asked.provider, providers, source)
    return f"{asked.provider}/{_model(asked, row)}"


def check_embeddings(
    asked: EmbeddingSettings, own_model: str, providers: Sequence[ProviderEntry], place: Place
) -> None:
    """Raise ConfigError for a provider that makes no vectors with the model that is named.

    `own_model` is the folder of a model of this machine, and `place` that of `[inference.embeddings]`.
    """
    if asked.provider == LOCAL:
        if asked.model:
            hint = f'name the provider that has it, as provider = "{VENICE}", or a folder with embedding below [inference.pipeline]'
            raise ConfigError(f'{place.of("model")}: provider = "{LOCAL}" asks no model of a provider', hint=hint)
        return
    if own_model:
        message = f"{place.of('provider')}: [inference.pipeline] embedding names a model of this machine, and provider another one"
        raise ConfigError(message, hint=f'leave one of them out; provider = "{LOCAL}" is the model of this machine')
    row = _row(asked.provider, providers, place.source)
    if row is None:
        known = (LOCAL, *provider_ids(providers))
        near = get_close_matches(asked.provider[:100], known, n=1)
        hint = (
            f"did you mean {near[0]!r}?" if near else f'write provider = "{LOCAL}", or add [[providers]] with this id'
        )
        raise ConfigError(f"{place.of('provider')}: no provider is called {asked.provider[:100]!r}", hint=hint)
    if not row.embeddings:
        hint = f'name one that does, as provider = "{VENICE}", or write "{LOCAL}"'
        raise ConfigError(f"{place.of('provider')}: {asked.provider} makes no vectors", hint=hint)
    model = _model(asked, row)
    key = "venice_model" if row.id == VENICE and not asked.model else "model"
    if not model:
        raise ConfigError(
            f"{place.of('provider')}: {asked.provider} needs a {key} that makes vectors", hint=_models(row)
        )
    if row.embeds(model) is None:
        raise ConfigError(f"{place.of(key)}: {asked.provider} makes no vectors with {model[:100]!r}", hint=_models(row))


def _model(asked: EmbeddingSettings, row: ProviderRow | None) -> str:
    return asked.model or (asked.venice_model if row is not None and row.id == VENICE else "")


def _row(provider: str, entries: Sequence[ProviderEntry], source: str) -> ProviderRow | None:
    """Return the row of a provider of the file, or where the file has none, of the catalog."""
    if not entries:
        return builtin().provider(provider)
    return next((provider_of(entry, source).row for entry in entries if entry.id == provider), None)


def _models(row: ProviderRow) -> str:
    globs = [glob for endpoint in row.embeddings for glob in endpoint.models if glob != "*"]
    return (
        f"its models for vectors are called {', '.join(globs)}"
        if globs
        else 'write model = "…" with the name that it has there'
    )
