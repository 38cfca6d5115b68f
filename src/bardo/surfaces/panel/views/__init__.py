"""The views of the panel: one module each, and one row each in `VIEWS`."""

from __future__ import annotations

from bardo.surfaces.panel.pages import View
from bardo.surfaces.panel.views import overview

VIEWS: tuple[View, ...] = (View("/", "Live", overview.show),)
"""Every page, in the order of the navigation."""
