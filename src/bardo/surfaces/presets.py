"""Providers and models by the name a person gives them: those that are configured, then the catalog's, which need no configuration."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from bardo.engine.route import Provider, Target
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
    near = get_close_matches(name, [*held, *builtin().names()], n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "`bardo catalog` shows all presets"
    raise InvalidRequest(f"no provider is called {name!r}", hint=hint, param=param)


def check_prefix(model: str, configured: Sequence[Provider]) -> None:
    """Raise UnknownModel where what stands before the slash is nearly the name of a provider: a relay would be asked for it else."""
    prefix, slash, rest = model.partition("/")
    known = [*(provider.id for provider in configured), *builtin().names()]
    plain = prefix.replace("-", "").lower()
    # Makers are called so in the ids of relays: x-ai, mistralai, deepseek-ai.
    if not slash or any(plain.startswith(name.replace("-", "")) for name in known):
        return
    if near := get_close_matches(prefix.lower(), known, n=1, cutoff=0.8):
        raise UnknownModel(f"no provider is called {prefix!r}", hint=f"did you mean {near[0]}/{rest}?")


def target_of_catalog(model: str) -> Target | None:
    """Return the preset of a `provider/model`, or the one that serves such names: for a model nobody is configured for."""
    prefix, _, rest = model.partition("/")
    named = builtin().provider(prefix) if rest else None
    row = named or builtin().serving(model)
    return None if row is None else Target(provider=_preset(row), model=rest if named else model)


def _preset(row: ProviderRow) -> Provider:
    return Provider(id=row.id, row=row, base_url=row.base_url)
