"""What a model id means at a provider."""

from __future__ import annotations

from bardo.catalog.forms import builtin_forms
from bardo.catalog.models import FoundModel, Models, builtin_models


def find_model(provider: str, model: str, *, dialect: str = "openai_chat", models: Models | None = None) -> FoundModel:
    """Return the row of `model` where the provider row `provider` serves it, in this dialect where it matters.

    Aliases, dated snapshots, paths, geographies and variants are seen through. On a host the facts are those of the model's maker, with
    what differs at the host over them. `how` is `unclassified`, and `row` None, where no row fits.
    """
    owner = builtin_forms().endpoint(provider, dialect).owner or provider
    return (models or builtin_models()).find(owner, model)
