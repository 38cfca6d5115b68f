"""The typed rows of the catalog."""

from __future__ import annotations

from typing import Literal

import msgspec

from bardo.catalog.matching import matches_any

Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "aws", "none"]
DialectName = Literal[
    "openai_chat",
    "openai_responses",
    "anthropic_messages",
    "gemini",
    "gemini_interactions",
    "ollama",
    "cohere",
    "bedrock_converse",
    "bedrock_invoke",
    "watsonx_text",
]
ReplayForm = Literal["none", "reasoning_content", "reasoning", "reasoning_details", "content_list", "think_tags"]


class Quirks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider differs from its dialect.

    Reading is liberal: every field that is known to carry reasoning is read wherever it occurs. These rows are for what cannot be
    seen in a reply, and for what must be sent.
    """

    inline_reasoning: str = ""
    """The text format that may stand inside the content, by its name in `reasoning_formats.toml`; empty: content is only content."""
    separates_reasoning: bool = False
    """Whether the server takes the thinking out of the content unless it is told otherwise; `inline_reasoning` may stand there then."""
    reasoning_beside_output: bool | None = None
    """Whether the output count leaves reasoning out. None: believe the reply's own total."""
    reply_field: str = "reasoning_content"
    """Where the reply's reasoning stands; anything but bardo's own choice for the dialect means that frames cannot be forwarded."""
    replay: ReplayForm = "none"
    """How earlier reasoning is given back."""
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    stream_usage: bool = True
    """Whether usage in a stream must be asked for."""
    thought_signatures: bool = False
    """Whether tool calls take Gemini's signatures under `extra_content`."""
    reasoning_format: str = ""
    """Whose reasoning items these are, where the dialect's own name for them would be wrong: xAI's Responses."""
    repeats_role: bool = False
    """Whether every chunk of a stream names the role: OpenAI's library would add them up to `assistantassistant…`."""

    @property
    def plain(self) -> bool:
        """Whether a reply needs nothing changed for a client of the same dialect."""
        return (
            not self.inline_reasoning
            and not self.reasoning_beside_output
            and not self.repeats_role
            and self.reply_field in ("", "reasoning_content")
        )


class ProviderRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who runs models, and how to speak with them.

    `key_variables` are tried in order. `models` are globs of the model ids it serves, used for bare model names. `port` is set for local
    servers that are looked for at start. `folders` are further names under which its replies are filed.
    """

    id: str
    name: str
    dialect: DialectName
    base_url: str = ""
    auth: Auth = "bearer"
    key_variables: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    models: tuple[str, ...] = ()
    model_list: str = "models"
    port: int | None = None
    aliases: tuple[str, ...] = ()
    billed_as_output: bool = True
    quirks: Quirks = Quirks()

    @property
    def local(self) -> bool:
        """Whether it usually runs on the user's own machine."""
        return self.port is not None

    @property
    def at_users_address(self) -> bool:
        """Whether its address is the user's own: on the user's machine, or named in the configuration alone."""
        return not self.base_url or self.base_url.startswith("http://127.0.0.1:")

    def serves(self, model: str) -> bool:
        """Whether one of the row's globs fits the model id, case aside."""
        return matches_any(model.lower(), map(str.lower, self.models))
