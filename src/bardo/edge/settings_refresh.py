"""`[refresh]` of `bardo.toml`: how often providers are asked for their lists of models, and where the lists are kept."""

from __future__ import annotations

from typing import Annotated

import msgspec


class RefreshSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How providers' lists of models are kept.

    `hours` is how old a list may become in a gateway that runs; 0: lists are only refreshed by `bardo catalog refresh`. `folder` is
    where they stand; empty: `catalog` beside the log.
    """

    hours: Annotated[float, msgspec.Meta(ge=0, le=8_760)] = 1.0
    folder: str = ""
