"""Take what a client gives a provider for an MCP server out of a request that is stored: it proves there who asks.

Responses has such servers among its tools (`authorization`, `headers`), Messages in `mcp_servers` (`authorization_token`).
Sources: platform.openai.com/docs/guides/tools-connectors-mcp, docs.claude.com/en/docs/agents-and-tools/mcp-connector, 2026-11.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bardo.values.redaction import HIDDEN, shown_url

_SECRETS = frozenset({"authorization", "authorization_token", "headers"})
_ADDRESSES = frozenset({"server_url", "url"})


def without_credentials(body: Any) -> Any:
    """Return a body whose MCP servers have no credentials; the same body where it names none."""
    if not isinstance(body, Mapping):
        return body
    changed = {
        name: [_server(one) for one in body[name]] for name in ("tools", "mcp_servers") if _names_servers(body, name)
    }
    return {**body, **changed} if changed else body


def _names_servers(body: Mapping[str, Any], name: str) -> bool:
    listed = body.get(name)
    return isinstance(listed, list) and any(map(_is_server, listed))


def _is_server(value: Any) -> bool:
    return isinstance(value, Mapping) and (value.get("type") == "mcp" or not _SECRETS.isdisjoint(value))


def _server(value: Any) -> Any:
    if not _is_server(value):
        return value
    return {name: _shown(name, field) for name, field in value.items()}


def _shown(name: str, field: Any) -> Any:
    if name in _ADDRESSES and isinstance(field, str):
        return shown_url(field)
    if name not in _SECRETS or field is None:
        return field
    return dict.fromkeys(field, HIDDEN) if isinstance(field, Mapping) else HIDDEN
