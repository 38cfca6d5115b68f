"""The batch APIs of providers, by the names that `batch.toml` uses."""

from __future__ import annotations

from bardo.catalog.batch_rows import BatchFormName
from bardo.dialects.batches.anthropic_jobs import AnthropicJobs
from bardo.dialects.batches.base import BatchForm
from bardo.dialects.batches.gemini_jobs import GeminiJobs
from bardo.dialects.batches.mistral_jobs import MistralJobs
from bardo.dialects.batches.openai_jobs import OpenAIJobs

_FORMS: dict[BatchFormName, BatchForm] = {
    "openai_files": OpenAIJobs(),
    "message_batches": AnthropicJobs(),
    "inline_operations": GeminiJobs(),
    "mistral_jobs": MistralJobs(),
}


def batch_form(name: BatchFormName) -> BatchForm:
    """Return the batch API of a name."""
    return _FORMS[name]
