"""Which model at which provider a command means."""

from __future__ import annotations

from difflib import get_close_matches

from bardo.catalog.load import builtin
from bardo.edge.directory import Directory
from bardo.engine.route import Provider, Target, resolve
from bardo.values.errors import InvalidRequest, UnknownModel


async def target_named(model: str, provider: str, directory: Directory, *, discovers: bool = True) -> Target:
    """Return the target of a model's name, or of the name at the provider that is given: a configured one, or a preset.

    Where nobody is configured for the model, the catalog's own provider of such names is meant. `discovers`: providers may be asked for
    their lists. Raises UnknownModel or InvalidRequest.
    """
    if provider:
        return Target(provider=_provider(provider, directory), model=model)
    try:
        return (await directory.targets(model) if discovers else resolve(model, directory.providers))[0]
    except UnknownModel as problem:
        found = _of_catalog(model)
        if found is None:
            hint = "name who serves it with --provider, as in --provider openrouter"
            raise UnknownModel(problem.message, hint=hint) from problem
        return found


def _provider(name: str, directory: Directory) -> Provider:
    configured = {held.id: held for held in directory.providers}
    row = builtin().provider(name)
    if name in configured:
        return configured[name]
    if row is not None and row.base_url:
        return Provider(id=row.id, row=row, base_url=row.base_url)
    near = get_close_matches(name, [*configured, *builtin().names()], n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`bardo catalog` shows all presets"
    if row is not None:
        hint = "its address differs from user to user: configure it in bardo.toml"
    raise InvalidRequest(f"no provider is called {name!r}", hint=hint, param="--provider")


def _of_catalog(model: str) -> Target | None:
    prefix, _, rest = model.partition("/")
    named = builtin().provider(prefix) if rest else None
    row = named or builtin().serving(model)
    if row is None or not row.base_url:
        return None
    return Target(provider=Provider(id=row.id, row=row, base_url=row.base_url), model=rest if named else model)
