"""IBM watsonx.ai's chat: Chat Completions in other words. The path says whether to stream, and the model is `model_id`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat
from bardo.simulators.conversation import Conversation
from bardo.simulators.exchange import Exchange
from bardo.simulators.fields import Fields, compact
from bardo.simulators.incoming import Incoming
from bardo.simulators.providers.watsonx_errors import WatsonxErrors
from bardo.simulators.refusal import Refusal
from bardo.simulators.reply import Reply, streamed

# What a request may hold: ibm-watsonx-ai 1.8.1, TextChatParameters, and the page of the API (as of 2026-11).
_FIELDS = frozenset(
    (
        "model_id", "project_id", "space_id", "messages", "tools", "tool_choice", "tool_choice_option", "context", "frequency_penalty",
        "logit_bias", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "n", "presence_penalty", "response_format", "seed",
        "stop", "temperature", "top_p", "time_limit", "repetition_penalty", "length_penalty", "include_reasoning", "reasoning_effort",
        "chat_template_kwargs", "guided_choice", "guided_regex", "guided_grammar", "guided_json", "crypto",
    )
)  # fmt: skip
_OPTIONS = ("none", "auto", "required")


class WatsonxChat(WatsonxErrors, Chat):
    """us-south.ml.cloud.ibm.com/ml/v1/text/chat and text/chat_stream."""

    name = "watsonx"
    catalog_name = "watsonx-chat"
    base_path = "/ml/v1"
    models = ("deepseek-ai/deepseek-r1-distill-llama-70b", "ibm/granite-3-3-8b-instruct")
    usage_place = "always"
    ends_with_done = False
    off_switches = (("chat_template_kwargs.thinking", False),)

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path in ("/text/chat", "/text/chat_stream")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        if not incoming.query.get("version"):
            raise Refusal("missing_field", "Missing required query parameter: version", parameter="version")
        body = chat_request.json_body(incoming)
        _check(body)
        named = replace(incoming, body={**body, "model": body["model_id"]})
        conversation = chat_request.read(named)
        forbidden = body.get("tool_choice_option") == "none"
        return replace(conversation, streamed=path.endswith("_stream"), tools=() if forbidden else conversation.tools)

    def encode_stream(self, exchange: Exchange) -> Reply:
        return streamed(self.frames(exchange), content_type="text/event-stream")

    def frames(self, exchange: Exchange) -> Iterator[bytes]:
        for number, chunk in enumerate(self.chunks(exchange), start=1):
            yield f"id: {number}\nevent: message\ndata: ".encode() + compact(chunk) + b"\n\n"

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        moment = datetime.fromtimestamp(exchange.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        head = super().envelope(exchange, kind)
        return {**head, "model_id": exchange.model, "model_version": "1.0.0", "created_at": moment}


def _check(body: Fields) -> None:
    """Refuse what the server does. Raises Refusal."""
    for name in ("model_id", "messages"):
        if not body.get(name):
            raise Refusal(
                "missing_field", f"Json document validation error: {name} should not be blank", parameter=name
            )
    if bool(body.get("project_id")) == bool(body.get("space_id")):
        message = "Json document validation error: exactly one of project_id and space_id should be given"
        raise Refusal("missing_field", message, parameter="project_id")
    unknown = next((name for name in body if name not in _FIELDS), None)
    if unknown is not None:
        raise Refusal("bad_value", f"Json document validation error: unknown field {unknown}", parameter=unknown)
    choice, option = body.get("tool_choice"), body.get("tool_choice_option")
    if isinstance(choice, str):
        raise _invalid("tool_choice", "should be an object")
    if option is not None and (choice is not None or option not in _OPTIONS):
        raise _invalid("tool_choice_option", f"should be one of {', '.join(_OPTIONS)}, without a tool_choice")


def _invalid(name: str, words: str) -> Refusal:
    return Refusal("bad_value", f"Json document validation error: {name} {words}", parameter=name)
