"""How tools are chosen, as an operator sets it."""

from __future__ import annotations

from typing import Literal

import msgspec


class ToolChoiceSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How tools are chosen.

    `most` is how many a request gets beside those that stay in any case, `added` how many more a new question of the user may add to a
    session's, and `order` how they are sent. A request with more than `meta_above` gets functions that find and call them instead, where
    0 means never. `tasks` are the tools of a workload, or of a label that the classifier gives. `vectors` and `uses`: whether tools are
    compared by vectors, and by their earlier uses. `most_searches` and `most_failures` bound what a model does with the functions in one
    call. `check_arguments`: whether the arguments of a call through the functions must fit the tool's schema before the client gets it.
    """

    most: int = 12
    added: int = 1
    order: Literal["client", "name"] = "client"
    meta_above: int = 40
    tasks: dict[str, tuple[str, ...]] = {}
    vectors: bool = True
    uses: bool = True
    most_searches: int = 8
    most_failures: int = 3
    check_arguments: bool = True
