"""What proves to an MCP server who asks is in no request that is stored."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.values.secrets import without_credentials

pytestmark = pytest.mark.each_python

SECRET = "canary-7u8i9o0p1a"
RESPONSES = {
    "type": "mcp",
    "server_label": "a",
    "server_url": f"https://u:{SECRET}@mcp.example/x?token={SECRET}",
    "authorization": SECRET,
    "headers": {"X-Token": SECRET},
}
MESSAGES = {"type": "url", "name": "a", "url": "https://mcp.example/x", "authorization_token": SECRET}
FUNCTION = {"type": "function", "name": "look", "parameters": {"properties": {"headers": {"type": "object"}}}}


@pytest.mark.parametrize(
    "body", [{"model": "m", "tools": [FUNCTION, RESPONSES]}, {"tools": [FUNCTION], "mcp_servers": [MESSAGES]}]
)
def test_credentials_are_hidden_and_the_rest_stays(body: dict[str, Any]) -> None:
    before = json.dumps(body)
    stored = without_credentials(body)
    text = json.dumps(stored)
    assert SECRET not in text
    assert "mcp.example/x" in text
    assert stored["tools"][0] == FUNCTION
    assert json.dumps(body) == before, "the request itself is not changed"


@pytest.mark.parametrize("body", [None, {}, {"tools": [FUNCTION]}, {"tools": "none"}, {"tools": [1]}])
def test_a_request_without_such_servers_is_the_same(body: Any) -> None:
    assert without_credentials(body) is body
