"""`[inference.pipeline.tools]`: how the tools of a request are chosen."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Most = Annotated[int, msgspec.Meta(ge=1, le=1000)]
Few = Annotated[int, msgspec.Meta(ge=0, le=100)]


class ToolsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How the tools of a request are chosen.

    `most` tools are sent beside those that stay in any case, and a later question of the user adds at most `added` to them. `order` is that
    of the client, or by name. With more than `meta_above` tools a model gets three functions by which it finds and calls them; 0 is never.
    `tasks` are the tools of a workload, or of a label of the classifier. `vectors`: tools are compared by vectors too, and by earlier
    `uses`. `most_searches` and `most_failures` bound what a model does with the functions in one call, and `check_arguments` has the
    arguments of its calls checked before the client gets them.
    """

    most: Most = 12
    added: Few = 1
    order: Literal["client", "name"] = "client"
    meta_above: Annotated[int, msgspec.Meta(ge=0)] = 40
    tasks: dict[str, tuple[str, ...]] = {}
    vectors: bool = True
    uses: bool = True
    most_searches: Most = 8
    most_failures: Few = 3
    check_arguments: bool = True
