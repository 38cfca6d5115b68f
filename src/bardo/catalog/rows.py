"""The typed rows of the catalog."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal
from urllib.parse import quote

import msgspec

from bardo.catalog.matching import matches_any

Auth = Literal["bearer", "x-api-key", "x-goog-api-key", "api-key", "aws", "google", "none", "client"]
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
Payment = Literal["x402", "prepaid", "api_key", "diem", "wallet"]
"""How a provider is paid: by each call in USDC, from credit bought before, on the account of the key, by staked DIEM, or by the agent's
own wallet."""
ReplayForm = Literal[
    "none", "reasoning_content", "reasoning", "reasoning_details", "thinking_blocks", "content_list", "think_tags"
]


class Quirks(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider differs from its dialect.

    Reading is liberal: every field that is known to carry reasoning is read wherever it occurs. These rows are for what cannot be
    seen in a reply, and for what must be sent.
    """

    inline_reasoning: str = ""
    """The text format that may stand inside the content, by its name in `reasoning_formats.toml`; empty: content is only content."""
    separates_reasoning: bool = False
    """Whether the server takes the thinking out of the content unless it is told otherwise; `inline_reasoning` may stand there then."""
    output_excludes_reasoning: bool | None = None
    """Whether the output count leaves reasoning out. None: believe the reply's own total."""
    reply_field: str = "reasoning_content"
    """Where the reply's reasoning stands; anything but bardo's own choice for the dialect means that frames cannot be forwarded."""
    replay: ReplayForm = "none"
    """How earlier reasoning is given back."""
    output_limit_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name of Chat's output limit; a client may use either, and gets this one."""
    developer_role: bool = False
    """Whether messages of the role `developer` are taken; elsewhere they become `system`."""
    one_system: bool = False
    """Whether only one system message is taken, at the beginning: others there are joined to it, and later ones become the user's."""
    media_in_results: bool = False
    """Whether results of tools may hold pictures and documents in Chat; elsewhere those go into a message of the user after them."""
    stream_usage: bool = True
    """Whether usage in a stream must be asked for."""
    thought_signatures: bool = False
    """Whether tool calls take Gemini's signatures under `extra_content`."""
    signed_calls: tuple[str, ...] = ()
    """Globs of the models that refuse calls of the current turn without a signature, where `replay` is `reasoning_details`."""
    reasoning_format: str = ""
    """Whose reasoning items these are, where the dialect's own name for them would be wrong: xAI's Responses."""
    markers: dict[str, int] = {}
    """The markers of other dialects that parts of text take beyond those of the provider's dialect, and how many: `cache_control`."""
    own_tools: bool = False
    """Whether the tools that only Responses has are taken: custom ones, those in namespaces, and the search for tools."""
    cited_pages: tuple[str, ...] = ()
    """Fields of a reply that list the web pages it rests on, by their paths; the first one that lists any counts."""
    continues: dict[str, Any] | None = None
    """The fields that have the server go on with the answer that the last message begins, none if it does so by itself;
    None: it cannot, or this is unknown."""
    repeats_role: bool = False
    """Whether every chunk of a stream names the role: OpenAI's library would add them up to `assistantassistant…`."""

    @property
    def plain(self) -> bool:
        """Whether a reply needs nothing changed for a client of the same dialect."""
        return (
            not self.inline_reasoning
            and not self.output_excludes_reasoning
            and not self.repeats_role
            and self.reply_field in ("", "reasoning_content")
        )


class EmbedEndpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a provider makes vectors of texts, and what it takes there.

    `dialect` is the one that is spoken there, which need not be the one for replies; `payload` is the family of a model whose provider
    only wraps what the family takes (Bedrock). `models` are globs of the models that make vectors, empty where their names do not tell;
    `fixed` those whose vectors have one length only. `most_inputs` go into one call, 0 is no bound. `tasks` are the provider's words for
    what vectors are for, where OpenAI's dialect is spoken: it has none of its own.
    """

    dialect: DialectName
    path: str = ""
    payload: Literal["", "titan", "cohere"] = ""
    models: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    most_inputs: int = 0
    tasks: dict[str, str] = {}

    def serves(self, model: str) -> bool:
        """Whether the model may be asked for vectors here."""
        return not self.models or matches_any(model.lower(), self.models)

    def fixes_dimensions(self, model: str) -> bool:
        """Whether the model's vectors have one length only."""
        return matches_any(model.lower(), self.fixed)


