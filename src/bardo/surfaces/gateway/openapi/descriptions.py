"""The words of each endpoint: what it does, in a line and in full, and the group it belongs to. An endpoint without words fails a test."""

from __future__ import annotations

from typing import NamedTuple

from bardo.surfaces.gateway.openapi.listing import longest_name


class Description(NamedTuple):
    """What the document says of an endpoint. `group` is a key of GROUPS."""

    summary: str
    group: str
    description: str = ""


GROUPS = {
    "OpenAI": "Chat Completions, Responses with their conversations, completions, embeddings, models, files and batches.",
    "Anthropic": "Messages, counts of tokens, models and Message Batches.",
    "Gemini": "generateContent, Interactions, counts of tokens, embeddings and models.",
    "Ollama": "Chat, generate, embeddings and models as an Ollama server has them.",
    "Cohere": "Cohere's v2 chat.",
    "Bedrock": "Converse and InvokeModel.",
    "bardo": "What only bardo has: feedback, usage of a key, kept replies, health and events.",
    "Operation": "Whether the gateway runs, its metrics, and this document.",
}
"""The groups of endpoints, in the order of the document."""

_MODEL_CALL = (
    "The model decides the provider. Fields that the provider lacks are reported in `X-Bardo-Degraded`, or refused."
)
_KEPT = "Only where the gateway keeps responses (`[responses]` in bardo.toml)."
_BATCHES = "Only where the gateway takes batches (`[batches]` in bardo.toml)."
_MEMORY = "Of the caller's own tenant. Only where the gateway keeps thinking (`[memory]` in bardo.toml)."

