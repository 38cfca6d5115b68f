"""The collected facts of providers where they lie beside the project: `wire_matrix.json`, corrected by `wire_updates.json`."""

from __future__ import annotations

import json
import re
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SHARED = Path(__file__).resolve().parents[2] / "shared"
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


@dataclass(frozen=True, slots=True)
class ModelFact:
    """What the collected facts say of one model. `provider` is the name that bardo's catalog gives to its provider."""

    provider: str
    model: str
    fact: dict[str, Any]

    @property
    def control(self) -> tuple[str, ...]:
        """By what its thinking is controlled: effort, level, budget, toggle, adaptive, fixed, none."""
        return tuple(self.fact.get("control", ()))

    @property
    def levels(self) -> tuple[str, ...]:
        """The levels it takes, without `none`."""
        return tuple(level for level in self.fact.get("efforts") or () if level != "none")

    @property
    def can_be_off(self) -> bool:
        """Whether its thinking can be turned off."""
        return bool(self.fact.get("off")) or "none" in (self.fact.get("efforts") or ())

    def budget_for(self, tokens: int, limit: int) -> int:
        """Return a budget within what the model takes, and below the output's `limit`."""
        span = self.fact.get("budget") or {}
        highest = span.get("max")
        return max(int(span.get("min") or 1), min(tokens, highest if isinstance(highest, int) else limit - 1))


def model_facts() -> list[ModelFact]:
    """Return every model that the facts name, as far as what it takes is known."""
    return [
        ModelFact(_NAMES.get(name, name), _model_of(glob), row)
        for name, provider in providers().items()
        for row in provider.get("models", ())
        for glob in row.get("match", ())
        if glob not in _LEFT_OUT and "retired" not in row and row.get("control")
    ]


# The file's names of providers, as bardo's catalog has them.
_NAMES = {"google": "gemini", "dashscope": "qwen", "llama_server": "llama-server", "nvidia_nim": "nvidia"}
# `*` of Ollama's row stands for any model; the other names are served by a plan of their own.
_LEFT_OUT = {"*", "kimi-for-coding*"}
_IDS = {
    "gemini-2.5-*-tts*": "gemini-2.5-pro-preview-tts",
    "*-thinking*": "qwen3-4b-thinking-2507",
    "qwen3-*b*": "qwen3-14b",
    "magistral-*-20*": "magistral-small-2006",
    "magistral-*-25*": "magistral-small-2509",
    "*minimax-m2*": "accounts/fireworks/models/minimax-m2",
    "*deepseek-v3p1*": "accounts/fireworks/models/deepseek-v3p1",
    "*deepseek-v3p2*": "accounts/fireworks/models/deepseek-v3p2",
    "*gpt-oss*": "accounts/fireworks/models/gpt-oss-120b",
}


def _model_of(glob: str) -> str:
    """Return an id that a glob stands for."""
    dated = re.sub(r"-20?2?5?\*$", "-2025-08-07", glob)
    return _IDS.get(glob) or dated.replace("*", "")
