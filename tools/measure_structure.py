"""Print the size of the source, and how many of its files one request enters.

Run it from a checkout: `python tools/measure_structure.py`. The request is a Chat client's to an Anthropic provider, so that everything is
translated; the files of the simulated provider do not count.
"""

from __future__ import annotations

import ast
import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path
from types import FrameType
from typing import Any

from bardo.adapters.config.settings import LogSettings, ProviderEntry, Settings
from bardo.simulators import Simulator
from bardo.surfaces.gateway.app import Gateway
from bardo.wiring import assemble

SOURCE = Path(__file__).parent.parent / "src" / "bardo"
SHORT = 80
_KEY = "STRUCTURE_KEY"


def sizes() -> dict[str, int]:
    """Return the lines of each module, by its dotted name."""
    return {_module(path): len(path.read_text().splitlines()) for path in sorted(SOURCE.rglob("*.py"))}


def importers() -> dict[str, set[str]]:
    """Return which modules import each module."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bardo"):
                found[str(node.module)].add(_module(path))
    return found


class Visits:
    """The source files that calls enter, and how often a call leaves one folder for another."""

    def __init__(self) -> None:
        self.calls = 0
        self.files: set[str] = set()
        self.folder_changes = 0
        self._folder = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """Count one call; a profiling hook of the interpreter."""
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(str(SOURCE)) or "/simulators/" in name:
            return
        self.calls += 1
        self.files.add(name)
        folder = str(Path(name).parent)
        self.folder_changes += folder != self._folder
        self._folder = folder


async def visits_of_one_request() -> Visits:
    """Send one request through a gateway, after one that warms it up."""
    with Simulator("anthropic", models=()).running() as server:
        entry = ProviderEntry(id="anthropic", base_url=server.base_url, api_key_env=_KEY)
        settings = Settings(providers=(entry,), log=LogSettings(enabled=False))
        parts = assemble(settings, environment={_KEY: "any"})
        gateway = Gateway(parts.runner, settings.gateway)
        try:
            await _ask(gateway)
            visits = Visits()
            sys.setprofile(visits)
            try:
                await _ask(gateway)
            finally:
                sys.setprofile(None)
        finally:
            await parts.close()
    return visits


async def _ask(gateway: Gateway) -> None:
    question = {"model": "anthropic/claude-sonnet-4-5", "messages": [{"role": "user", "content": "What is 27 * 43?"}]}
    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/chat/completions",
        "headers": headers,
        "query_string": b"",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    body = [{"type": "http.request", "body": json.dumps(question).encode(), "more_body": False}]
    sent: list[Any] = []

    async def receive() -> Any:
        return body.pop() if body else await asyncio.Event().wait()

    async def send(message: Any) -> None:
        sent.append(message)

    await gateway(scope, receive, send)
    if sent[0]["status"] != 200:
        raise SystemExit(f"the request failed: {sent}")


def _module(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def main() -> None:
    """Print the figures as JSON."""
    lines, used_by = sizes(), importers()
    short = [name for name, count in lines.items() if count < SHORT]
    visits = asyncio.run(visits_of_one_request())
    figures = {
        "lines": sum(lines.values()),
        "files": len(lines),
        f"files_under_{SHORT}_lines": len(short),
        "of_these_with_one_importer": sum(len(used_by.get(name, ())) == 1 for name in short),
        "files_entered_by_a_request": len(visits.files),
        "calls_of_a_request": visits.calls,
        "folder_changes_of_a_request": visits.folder_changes,
    }
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
