"""What routing has learned, and whether it pays: as records for programs and pages."""

from __future__ import annotations

from typing import Any

import msgspec

from bardo.routing.learned.outcomes import OutcomeTable
from bardo.routing.learned.router import LearnedState, RouteState


def route_fields(name: str, route: RouteState) -> dict[str, Any]:
    """Return whether routing pays on one route, and what it has cost to find out."""
    found = route.comparison()
    return {
        "route": name,
        "verdict": found.verdict,
        "off": route.off,
        "gain": found.gain,
        "interval": None if found.low is None else [found.low, found.high],
        "routed": msgspec.to_builtins(found.routed),
        "best_single": msgspec.to_builtins(found.single),
        "regret": {"spent": route.budget.spent, "allowed": route.budget.per_choice * route.budget.choices},
    }


def model_fields(state: LearnedState) -> list[dict[str, Any]]:
    """Return what is known of each model: how many outcomes, how often they were good, and what a call costs."""
    table = OutcomeTable(state.clusters, rows=state.rows)
    found = []
    for model in table.models:
        whole = state.rows[model].whole
        one = table.overall(model)
        found.append({"model": model, "outcomes": whole.count, "success": one.success, "cost_usd": one.cost})
    return found


def learned_record(state: LearnedState) -> dict[str, Any]:
    """Return what is known of routes and of models."""
    return {
        "routes": [route_fields(name, one) for name, one in sorted(state.routes.items())],
        "models": model_fields(state),
    }


def model_cells(model: dict[str, Any]) -> tuple[str, ...]:
    """Return what is known of one model, in words."""
    cost = "unknown" if model["cost_usd"] is None else f"${model['cost_usd']:.6f}"
    return model["model"], f"{model['outcomes']:.1f}", f"{model['success']:.3f}", cost


def route_cells(route: dict[str, Any]) -> tuple[str, ...]:
    """Return whether routing pays on one route, in words: verdict, gain, its interval, the outcomes of both arms, and regret."""
    gain = "" if route["gain"] is None else f"{route['gain']:+.3f}"
    interval = "" if route["interval"] is None else "{:+.3f} to {:+.3f}".format(*route["interval"])
    verdict = f"{route['verdict']}, switched off" if route["off"] else route["verdict"]
    spent = f"{route['regret']['spent']:.2f} of {route['regret']['allowed']:.2f}"
    counts = (f"{route[arm]['count']}" for arm in ("routed", "best_single"))
    return route["route"], verdict, gain, interval, *counts, spent
