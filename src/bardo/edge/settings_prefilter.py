"""`[inference.pipeline.prefilter]`: which targets a request is not sent to, and how the length of its prompt is estimated."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bardo.catalog.pipeline_rows import CapRow


class PrefilterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A target is passed over where the estimate less `margin`, a share of it, is over its window, and where one of `caps` forbids it.

    `tokenizers` are files of exact tokenizers (`tokenizer.json`), by globs of model names.
    """

    margin: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.15
    tokenizers: dict[str, str] = {}
    caps: tuple[CapRow, ...] = ()
