"""Live facts and an operator's override as layers of control, and where an override goes against what the server says."""

from __future__ import annotations

import logging

from bardo.catalog.models import Facts
from bardo.edge.introspect.live import LiveFacts
from bardo.engine.route import Target
from bardo.reasoning.control import Layer

_log = logging.getLogger("bardo.introspection")
FIELDS = Facts.__struct_fields__


def layers_of(live: LiveFacts | None, override: Facts | None = None) -> tuple[Layer, ...]:
    """Return what is to be laid over the catalog, the operator's word first."""
    layers = [] if override is None else [Layer("operator", override)]
    if live is not None and not live.silent:
        layers.append(Layer("L1", live))
    return tuple(layers)


def overridden(live: Facts, override: Facts) -> tuple[str, ...]:
    """Return the fields in which an override says something else than the server."""
    both = ((name, getattr(override, name), getattr(live, name)) for name in FIELDS)
    return tuple(name for name, own, said in both if own is not None and said is not None and own != said)


def log_override(target: Target, live: Facts, override: Facts) -> None:
    """Note that an operator's word goes before the server's: useful against a false claim, and worth knowing when it has become old."""
    fields = overridden(live, override)
    if not fields:
        return
    about = {
        "provider": target.provider.id,
        "model": target.model,
        "fields": list(fields),
        "operator": {name: getattr(override, name) for name in fields},
        "live": {name: getattr(live, name) for name in fields},
    }
    _log.warning("the override of %s goes before what %s says", target.model, target.provider.id, extra=about)
