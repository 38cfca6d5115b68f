"""The axes of the matrix: client libraries, providers, whole or streamed."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bardo.simulators import PRESETS, presets
from support.sdk import SDKS

PROVIDERS = presets()
# One provider of each dialect; Chat Completions once with signatures and once with plain text.
SPEAKERS = ("anthropic", "gemini", "openai_responses", "openrouter", "deepseek")

# A library's dialect decides how its requests are read and its replies written, a provider's row how a request is written and a reply is
# read, and no code reads both, but where both have one dialect and frames are forwarded. So these two have every provider, and the
# other libraries one of each dialect and all of their own.
WITH_EVERY_PROVIDER = ("openai_chat", "anthropic_messages")
_OF_EACH_DIALECT = {PRESETS[name].dialect: name for name in reversed(PROVIDERS)}.values()

each_sdk = pytest.mark.parametrize("sdk", list(SDKS), indirect=True)
whole_and_streamed = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def each_sdk_and_provider(providers: Iterable[str]) -> pytest.MarkDecorator:
    """Return the pairs of a library and one of these providers that differ in what code they go through."""
    pairs = [
        (sdk, provider)
        for sdk in SDKS
        for provider in providers
        if sdk in WITH_EVERY_PROVIDER or provider in {*SPEAKERS, *_OF_EACH_DIALECT} or PRESETS[provider].dialect == sdk
    ]
    return pytest.mark.parametrize(("sdk", "provider"), pairs, indirect=["sdk"])
