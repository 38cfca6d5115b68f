"""Each provider's row names the dialect that its own documentation describes.

Chat Completions is what nearly all speak, so only the others are named here, with the page that shows the request.
"""

from __future__ import annotations

from bardo.catalog.load import builtin
from bardo.catalog.rows import ProviderRow
from support.offenders import each_case

PAGES = {
    "anthropic_messages": "https://docs.anthropic.com/en/api/messages",
    "bedrock_converse": "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html",
    "bedrock_invoke": "https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html",
    "cohere": "https://docs.cohere.com/reference/chat",
    "gemini": "https://ai.google.dev/api/generate-content",
    "gemini_interactions": "https://ai.google.dev/api/interactions-api",
    "ollama": "https://docs.ollama.com/api/chat",
    "openai_chat": "https://platform.openai.com/docs/api-reference/chat/create",
    "openai_responses": "https://platform.openai.com/docs/api-reference/responses/create",
    "watsonx_text": "https://cloud.ibm.com/apidocs/watsonx-ai",
}
"""The page that describes each dialect."""

OTHER_THAN_CHAT = {
    "anthropic": "anthropic_messages",
    "azure": "openai_responses",
    "azure-anthropic": "anthropic_messages",
    "bedrock": "bedrock_converse",
    "bedrock-invoke": "bedrock_invoke",
    "bedrock-mantle": "openai_responses",
    "bedrock-mantle-anthropic": "anthropic_messages",
    "claude-google-cloud": "anthropic_messages",
    "cohere": "cohere",
    "deepseek-responses": "openai_responses",
    "gemini": "gemini",
    "gemini-interactions": "gemini_interactions",
    "lmstudio-responses": "openai_responses",
    "mistral-responses": "openai_responses",
    "ollama": "ollama",
    "openai": "openai_responses",
    "openrouter-responses": "openai_responses",
    "perplexity-agent": "openai_responses",
    "responses-compatible": "openai_responses",
    "vertex": "gemini",
    "vertex-anthropic": "anthropic_messages",
    "watsonx": "watsonx_text",
    "xai-responses": "openai_responses",
}
"""The dialect of each provider that does not speak Chat Completions at its first endpoint."""

ROWS = builtin().providers


@each_case("row", ROWS, ids=[row.id for row in ROWS])
def test_a_provider_speaks_the_dialect_of_its_documentation(row: ProviderRow) -> None:
    expected = OTHER_THAN_CHAT.get(row.id, "openai_chat")
    assert row.dialect == expected, (
        f"the row {row.id} of catalog/data/providers.toml says {row.dialect}, this test {expected}: compare the provider's documentation "
        f"with {PAGES[row.dialect]}, and correct the row or OTHER_THAN_CHAT"
    )


def test_each_exception_is_a_provider() -> None:
    assert OTHER_THAN_CHAT.keys() <= {row.id for row in ROWS}


@each_case("row", ROWS, ids=[row.id for row in ROWS])
def test_the_endpoints_of_a_provider_differ_in_their_dialect(row: ProviderRow) -> None:
    dialects = [at.dialect for at in row.at_endpoints]
    assert len(dialects) == len(set(dialects)), f"two endpoints of {row.id} have the same dialect: {dialects}"
