"""The collected facts of providers where they lie beside the project: `wire_matrix.json`, corrected by `wire_updates.json`."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[3] / "shared"
_PLACE = re.compile(r"models\[(\d+|\+)\](?:\.(\w+))?")


def updates() -> list[dict[str, Any]]:
    """Return the corrections in their order; none where the file is absent."""
    found: list[dict[str, Any]] = _read("wire_updates.json").get("updates", [])
    return found


def providers() -> dict[str, Any]:
    """Return the facts of each provider, corrected; none where the file is absent."""
    facts: dict[str, Any] = deepcopy(_read("wire_matrix.json").get("providers", {}))
    for update in updates():
        place = _PLACE.fullmatch(update["path"])
        if place is not None and update["provider"] in facts:
            _correct(facts[update["provider"]].setdefault("models", []), place[1], place[2], update["new"])
    return facts


def _correct(models: list[dict[str, Any]], number: str, field: str | None, new: Any) -> None:
    if number == "+":
        models.extend(new if isinstance(new, list) else [new])
    elif field is None:
        models[int(number)] = new
    else:
        models[int(number)][field] = new


def _read(name: str) -> dict[str, Any]:
    path = SHARED / name
    facts: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return facts
