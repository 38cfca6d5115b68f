"""Layers from other packages, which name them in the entry points `bardo.layers`.

An entry point leads to a function that takes the settings of `[inference.pipeline.own.NAME]`, a dict, and returns the layer. A layer says
in `place` whether it works `before_route` or `after_route`, by default after, behind bardo's own. `performers` are its functions for
effects of its own, by their classes; they are not called where nothing is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from bardo.adapters.config.pipeline import own_layer_points
from bardo.catalog.pipeline_rows import LayerPlace
from bardo.context.layer import Layer
from bardo.services.pipeline.effects import Effects
from bardo.values.errors import ConfigError

_PLACES: tuple[LayerPlace, ...] = ("before_route", "after_route")


def make_own_layer(name: str, settings: Mapping[str, Any], effects: Effects) -> Layer:
    """Return the layer of an entry point. Raises ConfigError where it cannot be made."""
    point = own_layer_points()[name]
    try:
        layer = point.load()(dict(settings))
        for kind, perform in getattr(layer, "performers", {}).items():
            effects.register(kind, perform, writes=True)
    except Exception as problem:
        message = f"the layer {name!r} of {point.value} cannot be made: {type(problem).__name__}: {problem}"
        raise ConfigError(message[:500], hint=f"look at [inference.pipeline.own.{name}]") from problem
    if getattr(layer, "name", None) != name or not callable(getattr(layer, "steps", None)):
        message = f"the layer {name!r} of {point.value} is no layer of that name"
        raise ConfigError(message, hint="return an object with name and steps, as bardo.context.layer says")
    return cast("Layer", layer)


def place_of(layer: Layer) -> LayerPlace:
    """Return whether a layer works before it is known who is asked, or after. Raises ConfigError for any other place."""
    place = getattr(layer, "place", "after_route")
    if place not in _PLACES:
        raise ConfigError(f"the layer {layer.name!r} has no place {place!r}", hint=f"use {' or '.join(_PLACES)}")
    return cast("LayerPlace", place)
