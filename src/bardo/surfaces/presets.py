"""Providers and models by the name a person gives them: those that are configured, then the catalog's, which need no configuration."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.catalog.load import builtin
from bardo.catalog.models import FoundModel, builtin_models
from bardo.catalog.rows import ProviderRow
from bardo.planning.route import Provider, Target, nearest_names, resolve, target_at
from bardo.services.facts.directory import ProviderDirectory
from bardo.values.errors import InvalidRequest, UnknownModel


def provider_named(name: str, configured: Sequence[Provider], *, param: str = "provider") -> Provider:
    """Return the provider `configured` under this id, else the preset so called, whose address may be empty.

    Raises InvalidRequest for another name; `param` is where the name was given.
    """
    held = {provider.id: provider for provider in configured}
    if name in held:
        return held[name]
    row = builtin().provider(name)
    if row is not None:
        return _preset(row)
    near = nearest_names(name, sorted({*held, *builtin().names()}))
    hint = f"did you mean {' or '.join(near)}?" if near else "`bardo catalog` shows all presets"
    raise InvalidRequest(f"no provider is called {name!r}", hint=hint, param=param)


def target_unconfigured(model: str, configured: Sequence[Provider], problem: UnknownModel) -> Target:
    """Return the catalog's target of a model that nobody is configured for: at the provider before its slash, or at the one of such names.

    Raises UnknownModel, with the nearest names, where there is none or the catalog knows no such model there. `problem` says why nobody
    configured has it.
    """
    prefix, slash, rest = model.partition("/")
    known = [*(provider.id for provider in configured), *builtin().names()]
    plain = prefix.replace("-", "").lower()
    # Makers are called so in the ids of relays: x-ai, mistralai, deepseek-ai.
    if slash and not any(plain.startswith(name.replace("-", "")) for name in known):
        near = nearest_names(prefix.lower(), known, cutoff=0.8)
        if near:
            raise UnknownModel(f"no provider is called {prefix!r}", hint=f"did you mean {near[0]}/{rest}?")
    named = builtin().provider(prefix) if rest else None
    row = named or builtin().serving(model)
    if row is None or not row.base_url:
        hint = problem.hint if configured else _hint(_near_known(model), "name the provider to ask with --provider")
        raise UnknownModel(problem.message, hint=hint)
    target = Target(provider=_preset(row), model=rest if named else model)
    source = builtin_models().sources.get(row.id)
    # A host that is named may have any model; one that is only guessed from the form of a name is said to have what is known.
    may_have_any = source is None or source.runs_weights or (source.host and named is not None)
    if builtin_models().find(row.id, target.model).row is None and not may_have_any:
        raise _unknown_at(target)
    return target


def check_known(target: Target, found: FoundModel) -> None:
    """Raise UnknownModel where a configured provider has no such model, as far as its list and the row that was `found` tell.

    Hosts and servers of their operators' own weights may have any, while nobody asked for their lists.
    """
    provider = target.provider
    source = builtin_models().sources.get(provider.row.id)
    is_maker = source is not None and not source.host and not source.runs_weights
    if provider.models:
        is_known = provider.lists(target.model) or found.how not in ("assumed", "unclassified")
    else:
        is_known = found.row is not None or not is_maker
    if not is_known:
        raise _unknown_at(target)


def _unknown_at(target: Target) -> UnknownModel:
    provider = target.provider
    listed = [f"{provider.id}/{name}" for name in nearest_names(target.model, sorted(set(provider.models)))]
    other = f"if {provider.id} has it all the same, name it with --provider {provider.id}"
    hint = _hint(listed or _near_known(target.model), other)
    return UnknownModel(f"{provider.id} is not known to have a model {target.model!r}", hint=hint)


def _near_known(model: str) -> list[str]:
    """Return the names of the catalog's models that are near to one."""
    globs = {glob.rstrip("*").rstrip("-") for row in builtin_models().rows for glob in row.match}
    globs = {glob for glob in globs if not set(glob) & set("*?[")}
    return nearest_names(model.rpartition("/")[2], sorted(globs), cutoff=0.75)


def _hint(near: Sequence[str], other: str) -> str:
    return f"did you mean {' or '.join(near)}? else {other}" if near else other


def _preset(row: ProviderRow) -> Provider:
    return Provider(id=row.id, row=row, base_url=row.base_url)


async def target_named(model: str, provider: str, directory: ProviderDirectory, *, discovers: bool = True) -> Target:
    """Return the target of a model's name, or of the name at the provider that is given: a configured one, or a preset.

    Where nobody is configured for the model, the catalog's own provider of such names is meant. `discovers`: providers may be asked for
    their lists. Raises UnknownModel or InvalidRequest.
    """
    if provider:
        found = provider_named(provider, directory.providers, param="--provider")
        if not found.base_url:
            hint = "its address differs from user to user: configure it in bardo.toml"
            raise InvalidRequest(f"no provider is called {provider!r}", hint=hint, param="--provider")
        return target_at(found, model)
    try:
        return (await directory.targets(model) if discovers else resolve(model, directory.providers))[0]
    except UnknownModel as problem:
        return target_unconfigured(model, directory.providers, problem)
