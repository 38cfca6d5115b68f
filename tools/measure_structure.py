"""Print the size of the source, its shape, and how much of it one request enters: `make layers` shows it, and the suite lets nothing grow.

Run it from a checkout: `python tools/measure_structure.py`. Requests go through gateways in this process: a plain call of a Chat client, a
streamed turn of Claude Code to Gemini, and a call that a budget refuses. Files of the simulated providers do not count.
"""

from __future__ import annotations

import ast
import asyncio
import json
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

from bardo.accounting.limits import KeyLimits
from bardo.adapters.config.accounts import Account
from bardo.adapters.config.settings import parse_settings, state_path
from bardo.services.accounts.key_store import KeyStore, open_keys
from bardo.simulators import Simulator
from bardo.surfaces.gateway.app import Gateway
from bardo.surfaces.gateway.main import ConfiguredGateway
from bardo.values.request import Request

SOURCE = Path(__file__).parent.parent / "src" / "bardo"
LIMITS = Path(__file__).parent / "structure_limits.toml"
_KEY = "STRUCTURE_KEY"
_WARM = 5
"""The call of its kind after which a gateway has learned all that it asks its servers."""
_TURN = {
    "model": "gemini/gemini-2.5-flash",
    "max_tokens": 4096,
    "stream": True,
    "thinking": {"type": "enabled", "budget_tokens": 2048},
    "system": [{"type": "text", "text": "You are a coding agent.", "cache_control": {"type": "ephemeral"}}],
    "tools": [
        {
            "name": "Read",
            "description": "Reads a file.",
            "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
        }
    ],
    "messages": [
        {"role": "user", "content": "What does main.py do?"},
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "toolu_01", "name": "Read", "input": {"path": "main.py"}}],
        },
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01", "content": "print('hello')"}]},
    ],
}
_QUESTION = {"model": "openai/gpt-4o-mini", "messages": [{"role": "user", "content": "What is 27 * 43?"}]}


def figures() -> dict[str, int]:
    """Return every figure, by its name."""
    return {**figures_of_source(), **asyncio.run(_figures_of_requests())}


