"""The views of the panel: one module each, and one row each in `VIEWS`."""

from __future__ import annotations

from bardo.surfaces.panel.panel import View
from bardo.surfaces.panel.views import catalog, costs, explain, health, keys, live, reports, request, requests

VIEWS: tuple[View, ...] = (
    View("/", "Live", live.show),
    View("/requests", "Requests", requests.show),
    View("/requests/{id}", "", request.show),
    View("/requests/{id}/again", "", request.send_again, methods=("POST",)),
    View("/costs", "Costs", costs.show),
    View("/costs.csv", "", costs.download),
    View("/health", "Health", health.show, methods=("GET", "POST")),
    View("/catalog", "Catalog", catalog.show),
    View("/catalog/model", "", catalog.show_model),
    View("/explain", "Explain", explain.show, methods=("GET", "POST"), operator_only=True),
    View("/reports", "Reports", reports.show),
    View("/keys", "Keys", keys.show, methods=("GET", "POST")),
    View("/keys/{key}", "", keys.show_key, methods=("GET", "POST")),
)
"""Every page, in the order of the navigation."""