DESCRIPTIONS: dict[str, Description] = {
    "generate openai_chat": Description("Create a chat completion", "OpenAI", _MODEL_CALL),
    "respond openai_responses": Description("Create a response", "OpenAI", _MODEL_CALL),
    "generate anthropic_messages": Description("Create a message", "Anthropic", _MODEL_CALL),
    "generate gemini": Description("Generate content", "Gemini", _MODEL_CALL),
    "generate gemini_interactions": Description(
        "Create an interaction", "Gemini", f"{_MODEL_CALL} bardo stores no interactions."
    ),
    "generate cohere": Description("Create a chat", "Cohere", _MODEL_CALL),
    "generate bedrock_converse": Description("Converse", "Bedrock", _MODEL_CALL),
    "generate bedrock_invoke": Description(
        "Invoke a model", "Bedrock", f"{_MODEL_CALL} The body is that of the model's own family, which bardo tells by its fields."
    ),
    "generate_or_load ollama": Description(
        "Chat", "Ollama", f"{_MODEL_CALL} A request without messages loads a model at an Ollama server. Streamed unless `stream` is false."
    ),
    "generate_or_load ollama_generate": Description(
        "Complete a prompt", "Ollama", f"{_MODEL_CALL} A request without a prompt loads a model. Streamed unless `stream` is false."
    ),
    "complete": Description("Complete prompts", "OpenAI", f"{_MODEL_CALL} Each prompt is a call of its own."),
    "embed openai_chat": Description("Create embeddings", "OpenAI", "Vectors of texts."),
    "embed ollama embed": Description("Create embeddings", "Ollama", "Vectors of texts."),
    "embed ollama embeddings": Description("Create one embedding", "Ollama", "The vector of one text, by Ollama's older endpoint."),
    "embed gemini embedContent": Description("Embed a content", "Gemini", "The vector of one content."),
    "embed gemini batchEmbedContents": Description("Embed contents", "Gemini", "Vectors of several contents."),
    "count_tokens anthropic_messages": Description(
        "Count the tokens of a message", "Anthropic", "`bardo.tokens_approx` marks an estimate, where the provider counts none."
    ),
    "count_tokens openai_responses": Description(
        "Count the tokens of a response's input", "OpenAI", "`bardo.tokens_approx` marks an estimate, where the provider counts none."
    ),
    "count_tokens gemini": Description(
        "Count tokens", "Gemini", "`bardo.tokens_approx` marks an estimate, where the provider counts none."
    ),
    "models openai_chat": Description(
        "List models",
        "OpenAI",
        "Three libraries ask here: the answer has Anthropic's form with the header `anthropic-version`, Gemini's with `x-goog-api-key` or "
        "`x-goog-api-client`, else OpenAI's.",
    ),
    "models gemini": Description("List models", "Gemini", "Every model that can be asked for, by the names to ask by."),
    "models ollama": Description("List models", "Ollama", "Every model that can be asked for, by the names to ask by."),
    "model openai_chat": Description(
        "Describe a model", "OpenAI", "In the form that the headers of the client tell, as the list of models. The name may hold slashes."
    ),
    "model gemini": Description("Describe a model", "Gemini", "The name may hold slashes."),
    "show_capabilities": Description("Show what a model can do", "Ollama", "What bardo knows of a model, in Ollama's form."),
    "loaded_models": Description("List loaded models", "Ollama", "Always empty: bardo runs no models itself."),
    "version": Description("Show the version", "Ollama", "Ollama's clients refuse to talk to older versions."),
    "root": Description("Say that somebody is there", "Operation", "A line of text, which Ollama's clients look for."),
    "show_response": Description("Show a kept response", "OpenAI", _KEPT),
    "delete_response": Description("Forget a kept response", "OpenAI", _KEPT),
    "list_input": Description("List the input items of a kept response", "OpenAI", _KEPT),
    "create_conversation": Description("Begin a conversation", "OpenAI", _KEPT),
    "show_conversation": Description("Show a conversation", "OpenAI", _KEPT),
    "update_conversation": Description("Change the metadata of a conversation", "OpenAI", _KEPT),
    "delete_conversation": Description("Forget a conversation", "OpenAI", _KEPT),
    "list_items": Description("List the items of a conversation", "OpenAI", _KEPT),
    "add_items": Description("Add items to a conversation", "OpenAI", _KEPT),
    "show_item": Description("Show an item of a conversation", "OpenAI", _KEPT),
    "delete_item": Description("Forget an item of a conversation", "OpenAI", _KEPT),
    "upload_file": Description("Upload a file for a batch", "OpenAI", _BATCHES),
    "list_files": Description("List files", "OpenAI", _BATCHES),
    "show_file": Description("Show a file", "OpenAI", _BATCHES),
    "delete_file": Description("Delete a file", "OpenAI", _BATCHES),
    "read_file": Description("Read a file", "OpenAI", _BATCHES),
    "create_batch": Description("Create a batch", "OpenAI", _BATCHES),
    "list_batches": Description("List batches", "OpenAI", _BATCHES),
    "show_batch": Description("Show a batch", "OpenAI", _BATCHES),
    "cancel_batch": Description("Cancel a batch", "OpenAI", _BATCHES),
    "create_message_batch": Description("Create a message batch", "Anthropic", _BATCHES),
    "list_message_batches": Description("List message batches", "Anthropic", _BATCHES),
    "show_message_batch": Description("Show a message batch", "Anthropic", _BATCHES),
    "delete_message_batch": Description("Delete a message batch", "Anthropic", _BATCHES),
    "cancel_message_batch": Description("Cancel a message batch", "Anthropic", _BATCHES),
    "read_message_batch": Description("Read the results of a message batch", "Anthropic", _BATCHES),
    "feedback": Description(
        "Say what an answer was worth", "bardo", "One of `thumbs` and `score`. Only where the gateway keeps a log (`[log]` in bardo.toml)."
    ),
    "usage": Description("Show what the key has used", "bardo", "Only where the gateway asks for keys."),
    "show_cache": Description("Show how many replies are kept", "bardo", "Only where a pipeline profile keeps replies; of the caller."),
    "purge_cache": Description("Remove kept replies", "bardo", "Of the caller only: all, or those of a tag or a model."),
    "search_memory": Description("Search past thinking", "bardo", _MEMORY),
    "show_episode": Description("Show the thinking of a call", "bardo", _MEMORY),
    "forget_episode": Description("Forget the thinking of a call", "bardo", f"The log loses what was said in the call. {_MEMORY}"),
    "provider_health": Description(
        "Show the health of providers", "bardo", "Providers, their keys and their models, by the calls of this process."
    ),
    "list_lessons": Description("List what refusals taught", "bardo", "Of this process; an operator's key sees those of all callers."),
    "forget_lessons": Description("Forget all that refusals taught", "bardo", "Operators only."),
    "forget_lesson": Description("Forget a lesson", "bardo", "Operators only."),
    "events": Description(
        "Follow what happens",
        "bardo",
        "Server-sent events, until the client leaves. `event: missed` says that some were missed. A key sees the events of its own calls.",
    ),
    "metrics": Description("Show metrics", "Operation", "For Prometheus; only where `[telemetry]` of bardo.toml counts metrics."),
    "health": Description("Say that the gateway runs", "Operation", "Needs no key."),
    "ready": Description(
        "Say that calls can be answered", "Operation", "The ids of the providers that are configured, or why no call can be answered."
    ),
    "openapi": Description("Show this document", "Operation", "With an entity tag: a client that has the document gets 304."),
}  # fmt: skip
"""The words by the form of a route, by its endpoint and dialect, or by its endpoint alone."""


def description_of(form: str) -> Description:
    """Return the words of a form. Raises KeyError where nobody has written any."""
    return DESCRIPTIONS[longest_name(form, DESCRIPTIONS) or form]
