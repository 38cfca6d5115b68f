"""What Ollama shows of a model it has, whichever route it is used through."""

from __future__ import annotations

from collections.abc import Sequence

from bardo.simulators.fields import Fields, compact, text
from bardo.simulators.incoming import Incoming
from bardo.simulators.reply import Reply, whole

_JSON = "application/json; charset=utf-8"


def shown(incoming: Incoming, models: Sequence[str]) -> Reply | None:
    """Answer `/api/show`; None for any other path."""
    if incoming.path != "/api/show" or incoming.method != "POST":
        return None
    model = text(incoming.fields.get("model"))
    if model not in models:
        return whole(compact({"error": f"model '{model}' not found"}), status=404, content_type=_JSON)
    family = "gptoss" if model.startswith("gpt-oss") else "qwen3"
    details: Fields = {"format": "gguf", "family": family, "families": [family], "parameter_size": "8B"}
    info: Fields = {"general.architecture": family, f"{family}.context_length": 40960}
    body: Fields = {"details": details, "model_info": info, "capabilities": ["completion", "tools", "thinking"]}
    return whole(compact(body), content_type=_JSON)
