"""The packages of dialects have one shape: who knows one knows all."""

from __future__ import annotations

from pathlib import Path

from bardo import dialects
from support.offenders import offenders

MODULES = {"wire", "request_in", "request_out", "reply_in", "reply_out", "usage", "errors"}
"""What every package has."""
OPERATIONS = "operations"
"""What those have whose servers do more than reply."""
OWN = {
    "anthropic_messages": {"fast", "searches"},
    "bedrock_converse": set(),
    "cohere": set(),
    "gemini": {"parts", "schemas"},
    "gemini_interactions": {"step_objects"},
    "ollama": {"sealed"},
    "openai_chat": {"calls", "completions", "fast", "thinking"},
    # More than four: what is kept of responses, and compacted, is of no other dialect, and each is a story of its own.
    "openai_responses": {"compaction", "envelope", "functions", "items_out", "reply_items", "stored"},
}
"""The further modules of each package. A new one stands here with a reason, if it is the fifth."""


def test_every_package_has_the_same_modules_and_its_own_by_name() -> None:
    folder = Path(dialects.__path__[0])
    packages = {path.parent.name: path.parent for path in folder.glob("*/wire.py")}
    assert packages.keys() == OWN.keys()
    found = {name: {path.stem for path in package.glob("*.py")} - {"__init__"} for name, package in packages.items()}
    lacking = [f"{name}: {module}" for name, has in found.items() for module in sorted(MODULES - has)]
    offenders(lacking, "give the package of the dialect these modules")
    own = {name: has - MODULES - {OPERATIONS} for name, has in found.items()}
    assert own == OWN
