"""The endpoints of the gateway as its OpenAPI document has them, a table for each group."""

from __future__ import annotations

from bardo.surfaces.gateway.openapi.document import openapi_document


def endpoints() -> str:
    """Every endpoint by its group: its method and path, and what it does."""
    document = openapi_document()
    return "\n".join(_group(tag["name"], tag["description"], document["paths"]) for tag in document["tags"])


def _group(name: str, about: str, paths: dict[str, dict[str, dict[str, object]]]) -> str:
    rows = [
        f"| `{method.upper()} {path}` | {operation['summary']} |"
        for path, methods in paths.items()
        for method, operation in methods.items()
        if operation["tags"] == [name]
    ]
    return "\n".join((f"### {name}\n", f"{about}\n", "| endpoint | what it does |", "|---|---|", *rows, ""))
