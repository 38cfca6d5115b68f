"""The settings of the layers that shorten or order a prompt: the tables of `[inference.pipeline]` with their names."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[int, msgspec.Meta(ge=1)]
Share = Annotated[float, msgspec.Meta(gt=0, le=1)]


class EditingSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a layer shortens texts.

    It does where the prompt has more than `above_tokens` tokens, or more than `above_share` of the target's window. The last `keep_turns`
    turns of the model and all that follows them stay. A change in what the provider has in its cache has to pay within `remaining_turns`
    calls, 0 for as many as there were so far; the cache is taken to hold what was sent less than `cache_seconds` ago.
    """

    above_tokens: Count = 20_000
    above_share: Share = 0.5
    keep_turns: Positive = 3
    remaining_turns: Count = 0
    cache_seconds: Annotated[float, msgspec.Meta(ge=0)] = 300.0


CompactionWay = Literal["provider", "model", "rules"]


class CompressSettings(EditingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How old texts are shortened, to about `longest` tokens each, and how a conversation is compacted that is longer still.

    `pictures`: old pictures in results of tools, such as screenshots, are left out.

    `compact` names the ways in which it is, in the order in which they are tried: by the provider's own API, by a summary that `model`
    writes, by a summary that rules make. None of them is tried before the prompt has more than `compact_above_tokens` tokens, or more than
    `compact_above_share` of the target's window. A summary has at most `summary_tokens` tokens.
    """

    keep_turns: Positive = 6
    longest: Positive = 1_000
    pictures: bool = False
    compact: tuple[CompactionWay, ...] = ()
    model: str = ""
    compact_above_tokens: Positive = 100_000
    compact_above_share: Share = 0.8
    summary_tokens: Positive = 1_500


class DedupSettings(EditingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When a text that stands in the prompt already is replaced: from `least` tokens, or `least_lines` equal lines, on."""

    above_tokens: Count = 2_000
    least: Positive = 100
    least_lines: Annotated[int, msgspec.Meta(ge=3)] = 10


class RelevanceSettings(EditingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long texts are reduced to the passages that are most like the last question.

    Texts of more than `longest` tokens keep about `keep` tokens. `embed`: passages are compared by their vectors too.
    """

    longest: Positive = 4_000
    keep: Positive = 2_000
    embed: bool = False


class FormatSettings(EditingSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How results of tools are written shorter without a loss. `csv`: lists of equal, flat objects become comma-separated values."""

    above_tokens: Count = 2_000
    least: Positive = 50
    csv: bool = False


class ReorderSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts that are reordered: those of the system prompt, tools, and documents of at least `least_document` tokens."""

    system: bool = True
    tools: bool = True
    documents: bool = True
    least_document: Count = 1_000


class ConstraintRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A rule that is said again: only for these domains, as the layer `classify` finds them, and workloads, where any are named."""

    text: str
    domains: tuple[str, ...] = ()
    workloads: tuple[str, ...] = ()


class ConstraintsSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules repeated at the end of a prompt of more than `above_tokens` tokens, at most once in `every_tokens` tokens.

    `must` are rules as they are to be read, `language` is that of the answer, `enrich` the domains whose built-in text is added.
    """

    above_tokens: Count = 16_000
    every_tokens: Count = 8_000
    must: tuple[str, ...] = ()
    language: str = ""
    rules: tuple[ConstraintRule, ...] = ()
    enrich: tuple[str, ...] = ()