def figures_of_source() -> dict[str, int]:
    """Return what the text of the source tells."""
    trees = {_module(path): ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    imported = {name: _imports(tree, trees) - {name} for name, tree in trees.items()}
    importers = Counter(target for targets in imported.values() for target in targets)
    return {
        "files": len(trees),
        "lines": sum(len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")),
        "circles between files": len(list(_circles(imported))),
        "modules with one importer": sum(importers[name] == 1 for name in trees),
        "private helpers used once": sum(_used_once(tree) for tree in trees.values()),
        "Protocols": sum(_protocols(tree) for tree in trees.values()),
    }


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imports(tree: ast.Module, modules: Mapping[str, object]) -> set[str]:
    """Return which modules of bardo a module imports, wherever the import stands, for types too."""
    targets: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                targets.add(name if name in modules else node.module)
        elif isinstance(node, ast.Import):
            targets |= {alias.name for alias in node.names}
    return targets & modules.keys()


def _circles(imported: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """Yield each group of modules that reach one another."""
    reach = {name: _reached(name, imported) for name in imported}
    left = {name for name, names in reach.items() if name in names}
    while left:
        name = min(left)
        circle = {other for other in reach[name] if name in reach[other]}
        left -= circle
        yield circle


def _reached(start: str, imported: Mapping[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(imported[start])
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += imported[name]
    return reached


def _used_once(tree: ast.Module) -> int:
    """Return how many private functions of a module are named once beside their definition."""
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    private = {node.name for node in functions if node.name.startswith("_") and not node.name.startswith("__")}
    named = Counter(
        node.id if isinstance(node, ast.Name) else node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Name | ast.Attribute)
    )
    return sum(named[name] == 1 for name in private)


def _protocols(tree: ast.Module) -> int:
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    return sum(any("Protocol" in ast.unparse(base) for base in node.bases) for node in classes)


class Visits:
    """What calls enter: files, functions, changes of folder, and the names that a request has in them."""

    def __init__(self) -> None:
        self.calls = 0
        self.folder_changes = 0
        self.files: set[str] = set()
        self.names: set[str] = set()
        self._folder = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Count one call; a profiling hook of the interpreter."""
        name = frame.f_code.co_filename
        if event not in ("call", "return") or not name.startswith(str(SOURCE)) or "/simulators/" in name:
            return
        if event == "return":
            self.names |= {local for local, value in frame.f_locals.items() if isinstance(value, Request)}
            return
        self.calls += 1
        self.files.add(name)
        folder = str(Path(name).parent)
        self.folder_changes += folder != self._folder
        self._folder = folder


async def _figures_of_requests() -> dict[str, int]:
    with Simulator("openai_chat", models=()).running() as openai, Simulator("gemini", models=()).running() as gemini:
        addresses = {"openai": openai.base_url, "gemini": gemini.base_url}
        async with _gateway(addresses) as gateway:
            first, *_, warm = [await _visits(gateway, 200, "/v1/chat/completions", _QUESTION) for _ in range(_WARM)]
            *_, turn = [await _visits(gateway, 200, "/v1/messages", _TURN) for _ in range(_WARM)]
        async with _gateway(addresses, KeyLimits(usd_per_day=1)) as gateway:
            *_, refused = [await _visits(gateway, 429, "/v1/chat/completions", _QUESTION) for _ in range(_WARM)]
    return {
        "files entered: plain call, first": len(first.files),
        "files entered: plain call, warm": len(warm.files),
        "files entered: Claude Code to Gemini, streamed, warm": len(turn.files),
        "files entered: refused by budget": len(refused.files),
        "calls of functions: plain call, warm": warm.calls,
        "changes of folder: plain call, warm": warm.folder_changes,
        "names of one request on its way": len(warm.names),
    }


@asynccontextmanager
async def _gateway(addresses: Mapping[str, str], limits: KeyLimits | None = None) -> AsyncIterator[_Asked]:
    """Yield a gateway as `bardo serve` makes it, over providers at `addresses`. With `limits`, it asks for a key, which has them."""
    providers = [
        f'[[providers]]\nid = "{name}"\nbase_url = "{url}"\napi_key_env = "{_KEY}"' for name, url in addresses.items()
    ]
    settings = parse_settings("\n".join([*providers, '[[prices]]\nmatch = "*"\ninput = 1.0\noutput = 10.0']))
    with tempfile.TemporaryDirectory() as folder:
        environment = {_KEY: "any", "XDG_DATA_HOME": folder}
        key = "" if limits is None else _key(state_path(settings, environment), limits)
        gateway = ConfiguredGateway(settings, environment)
        await gateway.start()
        try:
            yield _Asked(gateway.application, key)
        finally:
            await gateway.stop()


def _key(place: str | Path, limits: KeyLimits) -> str:
    engine = open_keys(place)
    try:
        return KeyStore(engine).create(Account(id="", limits=limits))[1].text
    finally:
        engine.dispose()


class _Asked(NamedTuple):
    application: Gateway
    key: str


async def _visits(asked: _Asked, status: int, path: str, body: object) -> Visits:
    """Send one request, and return what it entered on the thread of the event loop."""
    visits = Visits()
    sys.setprofile(visits)
    try:
        sent = await _ask(asked, path, body)
    finally:
        sys.setprofile(None)
    if sent[0]["status"] != status:
        raise SystemExit(f"the request was answered with {sent}")
    return visits


async def _ask(asked: _Asked, path: str, body: object) -> list[Any]:
    headers = [
        (b"host", b"127.0.0.1"),
        (b"content-type", b"application/json"),
        (b"authorization", f"Bearer {asked.key}".encode()),
    ]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b""}
    places = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 80)}
    parts = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return parts.pop() if parts else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await asked.application({**scope, **places}, receive, send)
    return sent


def too_much(measured: Mapping[str, int]) -> list[str]:
    """Return a line for each figure that is above its limit."""
    limits = tomllib.loads(LIMITS.read_text())
    return [f"{name}: {figure}, at most {limits[name]}" for name, figure in measured.items() if figure > limits[name]]


def main() -> None:
    """Print each figure beside what it may be at most."""
    limits = tomllib.loads(LIMITS.read_text())
    measured = figures()
    width = max(map(len, measured))
    for name, figure in measured.items():
        print(f"{name:{width}} {figure:>9,}  at most {limits[name]:,}")
    if found := too_much(measured):
        raise SystemExit("\n".join(["", "The source grew where it may only shrink:", *found]))


if __name__ == "__main__":
    main()
