"""The paths of files and batches, OpenAI's and Anthropic's."""

from __future__ import annotations

import re
from typing import Literal

BatchEndpoint = Literal[
    "upload_file",
    "list_files",
    "show_file",
    "delete_file",
    "read_file",
    "create_batch",
    "list_batches",
    "show_batch",
    "cancel_batch",
    "create_message_batch",
    "list_message_batches",
    "show_message_batch",
    "delete_message_batch",
    "cancel_message_batch",
    "read_message_batch",
]
_PATH = re.compile(r"(?:/v1)?/(files|batches|messages/batches)(?:/([^/]+)(?:/(content|cancel|results))?)?/?")
BATCH_METHODS: dict[tuple[str, bool, str], dict[str, BatchEndpoint]] = {
    ("files", False, ""): {"GET": "list_files", "POST": "upload_file"},
    ("files", True, ""): {"GET": "show_file", "DELETE": "delete_file"},
    ("files", True, "content"): {"GET": "read_file"},
    ("batches", False, ""): {"GET": "list_batches", "POST": "create_batch"},
    ("batches", True, ""): {"GET": "show_batch"},
    ("batches", True, "cancel"): {"POST": "cancel_batch"},
    ("messages/batches", False, ""): {"GET": "list_message_batches", "POST": "create_message_batch"},
    ("messages/batches", True, ""): {"GET": "show_message_batch", "DELETE": "delete_message_batch"},
    ("messages/batches", True, "cancel"): {"POST": "cancel_message_batch"},
    ("messages/batches", True, "results"): {"GET": "read_message_batch"},
}


def batch_methods(path: str) -> tuple[dict[str, BatchEndpoint], str, str] | None:
    """Return the endpoint of each method at a path, the dialect there, and the id in the path, or None if the path is of nothing kept."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    collection, name, below = found[1], found[2] or "", found[3] or ""
    methods = BATCH_METHODS.get((collection, bool(name), below))
    if methods is None:
        return None
    return methods, "anthropic_messages" if collection.startswith("messages") else "openai_chat", name
