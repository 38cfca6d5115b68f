"""How rows are found by what people write: model ids that patterns fit, and names, whatever their spelling."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache


def fits(pattern: str, model_id: str) -> bool:
    """Say whether a part of the model id equals the pattern, which may hold the wildcards of a glob."""
    return _matcher(pattern).search(_comparable(model_id)) is not None


def canonical(name: str) -> str:
    """Return the one spelling under which a format's name is looked up."""
    return name.strip().lower().replace("-", "_")


@lru_cache(maxsize=1024)
def _matcher(pattern: str) -> re.Pattern[str]:
    wanted = _comparable(pattern)
    return re.compile(translate(f"*{wanted}*") if set(wanted) & set("*?[") else re.escape(wanted))


def _comparable(model_id: str) -> str:
    # Hosts write one model as qwen3:32b, qwen3_32b and Qwen/Qwen3-32B.
    return model_id.lower().replace("_", "-").replace(":", "-")
