"""Which model at which provider a command means."""

from __future__ import annotations

from bardo.planning.route import Provider, Target, resolve, target_at
from bardo.services.facts.directory import ProviderDirectory
from bardo.surfaces.presets import provider_named, target_unconfigured
from bardo.values.errors import InvalidRequest, UnknownModel


async def target_named(model: str, provider: str, directory: ProviderDirectory, *, discovers: bool = True) -> Target:
    """Return the target of a model's name, or of the name at the provider that is given: a configured one, or a preset.

    Where nobody is configured for the model, the catalog's own provider of such names is meant. `discovers`: providers may be asked for
    their lists. Raises UnknownModel or InvalidRequest.
    """
    if provider:
        return target_at(_row_with_address(provider, directory), model)
    try:
        return (await directory.targets(model) if discovers else resolve(model, directory.providers))[0]
    except UnknownModel as problem:
        return target_unconfigured(model, directory.providers, problem)


def _row_with_address(name: str, directory: ProviderDirectory) -> Provider:
    found = provider_named(name, directory.providers, param="--provider")
    if not found.base_url:
        hint = "its address differs from user to user: configure it in bardo.toml"
        raise InvalidRequest(f"no provider is called {name!r}", hint=hint, param="--provider")
    return found
