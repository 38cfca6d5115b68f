"""Names of models with `-thinking` behind them: the model itself with thinking on, where no model of its own is called so.

Chat clients and other gateways list models that think on demand twice: `claude-sonnet-4-5` and `claude-sonnet-4-5-thinking`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.catalog.load import builtin
from bardo.catalog.matching import matches_any, plain_id
from bardo.catalog.models import builtin_models
from bardo.catalog.rows import ProviderRow
from bardo.planning.aliases import ResolvedModel
from bardo.planning.route import Provider, provider_before

_ENDING = "-thinking"
_ON_DEMAND = frozenset(("effort", "budget", "level", "toggle", "adaptive"))


def may_be_thinking_name(found: ResolvedModel) -> bool:
    """Whether it depends on who lists which models what a name stands for."""
    return found.thinks or (found.suffix is None and found.model.endswith(_ENDING))


def with_thinking_name(found: ResolvedModel, providers: Sequence[Provider]) -> ResolvedModel:
    """Return the model that a name with `-thinking` means, and that it thinks; a name that is a model's own as it is."""
    bare = found.model.removesuffix(_ENDING)
    if bare == found.model or found.suffix is not None:
        return found
    named = provider_before(bare, providers)
    cut = 0 if named is None else bare.index("/") + 1
    if any(one.lists(found.model) for one in providers) or (named is not None and named.lists(found.model[cut:])):
        return found
    # Where nobody is configured, the catalog's providers of such names are meant.
    rows = [named.row] if named is not None else [one.row for one in providers] or builtin().providers
    listed = any(one.lists(bare) for one in providers) or (named is not None and named.lists(bare[cut:]))
    if _is_own_model(found.model[cut:], rows) or not (listed or _thinks_on_demand(bare[cut:], rows)):
        return found
    return msgspec.structs.replace(found, model=bare, thinks=True)


def _is_own_model(model: str, providers: Sequence[ProviderRow]) -> bool:
    """Whether the catalog has a model with this very ending, at a maker or at a host."""
    spelled = plain_id(builtin_models().spelled(model))
    for owner in ("", *(one.id for one in providers)):
        row = builtin_models().find(owner, model).row
        globs = () if row is None else tuple(plain_id(glob) for glob in row.match if "thinking" in glob)
        if matches_any(spelled, globs):
            return True
    return False


def _thinks_on_demand(model: str, providers: Sequence[ProviderRow]) -> bool:
    """Whether a maker's own API serves this model, and thinks only where it is asked to."""
    models = builtin_models()
    for provider in providers:
        source = models.sources.get(provider.id)
        if source is None or source.host or source.runs_weights or not provider.serves(model):
            continue
        row = models.find(provider.id, model).row
        if row is not None and row.omit == "off" and _ON_DEMAND.intersection(row.control or ()):
            return True
    return False
