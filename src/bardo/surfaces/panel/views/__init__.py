"""The views of the panel: one row each in `VIEWS`."""

from __future__ import annotations

from bardo.surfaces.panel.panel import View
from bardo.surfaces.panel.views import catalog, costs, health, keys, live, reports, requests

VIEWS: tuple[View, ...] = (
    View("/", "Live", live.show),
    View("/requests", "Requests", requests.show_requests),
    View("/requests/{id}", "", requests.show_request),
    View("/requests/{id}/again", "", requests.send_again, methods=("POST",)),
    View("/costs", "Costs", costs.show),
    View("/costs.csv", "", costs.download),
    View("/health", "Health", health.show, methods=("GET", "POST")),
    View("/catalog", "Catalog", catalog.show),
    View("/catalog/model", "", catalog.show_model),
    View("/explain", "Explain", requests.show_explained, methods=("GET", "POST"), operator_only=True),
    View("/reports", "Reports", reports.show),
    View("/keys", "Keys", keys.show, methods=("GET", "POST")),
    View("/keys/{key}", "", keys.show_key, methods=("GET", "POST")),
)
"""Every page, in the order of the navigation."""
