"""The programs that ask in each mode over providers of four dialects, and what each of them does not do by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clients.installed import (
    AGENT_FRAMEWORK,
    AGNO,
    FURTHER_SDKS,
    GOOGLE_ADK,
    GOOGLE_CLIENTS,
    HAYSTACK,
    INSTRUCTOR,
    LANGCHAIN_JS,
    LITELLM,
    MASTRA,
    OTHER_FRAMEWORKS,
    PYTHON_CLIENTS,
    SDKS,
    STRANDS,
    NpmPackages,
    PipPackages,
)

MODES = ("plain", "stream", "tools", "structured", "error")
PROVIDERS = {
    "anthropic": "Messages",
    "deepseek": "Chat Completions",
    "gemini": "Gemini",
    "openai_responses": "Responses",
}
"""The simulated providers, by the dialect that they are asked in."""


@dataclass(frozen=True)
class Client:
    """One client over one dialect: the file in `programs` that runs it, and the packages it needs; without any, those of the tests serve.

    `left_out` says of modes why they are not run, `no_thinking_back` why no earlier thinking is in the requests of its loop.
    """

    program: str
    name: str
    version: str
    dialect: str
    packages: PipPackages | NpmPackages | None = None
    left_out: Mapping[str, str] = field(default_factory=dict)
    no_thinking_back: str = ""

    @property
    def modes(self) -> tuple[str, ...]:
        """The modes that are run."""
        return tuple(mode for mode in MODES if mode not in self.left_out)


_CHAT, _RESPONSES, _MESSAGES, _GEMINI = "Chat Completions", "Responses", "Messages", "Gemini"
_OLLAMA, _COHERE, _CONVERSE, _INVOKE = "Ollama", "Cohere", "Bedrock Converse", "Bedrock InvokeModel"
_MICROSOFT = "Microsoft's agent-framework"
_LANGCHAIN_JS = "LangChain for JavaScript"
_VALUES_ONLY = "it makes values only"
_BY_PROMPT = "its modules call tools by words in the prompt"
CLIENTS = (
    Client("openai_chat.py", "OpenAI's SDK for Python", "3", _CHAT),
    Client("openai_responses.py", "OpenAI's SDK for Python", "3", _RESPONSES),
    Client("anthropic_messages.py", "Anthropic's SDK for Python", "2", _MESSAGES),
    Client("google_genai.py", "Google's SDK for Python", "3", _GEMINI),
    Client("ollama_chat.py", "Ollama's library for Python", "0.6", _OLLAMA),
    Client("cohere_chat.py", "Cohere's SDK for Python", "7", _COHERE),
    Client("bedrock_converse.py", "boto3", "1", _CONVERSE),
    Client("bedrock_invoke.py", "boto3", "1", _INVOKE),
    Client("js_openai.mjs", "OpenAI's SDK for JavaScript", "7.57.0", f"{_RESPONSES}, {_CHAT}", SDKS),
    Client("js_anthropic.mjs", "Anthropic's SDK for JavaScript", "1.12.0", _MESSAGES, SDKS),
    Client("js_google.mjs", "Google's SDK for JavaScript", "3.1.0", _GEMINI, SDKS),
    Client("js_ollama.mjs", "Ollama's library for JavaScript", "0.6.4", _OLLAMA, FURTHER_SDKS),
    Client("js_cohere.mjs", "Cohere's SDK for JavaScript", "8.1.0", _COHERE, FURTHER_SDKS),
    Client("ai_sdk_openai.mjs", "AI SDK, @ai-sdk/openai", "4.0.118", _RESPONSES, SDKS),
    Client("ai_sdk_compatible.mjs", "AI SDK, @ai-sdk/openai-compatible", "3.0.92", _CHAT, SDKS),
    Client("ai_sdk_anthropic.mjs", "AI SDK, @ai-sdk/anthropic", "4.0.105", _MESSAGES, SDKS),
    Client("ai_sdk_google.mjs", "AI SDK, @ai-sdk/google", "4.0.121", _GEMINI, SDKS),
    Client("langchain_openai_chat.py", "LangChain, ChatOpenAI", "1.7.3", _CHAT, PYTHON_CLIENTS),
    Client("langchain_openai_responses.py", "LangChain, ChatOpenAI", "1.7.3", _RESPONSES, PYTHON_CLIENTS),
    Client("langchain_anthropic_messages.py", "LangChain, ChatAnthropic", "1.7.7", _MESSAGES, PYTHON_CLIENTS),
    Client("langchain_google.py", "LangChain, ChatGoogleGenerativeAI", "4.4.2", _GEMINI, GOOGLE_CLIENTS),
    Client("pydantic_ai_chat.py", "pydantic-ai, OpenAIChatModel", "2.68.0", _CHAT, PYTHON_CLIENTS),
    Client("pydantic_ai_responses.py", "pydantic-ai, OpenAIResponsesModel", "2.68.0", _RESPONSES, PYTHON_CLIENTS),
    Client("pydantic_ai_anthropic.py", "pydantic-ai, AnthropicModel", "2.68.0", _MESSAGES, PYTHON_CLIENTS),
    Client("pydantic_ai_google.py", "pydantic-ai, GoogleModel", "2.68.0", _GEMINI, GOOGLE_CLIENTS),
    Client("openai_agents_chat.py", "OpenAI's Agents SDK", "0.24.0", _CHAT, PYTHON_CLIENTS),
    Client("openai_agents_responses.py", "OpenAI's Agents SDK", "0.24.0", _RESPONSES, PYTHON_CLIENTS),
    Client("llm_chat.py", "llm", "0.36", _CHAT, PYTHON_CLIENTS),
    Client(
        "instructor_chat.py",
        "instructor",
        "1.17.0",
        _CHAT,
        INSTRUCTOR,
        left_out=dict.fromkeys(("plain", "stream", "tools"), _VALUES_ONLY),
    ),
    Client("llamaindex_chat.py", "LlamaIndex, OpenAILike", "0.8.1", _CHAT, OTHER_FRAMEWORKS),
    Client("llamaindex_responses.py", "LlamaIndex, OpenAIResponses", "0.8.3", _RESPONSES, OTHER_FRAMEWORKS),
    Client(
        "smolagents_chat.py",
        "smolagents",
        "1.26.0",
        _CHAT,
        OTHER_FRAMEWORKS,
        no_thinking_back="it sends calls and results of earlier turns as text, without thinking",
    ),
    Client("litellm_openai.py", "LiteLLM's library, openai", "1.110.2", _CHAT, LITELLM),
    Client("litellm_anthropic.py", "LiteLLM's library, anthropic", "1.110.2", _MESSAGES, LITELLM),
    Client("litellm_gemini.py", "LiteLLM's library, gemini", "1.110.2", _GEMINI, LITELLM),
    Client(
        "dspy_chat.py", "DSPy", "3.4.1", _CHAT, LITELLM, left_out={"stream": "its calls are whole", "tools": _BY_PROMPT}
    ),
    Client("google_adk.py", "google-adk, Gemini", "2.13.0", _GEMINI, GOOGLE_ADK),
    Client("langchain_js_chat.mjs", f"{_LANGCHAIN_JS}, ChatOpenAI", "1.5.8", _CHAT, LANGCHAIN_JS),
    Client("langchain_js_responses.mjs", f"{_LANGCHAIN_JS}, ChatOpenAI", "1.5.8", _RESPONSES, LANGCHAIN_JS),
    Client("langchain_js_anthropic.mjs", f"{_LANGCHAIN_JS}, ChatAnthropic", "1.5.11", _MESSAGES, LANGCHAIN_JS),
    Client("langchain_js_google.mjs", f"{_LANGCHAIN_JS}, ChatGoogleGenerativeAI", "2.3.2", _GEMINI, LANGCHAIN_JS),
    Client("mastra.mjs", "Mastra, its model router", "1.71.0", _CHAT, MASTRA),
    Client("strands_openai.py", "Strands Agents, OpenAIModel", "1.62.0", _CHAT, STRANDS),
    Client("strands_responses.py", "Strands Agents, OpenAIResponsesModel", "1.62.0", _RESPONSES, STRANDS),
    Client("strands_anthropic.py", "Strands Agents, AnthropicModel", "1.62.0", _MESSAGES, STRANDS),
    Client("strands_bedrock.py", "Strands Agents, BedrockModel", "1.62.0", _CONVERSE, STRANDS),
    Client("agent_framework_chat.py", f"{_MICROSOFT}, OpenAIChatCompletionClient", "1.23.0", _CHAT, AGENT_FRAMEWORK),
    Client("agent_framework_responses.py", f"{_MICROSOFT}, OpenAIChatClient", "1.23.0", _RESPONSES, AGENT_FRAMEWORK),
    Client("agno_chat.py", "Agno, OpenAIChat", "3.1.10", _CHAT, AGNO),
    Client("agno_responses.py", "Agno, OpenAIResponses", "3.1.10", _RESPONSES, AGNO),
    Client("agno_claude.py", "Agno, Claude", "3.1.10", _MESSAGES, AGNO),
    Client("agno_gemini.py", "Agno, Gemini", "3.1.10", _GEMINI, AGNO),
    Client("haystack_openai.py", "Haystack, OpenAIChatGenerator", "3.4.1", _CHAT, HAYSTACK),
    Client("haystack_responses.py", "Haystack, OpenAIResponsesChatGenerator", "3.4.1", _RESPONSES, HAYSTACK),
    Client("haystack_anthropic.py", "Haystack, AnthropicChatGenerator", "8.0.1", _MESSAGES, HAYSTACK),
    Client("haystack_google.py", "Haystack, GoogleGenAIChatGenerator", "7.0.0", _GEMINI, HAYSTACK),
)


def table() -> str:
    """Return the table of the page: a row for each client, which says of each mode whether it is run."""
    head = "| client | version | asks in | " + " | ".join(MODES) + " | thinking comes back |"
    rows = [head, "|---" * (4 + len(MODES)) + "|"]
    for client in CLIENTS:
        modes = ["–" if mode in client.left_out else "yes" for mode in MODES]
        thinking = "–" if "tools" in client.left_out else "no" if client.no_thinking_back else "yes"
        rows.append(f"| {client.name} | {client.version} | {client.dialect} | {' | '.join(modes)} | {thinking} |")
    return "\n".join(rows)


def notes() -> str:
    """Return the list of the page: what a client is not run in, or does not do, and why."""
    lines = []
    for client in CLIENTS:
        reasons: dict[str, list[str]] = {}
        for mode, why in client.left_out.items():
            reasons.setdefault(why, []).append(f"`{mode}`")
        if client.no_thinking_back:
            reasons[client.no_thinking_back] = ["its thinking does not come back"]
        lines += [f"- {client.name}: {', '.join(modes)} ({why})." for why, modes in reasons.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    print(table(), notes(), sep="\n\n")
