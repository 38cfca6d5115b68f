"""Which model a question goes to: by its whole name, or by a part of it that only one of the models has that are served."""

from __future__ import annotations

import re
from collections.abc import Sequence

from bardo.adapters.net.keys import Keyring
from bardo.services.facts.directory import PLACING_SECONDS, ProviderDirectory
from bardo.services.facts.model_list import first_model, listed_models
from bardo.surfaces.render.console import print_stderr
from bardo.values.errors import UnknownModel

_MOST_SHOWN = 12
_WORD = re.compile(r"[^0-9a-z]+")


class AmbiguousModel(UnknownModel):
    """A part of a name that several models have."""


async def chosen_model(directory: ProviderDirectory, keyring: Keyring, wanted: str, *, only: str = "") -> str:
    """Return the name of the model to ask. Where it is not as it was written, it is said on stderr.

    `only`: the provider that is asked for whatever name nobody knows, because it knows more names than it lists. Raises UnknownModel where
    there is none, AmbiguousModel where several fit.
    """
    if wanted and not only and directory.workload(wanted) is not None:
        return wanted
    if not wanted:
        name = await first_model(directory, keyring)
    else:
        try:
            await directory.placement(wanted)
        except UnknownModel as problem:
            found = await _find_match(directory, keyring, wanted, problem, only=only)
            if found is None:
                return f"{only}/{wanted}"
            name = found
        else:
            return wanted
    print_stderr(f"bardo: asking {name}")
    return name


async def _find_match(
    directory: ProviderDirectory, keyring: Keyring, wanted: str, problem: UnknownModel, *, only: str
) -> str | None:
    """Return the one served model that a part of a name means; None where the only provider may know it. Raises as `best_match`."""
    try:
        return best_match(wanted, await _served_models(directory, keyring), problem)
    except AmbiguousModel:
        raise
    except UnknownModel:
        if only:
            return None
        raise


async def _served_models(directory: ProviderDirectory, keyring: Keyring) -> list[str]:
    """Return the models that can be asked for a reply, in the order of their providers."""
    lacking = {provider.id for provider in directory.providers if keyring.lacks(provider)}
    models = await listed_models(directory, seconds=PLACING_SECONDS)
    return [one.id for one in models if "generate" in one.operations and one.provider not in lacking]


def best_match(wanted: str, served: Sequence[str], problem: UnknownModel) -> str:
    """Return the one model that a part of a name means.

    Models whose names hold it as whole words go before others. Of names of which one begins all others, it is that one: the others are
    dated or further named forms of it. Raises `problem` where none fits, AmbiguousModel where several do.
    """
    parts = _whole_words(wanted)
    fitting = [name for name in served if parts and all(part in name.lower() for part in parts)]
    whole = [name for name in fitting if set(parts) <= set(_whole_words(name))]
    found: dict[str, str] = {}
    for name in whole or fitting:
        # The same model at several providers is one model, at the first of them.
        found.setdefault(name.rpartition("/")[2].lower(), name)
    shortest = min(found, key=len, default="")
    if not found:
        raise problem
    if any(not name.startswith(shortest) or name[len(shortest) :][:1].isalnum() for name in found):
        names = list(found.values())
        more = f" and {len(names) - _MOST_SHOWN} more" if len(names) > _MOST_SHOWN else ""
        raise AmbiguousModel(
            f"{wanted!r} may be one of {len(names)} models: {', '.join(names[:_MOST_SHOWN])}{more}",
            hint="write more of its name",
        )
    return found[shortest]


def _whole_words(name: str) -> list[str]:
    return [word for word in _WORD.split(name.lower()) if word]
