"""The corrections of estimates in a file of the data folder, so that a program that starts again need not learn them anew.

The file holds digests of callers' keys, names of providers and models, and numbers. Of several workers the one that ends last writes what
it knows.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bardo.adapters.config.paths import what_is_no_file
from bardo.adapters.stores.database.set_aside import set_file_aside
from bardo.planning.token_counting import PromptEstimates

if TYPE_CHECKING:
    from bardo.services.pipeline.parts import LayerParts

FILE = "prompt_estimates_by_caller.json"
_MOST_BYTES = 1_000_000
_log = logging.getLogger("bardo.pipeline")
_Stored = list[tuple[str, str, str, float]]


def keep_estimates(parts: LayerParts) -> None:
    """Load the corrections, and have them stored when the layers are closed, where something was learned."""
    path, estimates = parts.folder / FILE, parts.estimates
    _load(path, estimates)
    learned = estimates.learned

    async def store() -> None:
        if estimates.learned != learned:
            await asyncio.to_thread(_store, path, estimates)

    parts.closing.append(store)


def _load(path: Path, estimates: PromptEstimates) -> None:
    try:
        if what := what_is_no_file(path):
            raise OSError(errno.EINVAL, f"it is {what}")
        if path.stat().st_size <= _MOST_BYTES:
            estimates.restore(msgspec.json.decode(path.read_bytes(), type=_Stored))
    except FileNotFoundError:
        return
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        try:
            aside = set_file_aside(path)
        except OSError as failure:
            _log.warning(
                "%s cannot be read (%s), nor set aside: %s", path, type(problem).__name__, failure.strerror or failure
            )
        else:
            _log.warning("%s cannot be read (%s): it is set aside as %s", path, type(problem).__name__, aside)


def _store(path: Path, estimates: PromptEstimates) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        if what := what_is_no_file(path):
            raise OSError(errno.EINVAL, f"it is {what}")
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_bytes(msgspec.json.encode(estimates.corrections()))
        beside.replace(path)
    except OSError as problem:
        _log.warning("%s is not written: %s", path.name, type(problem).__name__)
        beside.unlink(missing_ok=True)
