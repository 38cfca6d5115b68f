"""The views of the panel: one module each, and one row each in `VIEWS`."""

from __future__ import annotations

from bardo.surfaces.panel.pages import View
from bardo.surfaces.panel.views import catalog, costs, health, live, request, requests

VIEWS: tuple[View, ...] = (
    View("/", "Live", live.show),
    View("/requests", "Requests", requests.show),
    View("/requests/{id}", "", request.show),
    View("/requests/{id}/again", "", request.send_again, methods=("POST",)),
    View("/costs", "Costs", costs.show),
    View("/costs.csv", "", costs.download),
    View("/health", "Health", health.show),
    View("/catalog", "Catalog", catalog.show),
    View("/catalog/model", "", catalog.show_model),
)
"""Every page, in the order of the navigation."""
