"""The axes of the matrix: client libraries, providers, whole or streamed."""

from __future__ import annotations

import pytest

from bardo.simulators import presets
from support.sdk import SDKS

PROVIDERS = presets()
# One provider of each dialect; Chat Completions once with signatures and once with plain text.
SPEAKERS = ("anthropic", "gemini", "openai_responses", "openrouter", "deepseek")

each_sdk = pytest.mark.parametrize("sdk", list(SDKS), indirect=True)
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