class ReplyEndpoint(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One more endpoint where a provider answers requests, beside the one that its row describes.

    `base_url`, `auth` and `headers` are the row's own where they are not given. `models` are globs of the models that answer here, all
    where there are none, and `not_models` of those that do not. `lacks` are what its replies leave out and the other endpoints' hold, by
    the names of degradations.
    """

    dialect: DialectName
    base_url: str = ""
    auth: Auth | None = None
    headers: dict[str, str] | None = None
    models: tuple[str, ...] = ()
    not_models: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    quirks: Quirks = Quirks()


class LoginForm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One kind of credential that clients have of their own for a provider: how it is known, and how it is sent.

    `begins` is how it begins, `beside` a header that comes with it. It is sent in `header`, with `headers` of every such call, and with
    those of the client's own that `passes` names.
    """

    name: str
    header: str
    begins: str = ""
    beside: str = ""
    headers: dict[str, str] = {}
    passes: tuple[str, ...] = ()


class ModelPaths(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The paths of a provider with other paths than its dialect's: it names the model in its path, with `{model}` in them, or in the body.

    `model_field` is the body's field for the model, empty where only the path names it. `body` goes beside the rest, `without` are fields
    that the path says and the body does not, and `words` the names of fields whose values are plain words, by the dialect's own names.
    """

    whole: str
    streamed: str
    model_field: str = ""
    body: dict[str, str] = {}
    without: tuple[str, ...] = ()
    words: dict[str, str] = {}

    def path(self, model: str, *, stream: bool) -> str:
        """Return the path below the base URL."""
        return (self.streamed if stream else self.whole).replace("{model}", quote(model, safe="@:"))

    def fields(self, body: dict[str, Any], model: str) -> dict[str, Any]:
        """Return the dialect's body as this provider takes it."""
        named = {self.model_field: model} if self.model_field else {}
        left_out = {"model", *self.without}
        fields = {name: value for name, value in body.items() if name not in left_out}
        renamed = {
            self.words.get(name, name) if isinstance(value, str) else name: value for name, value in fields.items()
        }
        return {**named, **self.body, **renamed}


class ProviderTraits(msgspec.Struct, frozen=True, kw_only=True):
    """The traits of a provider as a business.

    `private`: it keeps no prompts and no answers. `self_funding`: the agent's own revenue pays for its calls. `context_engineering`: the
    layers that make a prompt smaller may work on its calls. `payment` are the ways in which it is paid, the preferred one first; empty
    where it is unknown.
    """

    private: bool = False
    self_funding: bool = False
    context_engineering: bool = True
    payment: tuple[Payment, ...] = ()


class LimitHeaders(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The headers in which a provider reports the rest of one limit, and when it resets; in lower case."""

    remaining: str = ""
    reset: str


# OpenAI's, which most who speak its dialect have taken over (platform.openai.com/docs/guides/rate-limits, as of 2026-11).
USUAL_LIMITS = (
    LimitHeaders(remaining="x-ratelimit-remaining-requests", reset="x-ratelimit-reset-requests"),
    LimitHeaders(remaining="x-ratelimit-remaining-tokens", reset="x-ratelimit-reset-tokens"),
    LimitHeaders(remaining="x-ratelimit-remaining", reset="x-ratelimit-reset"),
)


class ProviderRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Who runs models, and how to speak with them.

    `key_variables` are tried in order, and `header_variables` hold the values of further headers. `models` are globs of the model ids it
    serves, used for bare model names. `port` is set for local servers that are looked for at start. `scope_fields` are the fields of a
    request that name the account's project, `address_fields` those named in braces in `base_url`; `scope` holds the configured values of
    both. `hosts` are the hosts of places whose host is not written like the others'. `paths` are those of a provider with other paths than
    its dialect's. `generic`: the row stands for any server of its dialect, where only the dialect is configured. `counts_tokens`: it has
    its dialect's endpoint that counts the tokens of a request. `embeddings` are where it makes vectors of texts. `endpoints` are the
    further endpoints where it answers requests. Of the row's own one `only_models` are globs of the models that answer there, all where
    there are none, `not_models` of those that do not, and `lacks` is what its replies leave out, by the names of degradations. `private`,
    `self_funding`, `context_engineering` and `payment` are its traits (`ProviderTraits`). `limit_headers` report the rest of its rate
    limits. `several_keys`: the `key_variables` hold keys that take turns. `free_list`: its list of models costs nothing, so that it may be
    asked for to see whether the provider is there. `searches_per_day` is in how many calls of a day it may be asked to search the web, None
    for any number: an operator's word. `hands_on`: it hands calls on to other servers, or is a service of somebody else, so that its
    address says nothing of who sees them. `balance_headers` are the headers, in lower case, in which it reports the account's balance, by
    its currency: `diem`, `usd`. `model_variants` are the words that may stand behind a model's id and a colon, by which it chooses among
    the servers of that model, and whether its listed price holds. `attribution` is what it gets of the block of a system prompt by which
    Claude Code names itself: `whole` where it reads the block and takes it out of the prompt, `stable` where it reads it as a part of the
    prompt, so that the parts that differ between two requests are left out. `logins` are the kinds of credentials that clients have of
    their own for it.
    """

    id: str
    name: str
    dialect: DialectName
    base_url: str = ""
    auth: Auth = "bearer"
    key_variables: tuple[str, ...] = ()
    headers: dict[str, str] = {}
    header_variables: dict[str, str] = {}
    scope_fields: tuple[str, ...] = ()
    scope: dict[str, str] = {}
    address_fields: tuple[str, ...] = ()
    hosts: dict[str, str] = {}
    paths: ModelPaths | None = None
    models: tuple[str, ...] = ()
    model_list: str = "models"
    port: int | None = None
    aliases: tuple[str, ...] = ()
    billed_as_output: bool = True
    generic: bool = False
    counts_tokens: bool = False
    embeddings: tuple[EmbedEndpoint, ...] = ()
    endpoints: tuple[ReplyEndpoint, ...] = ()
    only_models: tuple[str, ...] = ()
    not_models: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    private: bool = False
    self_funding: bool = False
    context_engineering: bool = True
    payment: tuple[Payment, ...] = ()
    limit_headers: tuple[LimitHeaders, ...] = USUAL_LIMITS
    several_keys: bool = False
    hands_on: bool = False
    free_list: bool = False
    searches_per_day: int | None = None
    balance_headers: dict[str, str] = {}
    model_variants: dict[str, bool] = {}
    attribution: Literal["", "stable", "whole"] = ""
    logins: tuple[LoginForm, ...] = ()
    quirks: Quirks = Quirks()

    @cached_property
    def at_endpoints(self) -> tuple[ProviderRow, ...]:
        """The row as it is at each endpoint of the provider: itself first, then `endpoints` in their order."""
        return (self, *(self._with_endpoint(endpoint) for endpoint in self.endpoints))

    def _with_endpoint(self, endpoint: ReplyEndpoint) -> ProviderRow:
        return msgspec.structs.replace(
            self,
            dialect=endpoint.dialect,
            base_url=endpoint.base_url or self.base_url,
            auth=endpoint.auth or self.auth,
            headers=self.headers if endpoint.headers is None else endpoint.headers,
            only_models=endpoint.models,
            not_models=endpoint.not_models,
            lacks=endpoint.lacks,
            quirks=endpoint.quirks,
            endpoints=(),
        )

    @property
    def traits(self) -> ProviderTraits:
        """The traits of the provider as a business."""
        return ProviderTraits(
            private=self.private,
            self_funding=self.self_funding,
            context_engineering=self.context_engineering,
            payment=self.payment,
        )

    def answers(self, model: str) -> bool:
        """Whether the model answers at this endpoint."""
        if not self.not_models and not self.only_models:
            return True
        name = model.lower()
        return not matches_any(name, self.not_models) and (not self.only_models or matches_any(name, self.only_models))

    @property
    def local(self) -> bool:
        """Whether it usually runs on the user's own machine."""
        return self.port is not None

    @property
    def at_users_address(self) -> bool:
        """Whether its address is the user's own: on the user's machine, or named in the configuration alone."""
        return not self.base_url or self.base_url.startswith("http://127.0.0.1:")

    def embeds(self, model: str) -> EmbedEndpoint | None:
        """Return where the model is asked for vectors, or None if the provider makes none of it."""
        return next((endpoint for endpoint in self.embeddings if endpoint.serves(model)), None)

    def serves(self, model: str) -> bool:
        """Whether one of the row's globs fits the model id, case aside."""
        return matches_any(model.lower(), map(str.lower, self.models))

    def serves_path(self, model: str) -> bool:
        """Whether a glob that itself has a slash fits the model id: `*/*` is about `openrouter/auto`, `qwen*` not about `qwen/m`."""
        return matches_any(model.lower(), [glob.lower() for glob in self.models if "/" in glob])
