"""Usage is what the provider's own numbers say, under one algebra; where they contradict themselves, that is told."""

from __future__ import annotations

from dataclasses import replace

import pytest
from benchmarks.raw_usage import Raw, raw_counts

from conformance.replies import ALL, reply_of, row_of
from recordings import Recording, each_recording

# Reasoning above an output that includes it, by the total's own word: capped at the output.
MORE_REASONING_THAN_OUTPUT = (
    "doubleword/qwen3.5-9b-stream-thinking-122f3df2.sse",
    "doubleword/qwen3.5-9b-stream-thinking-truncated-1c9feb10.sse",
    "doubleword/qwen3.5-9b-thinking-58ece08c.json",
    "doubleword/qwen3.5-9b-thinking-truncated-142cc311.json",
    "openrouter/hermes-4-70b-stream-thinking-tool-19db79da.sse",
)
# Grok on Azure: more of the prompt came from the cache than there was: capped at the input.
MORE_CACHED_THAN_INPUT = (
    "azure-foundry/grok-4-1-fast-non-reasoning-stream-00e613db.sse",
    "azure-foundry/grok-4-1-fast-non-reasoning-tool-92982164.json",
    "azure-foundry/grok-4-1-fast-non-reasoning-tool-cbd72dee.json",
)
# A background reply that was cut short: an output of -9 is not known.
BELOW_ZERO = ("openai-responses/o4-mini-deep-research-truncated-3c6f30de.json",)
# Gemini's Chat Completions route: 66 and 6 tokens make 100, and the rest is named nowhere.
UNNAMED_REASONING = ("gemini-openai-compat/gemini-2.5-pro-preview-05-06-722584e7.json",)

DOUBTED = {
    **dict.fromkeys(MORE_REASONING_THAN_OUTPUT, "usage.reasoning_tokens"),
    **dict.fromkeys(MORE_CACHED_THAN_INPUT, "usage.cached_input_tokens"),
    **dict.fromkeys(BELOW_ZERO, "usage.output_tokens"),
    **dict.fromkeys(UNNAMED_REASONING, "usage.reasoning_tokens"),
}


def counted(recording: Recording) -> Raw:
    usage = reply_of(recording).response.usage
    return Raw(usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_input_tokens)


def believed(file: str, told: Raw) -> Raw:
    """Return what can be true of the counts."""
    if file in MORE_REASONING_THAN_OUTPUT:
        return replace(told, reasoning=told.output)
    if file in MORE_CACHED_THAN_INPUT:
        return replace(told, cached=told.input)
    if file in UNNAMED_REASONING:
        return replace(told, reasoning=28)
    return replace(told, output=None)


@each_recording(one for one in ALL if one.file not in DOUBTED)
def test_usage_is_what_the_provider_says(recording: Recording) -> None:
    if reply_of(recording).response.error is not None:
        pytest.skip("the reply broke")
    assert counted(recording) == raw_counts(recording, row_of(recording).dialect)


@each_recording([one for one in ALL if one.file in DOUBTED])
def test_a_contradiction_is_settled_and_told(recording: Recording) -> None:
    told = raw_counts(recording, row_of(recording).dialect)
    assert counted(recording) != told
    assert counted(recording) == believed(recording.file, told)
    degraded = reply_of(recording).response.degraded
    assert DOUBTED[recording.file] in [degradation.what for degradation in degraded]


def test_the_algebra_holds_everywhere() -> None:
    for recording in ALL:
        counts = counted(recording)
        assert (counts.reasoning or 0) <= (counts.output or 0) or counts.output is None, recording.file
        assert (counts.cached or 0) <= (counts.input or 0) or counts.input is None, recording.file
