"""The parts that layers are made from: the settings, the gateway's parts, and the registry of effects."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bardo.adapters.config.pipeline import PipelineSettings
from bardo.context.layer import Layer
from bardo.services.pipeline.effects import Effects, LayerHost

if TYPE_CHECKING:
    from bardo.adapters.config.settings import Settings
    from bardo.services.pipeline.affinity import Affinity


class LayerParts(NamedTuple):
    """The parts that layers are made from.

    `settings` is the whole configuration, and `pipeline` its part for layers. `folder` is where bardo keeps its data. A layer that opens
    something appends to `closing` what closes it. `affinity` holds what targets probably have cached, once a layer asks for it.
    """

    settings: Settings
    pipeline: PipelineSettings
    host: LayerHost
    effects: Effects
    folder: Path
    environment: Mapping[str, str]
    closing: list[Callable[[], Awaitable[None]]]
    affinity: list[Affinity]


Builder = Callable[[LayerParts], Layer]
"""Makes a layer."""
