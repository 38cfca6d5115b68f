"""The OpenAI Chat Completions dialect and its variants.

A provider is a class in `providers/` that overrides the few methods where its replies differ: the envelope, the place
of reasoning, the place of usage, the shape of tool calls, the error messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from bardo.simulators import chat_request
from bardo.simulators.demands import LONGEST_NAMES, MISTRAL_ORDER, MISTRALS, OPENAI_NAMES, Demands
from bardo.simulators.embeddings import openai_embeddings
from bardo.simulators.exchange import JSON, Exchange, Incoming, Refusal, Reply, data_event, streamed, whole
from bardo.simulators.fields import Fields, at, compact
from bardo.simulators.provider import Provider
from bardo.simulators.turns import Conversation, ToolCall

DONE = b"data: [DONE]\n\n"


class Chat(Provider):
    """The base class of all providers that speak Chat Completions."""

    dialect: ClassVar[str] = "openai_chat"
    reasoning_field: ClassVar[str | None] = "reasoning_content"
    usage_place: ClassVar[Literal["asked", "always", "finish"]] = "asked"
    """A last chunk without choices (only when asked for, or always), or the chunk with the finish reason."""
    ends_with_done: ClassVar[bool] = True
    checks_tool_messages: ClassVar[bool] = False
    runs_templates: ClassVar[bool] = False
    """Whether the model's own chat template refuses roles out of its order."""
    choice_order: ClassVar[Sequence[str]] = ("index", "message", "finish_reason")
    call_order: ClassVar[Sequence[str]] = ("id", "type", "function")
    """The fields of the only choice of a whole reply, and of a tool call, in their order; what has no value there is null."""
    owner: ClassVar[str] = "system"
    embeds: ClassVar[Literal["no", "any", "strict"]] = "no"
    """Whether the server makes vectors of texts too, with any fields in a request for them or only with those it knows."""

    def is_generation_path(self, incoming: Incoming, path: str) -> bool:
        return path == "/chat/completions"

    def answer_other_path(self, incoming: Incoming, path: str) -> Reply | None:
        if path != "/embeddings" or self.embeds == "no" or incoming.method != "POST":
            return None
        return openai_embeddings(incoming, strict=self.embeds == "strict")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        return chat_request.read(incoming, checks_tool_messages=self.checks_tool_messages)

    def demands(self, model: str) -> Demands:
        of_template = MISTRAL_ORDER if self.runs_templates and MISTRALS.search(model) else ""
        # Servers on one's own machine look at the length of a name, if at all.
        return Demands(tool_names=OPENAI_NAMES if self.needs_key else LONGEST_NAMES, user_after_tool=of_template)

    def encode_reply(self, exchange: Exchange) -> Reply:
        return whole(self.encode_json(self.completion(exchange)))

    def encode_json(self, value: Fields) -> bytes:
        """Encode the JSON of a whole reply."""
        return compact(value)

    def encode_stream(self, exchange: Exchange) -> Reply:
        return streamed(self.frames(exchange))

    def frames(self, exchange: Exchange) -> Iterator[bytes]:
        """Yield the bytes of each event."""
        for chunk in self.chunks(exchange):
            yield data_event(chunk)
        if self.ends_with_done:
            yield DONE

    # What a reply holds.

    def envelope(self, exchange: Exchange, kind: str) -> Fields:
        """Return the fields around the choices; `kind` is the value of `object`."""
        return {"id": self.reply_id(exchange), "object": kind, "created": exchange.created, "model": exchange.model}

    def reply_id(self, exchange: Exchange) -> str:
        """Return the id of the reply."""
        return f"chatcmpl-{exchange.token('reply', 29)}"

    def completion(self, exchange: Exchange) -> Fields:
        """Return a whole reply."""
        return {
            **self.envelope(exchange, "chat.completion"),
            "choices": [self.whole_choice(exchange)],
            "usage": self.usage(exchange),
        }

    def whole_choice(self, exchange: Exchange) -> Fields:
        """Return the only choice of a whole reply."""
        choice: Fields = {"index": 0, "message": self.message(exchange), "finish_reason": self.finish(exchange)}
        return {name: choice.get(name) for name in self.choice_order}

    def message(self, exchange: Exchange) -> Fields:
        """Return the message of a whole reply."""
        turn = exchange.turn
        message: Fields = {"role": "assistant", "content": self.whole_content(exchange)}
        if self.reasoning_field and turn.reasoning:
            message[self.reasoning_field] = turn.reasoning
        if turn.tool_calls:
            message["tool_calls"] = [self.tool_call(exchange, index, call) for index, call in exchange.calls()]
        return message

    def whole_content(self, exchange: Exchange) -> object:
        """Return the message's content."""
        return exchange.turn.text

    def tool_call(self, exchange: Exchange, index: int, call: ToolCall) -> Fields:
        """Return one whole tool call."""
        written: Fields = {
            "id": self.call_id(exchange, index, call),
            "index": index,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments_text},
        }
        return {name: written.get(name) for name in self.call_order}

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        """Return the id of a tool call."""
        return call.id or f"call_{exchange.token(f'call{index}', 24)}"

    def finish(self, exchange: Exchange) -> str:
        """Return the provider's finish reason."""
        return exchange.turn.ending

    def usage(self, exchange: Exchange) -> Fields:
        """Return the token counts: reasoning inside the completion, cached tokens inside the prompt."""
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.output_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {"cached_tokens": usage.cached_input_tokens},
            "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        }

    # What a stream holds.

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        """Yield the chunks of a stream."""
        for delta in self.deltas(exchange):
            yield self.chunk(exchange, [self.choice(delta, None)])
        yield from self.closing_chunks(exchange)

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """Yield what each chunk adds, up to the one with the finish reason."""
        yield from self.opening_deltas(exchange)
        for piece in exchange.pieces(exchange.turn.reasoning):
            yield self.reasoning_delta(piece)
        for piece in exchange.pieces(exchange.turn.text):
            yield self.content_delta(piece)
        for index, call in exchange.calls():
            yield from self.call_deltas(exchange, index, call)

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """Yield the deltas before any text."""
        yield {"role": "assistant", "content": ""}

    def reasoning_delta(self, piece: str) -> Fields:
        """Return the delta of some reasoning."""
        return {self.reasoning_field or "reasoning_content": piece}

    def content_delta(self, piece: str) -> Fields:
        """Return the delta of some text."""
        return {"content": piece}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Yield the deltas of a tool call: its name, then its arguments in pieces."""
        opened = {**self.tool_call(exchange, index, call), "function": {"name": call.name, "arguments": ""}}
        yield {"tool_calls": [{"index": index, **opened}]}
        for piece in exchange.pieces(call.arguments_text):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        """Return the only choice of a chunk."""
        return {"index": 0, "delta": delta, "finish_reason": finish}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        """Return one chunk."""
        chunk = {**self.envelope(exchange, "chat.completion.chunk"), "choices": choices}
        return {**chunk, "usage": usage} if usage is not None else chunk

    def closing_chunks(self, exchange: Exchange) -> Iterator[Fields]:
        """Yield the chunks with the finish reason and the usage."""
        last = self.choice(self.last_delta(), self.finish(exchange))
        usage = self.usage(exchange) if self.usage_place == "finish" else None
        yield self.chunk(exchange, [last], usage)
        if self.usage_place == "always" or (self.usage_place == "asked" and asks_for_usage(exchange)):
            yield self.chunk(exchange, [], self.usage(exchange))

    def last_delta(self) -> Fields:
        """Return the delta beside the finish reason."""
        return {}

    # Errors.

    def encode_refusal(self, refusal: Refusal) -> Reply:
        return whole(compact(self.error_body(refusal)), status=refusal.status, content_type=JSON)

    def error_body(self, refusal: Refusal) -> Fields:
        """Encode a refusal as OpenAI does."""
        error: Fields = {
            "message": refusal.message,
            "type": chat_request.error_type(refusal),
            "param": refusal.parameter,
            "code": chat_request.error_code(refusal),
        }
        return {"error": error}

    def error_events(self) -> Sequence[bytes]:
        return [data_event(self.error_body(Refusal("trouble", "The server had an error.", status=500)))]

    def list_models(self, path: str, models: Sequence[str]) -> Reply | None:
        if path == "/models":
            return whole(compact({"object": "list", "data": [self.model_row(model) for model in models]}))
        model = path.removeprefix("/models/")
        return whole(compact(self.model_row(model))) if model in models else None

    def model_row(self, model: str) -> Fields:
        """Describe one model."""
        return {"id": model, "object": "model", "created": 1735689600, "owned_by": self.owner}


def asks_for_usage(exchange: Exchange) -> bool:
    """Whether the request wants a last chunk with the usage."""
    return at(exchange.body, "stream_options.include_usage") is True
