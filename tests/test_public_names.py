"""The front door: the names `bardo` offers, and how little it costs to open it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import bardo
from support.patience import PATIENCE

NAMES = [
    "AsyncClient",
    "BardoError",
    "CallerError",
    "Client",
    "Degradation",
    "Explanation",
    "Message",
    "OperatorError",
    "ProviderError",
    "ReasoningBlock",
    "ReasoningChain",
    "ReasoningCost",
    "ReasoningPolicy",
    "ReasoningStep",
    "ReasoningVisibility",
    "Response",
    "StructuredOptions",
    "Tool",
    "ToolInvocation",
    "TypedResponse",
    "UnusableAnswer",
    "Usage",
    "__version__",
    "decode",
    "explain",
    "parse",
]
HEAVY = {
    "aiohttp",
    "alembic",
    "asyncio",
    "httptools",
    "h11",
    "msgspec",
    "rich",
    "sqlalchemy",
    "typer",
    "uvicorn",
}


def test_the_names_are_these_and_sorted() -> None:
    assert NAMES == bardo.__all__ == sorted(bardo.__all__) == dir(bardo)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_leads_somewhere(name: str) -> None:
    assert getattr(bardo, name) is getattr(bardo, name)
    assert name in vars(bardo)


def test_any_other_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'bardo' has no attribute 'Clint'"):
        bardo.Clint  # noqa: B018


def loaded_by(program: str) -> set[str]:
    """Return the top-level packages a fresh interpreter has loaded after `program`."""
    told = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    result = subprocess.run(
        [sys.executable, "-c", f"{program}\n{told}"], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert result.stderr == ""
    return set(json.loads(result.stdout))


def test_importing_bardo_loads_next_to_nothing() -> None:
    assert not loaded_by("import bardo") & HEAVY


def test_reading_text_and_replies_needs_no_server_and_no_database() -> None:
    program = "import bardo; bardo.parse('<think>x</think>y'); bardo.decode(b'{}', 'deepseek')"
    assert not loaded_by(program) & (HEAVY - {"msgspec"})


def test_the_clients_name_loads_no_server_and_no_database() -> None:
    assert not loaded_by("import bardo; bardo.Client") & (HEAVY - {"msgspec", "asyncio"})


def test_a_client_without_a_log_loads_no_database() -> None:
    program = (
        "import bardo\n"
        "from bardo.edge.settings import LogSettings, Settings\n"
        "bardo.Client(Settings(log=LogSettings(enabled=False))).close()"
    )
    assert not loaded_by(program) & {"alembic", "httptools", "rich", "sqlalchemy", "typer"}
