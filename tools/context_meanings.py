"""What the keys of the layers mean that shorten or order a prompt: the tables of `[inference.pipeline]` with their names."""

from __future__ import annotations

import msgspec

from bardo.context.steps.settings import (
    CompressSettings,
    ConstraintsSettings,
    DedupSettings,
    FormatSettings,
    RelevanceSettings,
    ReorderSettings,
)

_PAGE = "[Shorten prompts](../how-to/shorten-prompts.md)"
_TABLES: dict[str, tuple[type[msgspec.Struct], str]] = {
    "reorder": (ReorderSettings, "what is put in another order"),
    "compress": (CompressSettings, "how old turns are shortened, and long conversations compacted"),
    "dedup": (DedupSettings, "when a text that stands in the prompt already is replaced by a reference"),
    "relevance": (RelevanceSettings, "how long texts are reduced to what is like the last question"),
    "constraints": (ConstraintsSettings, "what is said again at the end of a long prompt"),
    "format": (FormatSettings, "how results of tools are written shorter"),
}
CONTEXT_TABLES: dict[str, type[msgspec.Struct]] = {
    f"inference.pipeline.{name}": struct for name, (struct, _) in _TABLES.items()
}
_EDITING = {
    "above_tokens": "the prompt size in tokens above which it acts",
    "above_share": "the share of the target's context window above which it acts, where that is less",
    "keep_turns": "the number of the model's last turns that stay unchanged, with everything after them",
    "remaining_turns": "the number of calls within which a change in a cached prompt must pay off; 0: as many as there were so far",
    "cache_seconds": "how long a provider is assumed to keep a prompt in its cache",
}
_OWN = {
    "reorder": {
        "system": "whether parts of the system prompt with a date, a time or an id go behind the others",
        "tools": "whether tools keep the order that they had first in a session",
        "documents": "whether long documents of the first thing that the user said go before the words",
        "least_document": "the least tokens of a document that is moved to the front",
    },
    "compress": {
        **_EDITING,
        "longest": "the approximate length in tokens of a shortened text",
        "pictures": "whether old pictures in results of tools, such as screenshots, are left out",
        "compact": "the ways in which a conversation is compacted that is longer still, in order: `provider`, `model`, `rules`",
        "model": "the model that writes summaries",
        "compact_above_tokens": "the prompt size in tokens above which it is compacted",
        "compact_above_share": "the share of the target's context window above which it is compacted, where that is less",
        "summary_tokens": "the most tokens of a summary",
    },
    "dedup": {
        **_EDITING,
        "least": "the least tokens of a text that is replaced",
        "least_lines": "the least number of equal lines in a row",
    },
    "relevance": {
        **_EDITING,
        "longest": "the length in tokens above which a text is reduced",
        "keep": "the approximate number of its tokens that stay",
        "embed": "whether passages are compared by their vectors too, and not by their words alone",
    },
    "constraints": {
        "above_tokens": "the prompt size in tokens above which rules are repeated",
        "every_tokens": "the number of further tokens after which they are repeated",
        "must": "the rules, as the model reads them",
        "language": "the language of the answer",
        "rules": 'rules for some domains or workloads only: `[{ text = "Name the chain.", domains = ["defi"] }]`',
        "enrich": 'the domains whose built-in text is added: `["defi"]`',
    },
    "format": {
        **_EDITING,
        "least": "the least tokens of a result that is rewritten",
        "csv": "whether lists of equal, flat objects become comma-separated values, which have no types",
    },
}
CONTEXT_MEANINGS = {
    f"inference.pipeline.{name}": f"{about}: the keys below. See {_PAGE}" for name, (_, about) in _TABLES.items()
} | {f"inference.pipeline.{name}.{key}": meaning for name, keys in _OWN.items() for key, meaning in keys.items()}
