"""`[inference.pipeline.injection]`: what is done where text that nobody vouches for holds instructions."""

from __future__ import annotations

from typing import Annotated

import msgspec

from bardo.context.injection import Action


class InjectionSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`report` says what was found, `mark` puts marks around it, `withhold` ends a reply that follows it, `block` refuses the request.

    `threshold`: how certain it has to be, from 0 to 1.
    """

    action: Action = "report"
    threshold: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.5
