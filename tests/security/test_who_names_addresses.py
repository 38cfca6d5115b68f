"""Every address that bardo calls is named by the operator or the catalog: there is no other place in the code where a call begins."""

from __future__ import annotations

import ast
from pathlib import Path

import bardo

PACKAGE = Path(bardo.__file__).parent
NAMED_BY = {
    "call/upstream.py": "the provider's row, or its base_url",
    "batches/job_calls.py": "the provider's row, or its base_url",
    "services/facts/introspect/adapters.py": "the provider's row, or its base_url",
    "services/facts/list_models.py": "the provider's row, or its base_url",
    "services/facts/listings/listings.py": "the provider's row, or its base_url",
    "operators/probe/prober.py": "the provider's row, or its base_url",
    "call/search.py": "the row of a search service, or [search] base_url",
    "services/payments/network.py": "[payments.servers]",
    "adapters/stores/export/clickhouse.py": "the operator, as an argument of a command",
    "operators/conform/checked_server.py": "the operator, as an argument of a command",
    "surfaces/cli/demo.py": "bardo: a simulator that the command started",
    "surfaces/cli/doctor.py": "the operator: the gateway that is looked at",
    "surfaces/cli/top.py": "the operator: the gateway that is looked at",
}
"""Where calls are made, and who named their addresses. Nothing that a caller, a listing, a job or a payment says may be in this list."""
OTHER_CLIENTS = {
    "server/websocket.py": "nobody: only the frames of connections that clients have opened",
    "surfaces/chat/discord_bot.py": "errors of Discord's own library",
    "surfaces/cli/run.py": "the operator: whether a gateway answers on this machine",
}
_LIBRARIES = {"aiohttp", "httpx", "requests", "urllib3", "websockets"}
_OPENERS = {"urlopen", "build_opener", "HTTPConnection", "HTTPSConnection", "create_connection"}


def test_calls_begin_only_where_the_address_is_known_to_be_the_operators() -> None:
    assert {file for file, tree in trees() if makes_calls(tree)} == set(NAMED_BY)


def test_nothing_goes_around_the_transport() -> None:
    found = {file for file, tree in trees() if uses_a_client(tree)}
    assert found == set(OTHER_CLIENTS)


def trees() -> list[tuple[str, ast.Module]]:
    files = sorted(PACKAGE.rglob("*.py"))
    inner = [file for file in files if "simulators" not in file.relative_to(PACKAGE).parts]
    return [(file.relative_to(PACKAGE).as_posix(), ast.parse(file.read_text(encoding="utf-8"))) for file in inner]


def makes_calls(tree: ast.Module) -> bool:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return any(
        "Call" in (getattr(node.func, "id", ""), getattr(node.func, "attr", ""))
        and any(one.arg == "url" for one in node.keywords)
        for node in calls
    )


def uses_a_client(tree: ast.Module) -> bool:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            modules = [one.name for one in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            if _LIBRARIES & {module.partition(".")[0] for module in modules}:
                return True
            if _OPENERS & {one.name for one in node.names}:
                return True
    return False
