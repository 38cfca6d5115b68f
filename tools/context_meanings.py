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
    "above_tokens": "from how many tokens of the prompt on it acts",
    "above_share": "from which share of the target's window on it acts, where that is less",
    "keep_turns": "how many of the model's last turns stay as they are, with all that follows them",
    "remaining_turns": "within how many calls a change in what the provider has in its cache has to pay; 0: as many as there were so far",
    "cache_seconds": "for how long a provider is taken to have in its cache what was sent to it",
}
_OWN = {
    "reorder": {
        "system": "whether parts of the system prompt with a date, a time or an id go behind the others",
        "tools": "whether tools keep the order that they had first in a session",
        "documents": "whether long documents of the first thing that the user said go before the words",
        "least_document": "how many tokens a document has at least that is put first",
    },
    "compress": {
        **_EDITING,
        "longest": "to about how many tokens a text is shortened",
        "pictures": "whether old pictures in results of tools, such as screenshots, are left out",
        "compact": "the ways in which a conversation is compacted that is longer still, in order: `provider`, `model`, `rules`",
        "model": "the model that writes summaries",
        "compact_above_tokens": "from how many tokens of the prompt on it is compacted",
        "compact_above_share": "from which share of the target's window on it is compacted, where that is less",
        "summary_tokens": "how many tokens a summary has at most",
    },
    "dedup": {
        **_EDITING,
        "least": "how many tokens a text has at least that is replaced",
        "least_lines": "how many lines in a row have at least to be the same",
    },
    "relevance": {
        **_EDITING,
        "longest": "from how many tokens on a text is reduced",
        "keep": "about how many of its tokens stay",
        "embed": "whether passages are compared by their vectors too, and not by their words alone",
    },
    "constraints": {
        "above_tokens": "from how many tokens of the prompt on rules are said again",
        "every_tokens": "how many more tokens have to come before they are said again",
        "must": "the rules, as the model shall read them",
        "language": "the language of the answer",
        "rules": 'rules for some domains or workloads only: `[{ text = "Name the chain.", domains = ["defi"] }]`',
        "enrich": 'the domains whose built-in text is added: `["defi"]`',
    },
    "format": {
        **_EDITING,
        "least": "how many tokens a result has at least",
        "csv": "whether lists of equal, flat objects become comma-separated values, which have no types",
    },
}
CONTEXT_MEANINGS = {
    f"inference.pipeline.{name}": f"{about}: the keys below. See {_PAGE}" for name, (_, about) in _TABLES.items()
} | {f"inference.pipeline.{name}.{key}": meaning for name, keys in _OWN.items() for key, meaning in keys.items()}
