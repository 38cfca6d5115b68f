"""Amazon Bedrock's InvokeModel: `POST /model/{modelId}/invoke` and `/invoke-with-response-stream`.

Bedrock only wraps what the model's family speaks: Anthropic Messages for Claude, Chat Completions for gpt-oss, Qwen and most others, and
nearly Converse for Nova. This dialect wraps and unwraps, and the dialects of those payloads do the rest. A client's request is one of the
payload's language, and stays one: `dialect` names that language, so that its fields keep their meaning. A stream is `chunk` events with the
payload as base64 under `bytes`; a whole reply is the payload itself. What Bedrock adds to a payload under names of its own
(`amazon-bedrock-…`) is carried as fields of the payload's dialect.

Claude's signatures on Bedrock are written like Anthropic's, and readable by Bedrock only. The Anthropic dialect takes them for its own, so
they are named anew on their way in and out. Redacted thinking stands in Converse as base64 of what Anthropic's payload holds; it is kept as
Converse has it, so that a conversation can move between the two.

Beside replies there are vectors by InvokeModel (Titan takes one text in words of its own, Cohere's models take what Cohere takes), and for
clients CountTokens (of a body of InvokeModel in base64, or a Converse request) and lists of inference profiles.
"""

import base64
import binascii
from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal, get_args

import msgspec

from bardo.catalog.endpoint_choice import dialect_models
from bardo.catalog.rows import EmbedEndpoint, ProviderRow
from bardo.dialects import dialect
from bardo.dialects.bedrock_converse import DIALECT as CONVERSE
from bardo.dialects.bedrock_converse.errors import (
    decode_error,
    encode_error,
    error_headers,
    exception_of,
    is_refusal,
    refusal,
    stream_refusal,
)
from bardo.dialects.bedrock_converse.reply_in import Decoder as ConverseDecoder
from bardo.dialects.bedrock_converse.reply_out import Encoder as ConverseEncoder
from bardo.dialects.bedrock_converse.reply_out import encode_response as encode_converse
from bardo.dialects.bedrock_converse.request_out import path_of
from bardo.dialects.bedrock_converse.wire import ADDITIONAL, FORMAT
from bardo.dialects.cohere.operations import decode_vectors, encode_texts
from bardo.dialects.shared.dialect import (
    CountForm,
    Dialect,
    EmbeddingForm,
    ModelsForm,
    ReplyDecoder,
    ReplyEncoder,
    lost_fields,
    numbers,
    page_size,
    place_of,
    texts_of,
    whole_number,
    with_bardo,
)
from bardo.dialects.shared.json_values import (
    JsonObject,
    decode_leniently,
    decode_object,
    encode_json,
    excerpt,
    optional,
    required,
    write_json,
)
from bardo.dialects.shared.losses import Losses
from bardo.dialects.shared.spellings import path_segment
from bardo.streams.eventstream import CONTENT_TYPE, EventStreamDecoder, encode_event
from bardo.streams.frames import Frame
from bardo.streams.sse import SseDecoder
from bardo.streams.stage import Stage
from bardo.values.blocks import Block, Opaque, ReasoningBlock, ReplyBlock
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, BrokenStream, InvalidRequest, MalformedReply, ProviderError, Unsupported
from bardo.values.events import Event, Extension, Failed, OpaqueState, ReplyFields, ThinkStart
from bardo.values.operations import Embeddings, EmbedRequest, ModelInfo, TokenCount
from bardo.values.request import Message, Request
from bardo.values.response import Response
from bardo.values.usage import Usage
from bardo.values.wire import OF_CLOUD, Arrival, WireRequest

NAME: Final = "bedrock_invoke"


class Chunk(msgspec.Struct, gc=False, rename={"payload": "bytes"}):
    """A frame of a stream, which holds the payload's own as base64. What stands beside it says nothing."""

    payload: bytes


Payload = Literal["anthropic_messages", "openai_chat", "bedrock_converse"]
"""The dialects whose bodies InvokeModel holds."""
_CONVERSE = frozenset(
    ("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata", "output")
)


def payload_of(model: str) -> Payload:
    """Return the language of a model's payloads. Raises Unsupported where it is one of the model's own."""
    payload = _payload(dialect_models(NAME, model).payload)
    if payload is None:
        raise Unsupported(
            f"InvokeModel wants a body of its own for {model}",
            hint="ask for it through Converse: a provider with the catalog row bedrock",
        )
    return payload


# Fields that only one language has, and that Bedrock demands in it.
_MARKS: tuple[tuple[str, Payload], ...] = (
    ("anthropic_version", "anthropic_messages"),
    ("schemaVersion", "bedrock_converse"),
)


def payload_of_body(fields: JsonObject, model: str) -> Payload:
    """Return the language of a client's body. Its mark goes before the model, which need not be one of Bedrock's. Raises Unsupported."""
    return next((payload for mark, payload in _MARKS if mark in fields), None) or payload_of(model)


def payload_for(request: Request) -> Payload:
    """Return the language of the reply to a client's request: the one that its body was in."""
    return _payload(request.dialect) or payload_of(request.model)


def _payload(name: str) -> Payload | None:
    return next((payload for payload in get_args(Payload) if payload == name), None)


def payload_in(value: JsonObject) -> Payload | None:
    """Return the language a reply's first payload is in, or None if it is in none of them."""
    if "choices" in value:
        return "openai_chat"
    if value.keys() & _CONVERSE:
        return "bedrock_converse"
    return "anthropic_messages" if isinstance(value.get("type"), str) else None


ANTHROPIC = "anthropic-claude-v1"
DIRECT = f"{ANTHROPIC}-direct"
"""Signatures of Anthropic itself, on their way to a client of InvokeModel and back: there the plain format is Bedrock's."""


def bedrocks(state: Opaque) -> Opaque:
    """Return state of an Anthropic payload under Bedrock's name, or under Anthropic's where Anthropic itself signed it."""
    if state.format == DIRECT:
        return Opaque(state.kind, state.data, ANTHROPIC)
    if state.format != ANTHROPIC:
        return state
    data = base64.b64encode(state.data.encode()).decode() if state.kind == "redacted" else state.data
    return Opaque(state.kind, data, FORMAT)


def anthropics(state: Opaque) -> Opaque:
    """Return Bedrock's state as an Anthropic payload has it."""
    if state.format != FORMAT:
        return state
    return Opaque(state.kind, _decoded(state.data) if state.kind == "redacted" else state.data, ANTHROPIC)


def clients(state: Opaque) -> Opaque:
    """Return state as an Anthropic payload has it for a client of InvokeModel."""
    return Opaque(state.kind, state.data, DIRECT) if state.format == ANTHROPIC else anthropics(state)


def event_of_bedrock(event: Event) -> Event:
    """Return a decoded event with its state under Bedrock's name."""
    if type(event) is OpaqueState:
        return OpaqueState(event.block, bedrocks(event.opaque), event.choice)
    if type(event) is ThinkStart and event.format == ANTHROPIC:
        return ThinkStart(event.block, FORMAT, event.choice)
    return event


def event_of_anthropic(event: Event) -> Event:
    """Return an event with its state as an Anthropic payload has it for a client."""
    if type(event) is OpaqueState:
        return OpaqueState(event.block, clients(event.opaque), event.choice)
    return event


def response_of_anthropic(response: Response) -> Response:
    """Return a reply with its state as an Anthropic payload has it for a client."""
    return msgspec.structs.replace(response, blocks=tuple(_reply_block(block) for block in response.blocks))


def message_of_bedrock(message: Message) -> Message:
    """Return a client's message with each state under the name of who signed it."""
    blocks: tuple[Block, ...] = tuple(
        _block_of_bedrock(block) if isinstance(block, ReasoningBlock) else block for block in message.blocks
    )
    return msgspec.structs.replace(message, blocks=blocks)


def _block_of_bedrock(block: ReasoningBlock) -> ReasoningBlock:
    if not any(state.format in (ANTHROPIC, DIRECT) for state in block.opaque):
        return block
    states = tuple(bedrocks(state) for state in block.opaque)
    return msgspec.structs.replace(block, format=states[0].format, opaque=states)


def messages_for_claude(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], list[Degradation]]:
    """Return a history for Claude on Bedrock, without the thinking that Anthropic itself signed."""
    degradations: list[Degradation] = []
    return tuple(
        msgspec.structs.replace(message, blocks=tuple(_for_claude(message.blocks, degradations)))
        for message in messages
    ), degradations


def _for_claude(blocks: tuple[Block, ...], degradations: list[Degradation]) -> list[Block]:
    kept_blocks: list[Block] = []
    for block in blocks:
        if not isinstance(block, ReasoningBlock) or not block.opaque:
            kept_blocks.append(block)
            continue
        states = tuple(anthropics(state) for state in block.opaque if state.format != ANTHROPIC)
        if len(states) < len(block.opaque):
            why = "only thinking that Bedrock signed may be sent back to it"
            degradations.append(Degradation("reasoning", asked=ANTHROPIC, why=why))
        if states:
            kept_blocks.append(msgspec.structs.replace(block, opaque=states))
    return kept_blocks


def _reply_block(block: ReplyBlock) -> ReplyBlock:
    if not isinstance(block, ReasoningBlock):
        return block
    return msgspec.structs.replace(block, opaque=tuple(clients(state) for state in block.opaque))


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return data


_CONFIG = ("maxTokens", "temperature", "topP", "stopSequences")


def decode_request(body: bytes, arrival: Arrival) -> Request:
    """Read a request. Raises InvalidRequest naming the field."""
    fields = decode_object(body)
    model = arrival.model or required(fields, "model", str)
    payload = payload_of_body(fields, model)
    arrival = msgspec.structs.replace(arrival, model=model)
    if payload == "anthropic_messages":
        request = dialect(payload).decode_request(body, msgspec.structs.replace(arrival, endpoint=OF_CLOUD))
    else:
        fields = _converse(fields) if payload == "bedrock_converse" else {**fields, "model": model}
        request = dialect(payload).decode_request(_encode(fields), arrival)
    return msgspec.structs.replace(
        request,
        stream=request.stream if arrival.stream is None else arrival.stream,
        messages=tuple(message_of_bedrock(message) for message in request.messages),
    )


def _encode(fields: JsonObject) -> bytes:
    try:
        return msgspec.json.encode(fields)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply") from None


def _converse(fields: JsonObject) -> JsonObject:
    """Return Nova's body as Converse's: the model's own settings among the additional fields."""
    given = optional(fields, "inferenceConfig", dict) or {}
    config = {"maxTokens" if name == "max_new_tokens" else name: value for name, value in given.items()}
    own = {name: value for name, value in config.items() if name not in _CONFIG}
    additional: JsonObject = {}
    if "topK" in own:
        additional["inferenceConfig"] = {"topK": own.pop("topK")}
    additional |= own
    body = {name: value for name, value in fields.items() if name != "schemaVersion"}
    body["inferenceConfig"] = {name: config[name] for name in _CONFIG if name in config}
    return {**body, ADDITIONAL: additional}


VERSION = "bedrock-2023-05-31"
SCHEMA = "messages-v1"

# Amazon's page on Claude's request body lists these; any other is answered with 400.
_BETAS = frozenset((
    "computer-use-2024-10-22", "computer-use-2025-01-24", "computer-use-2025-11-24", "context-1m-2025-08-07",
    "context-management-2025-06-27", "dev-full-thinking-2025-05-14", "effort-2025-11-24",
    "interleaved-thinking-2025-05-14", "output-128k-2025-02-19", "token-efficient-tools-2025-02-19",
    "tool-examples-2025-10-29", "tool-search-tool-2025-10-19",
))  # fmt: skip
# Fields of Anthropic's own service.
_ABSENT = ("container", "inference_geo", "mcp_servers", "service_tier", "speed", "thread")


def payload_dialect(model: str) -> Dialect:
    """Return the dialect of a model's body. Raises Unsupported for a model whose body has a language of its own."""
    return dialect(payload_of(model))


def request_path(request: Request) -> str:
    """Return the path of a call to InvokeModel."""
    return path_of(request, "invoke", "invoke-with-response-stream")


def encode_body(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    """Return the body. Raises Unsupported for a model whose body has a language of its own."""
    payload = payload_dialect(request.model)
    if payload.name == "anthropic_messages":
        return _claude(request, row, losses)
    body = payload.encode_body(request, row, losses)
    return _nova(body) if payload.name == "bedrock_converse" else body


def encode_control(request: Request, losses: Losses) -> JsonObject:
    """Return the fields for thinking in the dialect of the model's body."""
    return payload_dialect(request.model).encode_control(request, losses)


def _claude(request: Request, row: ProviderRow, losses: Losses) -> JsonObject:
    messages, degraded = messages_for_claude(request.messages)
    losses.add_all(degraded)
    body = dialect("anthropic_messages").encode_body(msgspec.structs.replace(request, messages=messages), row, losses)
    for name in _ABSENT:
        if name in body:
            losses.lose(name, body.pop(name), "Bedrock has no such field")
    # Model and streaming stand in the path.
    left = {name: value for name, value in body.items() if name not in ("model", "stream")}
    return {"anthropic_version": VERSION, **_betas(request, losses), **left}


def _betas(request: Request, losses: Losses) -> JsonObject:
    """Return the betas the client asked for in a header, which Bedrock takes in the body."""
    if request.dialect != "anthropic_messages":
        return {}
    asked = [name.strip() for name in request.headers.get("anthropic-beta", "").split(",") if name.strip()]
    betas = [name for name in asked if name in _BETAS]
    if len(betas) < len(asked):
        losses.lose("anthropic-beta", asked, "Bedrock does not know all of these betas", sent=betas)
    return {"anthropic_beta": betas} if betas else {}


def _nova(body: JsonObject) -> JsonObject:
    """Return Converse's body with the model's own fields where Nova has them: inside `inferenceConfig`."""
    additional = dict(body.pop(ADDITIONAL, {}))
    nested = additional.pop("inferenceConfig", {})
    config = {**body.pop("inferenceConfig", {}), **(nested if isinstance(nested, dict) else {}), **additional}
    if config:
        body["inferenceConfig"] = config
    return {"schemaVersion": SCHEMA, **body}


_ADDED = "amazon-bedrock-"
_ADDED_BYTES = _ADDED.encode()


_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_chunk = msgspec.json.Decoder(Chunk).decode


class Decoder:
    """One reply, whole or streamed."""

    def __init__(self, row: ProviderRow) -> None:
        self._row = row
        self._payload: Payload | None = None
        self._inner: ReplyDecoder | None = None
        self._over = False

    @property
    def over(self) -> bool:
        """Whether the reply said its last event."""
        return self._over or (self._inner is not None and self._inner.over)

    @property
    def complete(self) -> bool:
        """Whether the reply may end here."""
        return self._inner is not None and self._inner.complete

    def feed(self, item: Frame) -> list[Event]:
        """Return what the frame says. Never raises: what cannot be read ends the reply with Failed."""
        data = item.data
        if data is None or self._over or (not data and not item.complete):
            return []
        if item.event == "chunk":
            try:
                return self._feed_payload(Frame(_decode_chunk(data).payload))
            except (msgspec.MsgspecError, UnicodeError):
                return self._fail(self._malformed(f"no chunk: {excerpt(data, 80)}"))
        if not item.event:
            return self._feed_payload(item)
        refused = stream_refusal(item, self._row.id)
        if refused is not None:
            return self._fail(refused)
        return [ReplyFields(NAME, {item.event: [excerpt(data)]})]

    def finish(self) -> list[Event]:
        """Close the reply."""
        if self._over:
            return []
        if self._inner is None:
            return self._fail(BrokenStream("the reply stopped before it began", provider=self._row.id))
        self._over = True
        return self._ours(self._inner.finish())

    def _feed_payload(self, item: Frame) -> list[Event]:
        data = item.data or b""
        if self._inner is not None and _ADDED_BYTES not in data:
            return self._ours(self._inner.feed(item))
        try:
            value = decode_leniently(data)
        except (ValueError, RecursionError):
            return self._fail(self._malformed(f"no JSON: {excerpt(data, 80)}"))
        if not isinstance(value, dict):
            return self._fail(self._malformed(f"no object: {excerpt(data, 80)}"))
        inner = self._inner or self._open(value)
        if inner is None:
            if is_refusal(value):
                return self._fail(refusal(value, provider=self._row.id))
            return self._fail(self._malformed(f"a payload of no known language: {excerpt(data, 80)}"))
        return self._with_added(inner, value, item)

    def _open(self, value: JsonObject) -> ReplyDecoder | None:
        self._payload = payload_in(value)
        if self._payload is None:
            return None
        if self._payload == "bedrock_converse":
            self._inner = ConverseDecoder(self._row, join_text=True)
        else:
            self._inner = dialect(self._payload).open_decoder(self._row)
        return self._inner

    def _with_added(self, inner: ReplyDecoder, value: JsonObject, item: Frame) -> list[Event]:
        """Feed a payload that may hold what Bedrock added: Anthropic's dialect would not look for it there."""
        added = {name: value.pop(name) for name in list(value) if name.startswith(_ADDED)}
        if not added or self._payload is None:
            return self._ours(inner.feed(item))
        out: list[Event] = [ReplyFields(self._payload, added)]
        if value:
            # The rest stays as it was written, if a strict reader can read it.
            try:
                raw: JsonObject = {**_decode_raw(item.data or b"")}
            except (msgspec.MsgspecError, UnicodeError, RecursionError):
                raw = value
            left = {name: value for name, value in raw.items() if name not in added}
            out += self._ours(inner.feed(Frame(encode_json(left))))
        return out

    def _ours(self, events: Iterable[Event]) -> list[Event]:
        if self._payload == "anthropic_messages":
            return [*map(event_of_bedrock, events)]
        return list(events)

    def _malformed(self, problem: str) -> MalformedReply:
        return MalformedReply(f"the reply is not InvokeModel's: {problem}", provider=self._row.id)

    def _fail(self, error: ProviderError) -> list[Event]:
        """End the reply, after what the payload's decoder still held."""
        self._over = True
        held = self._ours(self._inner.finish()) if self._inner is not None else []
        return [*(event for event in held if type(event) is not Failed), Failed(error)]


_HEADERS = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}


def encode_response(response: Response, request: Request) -> bytes:
    """Write one whole reply in the language of the request's model."""
    payload = payload_for(request)
    if payload == "bedrock_converse":
        return encode_converse(response, request, metrics=False)
    if payload == "anthropic_messages":
        response = response_of_anthropic(response)
    return dialect(payload).encode_response(response, request)


class Encoder:
    """One streamed reply."""

    content_type = CONTENT_TYPE
    # Readers of this framing take every message for an event.
    keep_alive = b""

    def __init__(self, request: Request, arrival: Arrival) -> None:
        self._payload = payload_for(request)
        self._inner: ReplyEncoder
        self._frames: Stage[bytes, Frame]
        if self._payload == "bedrock_converse":
            self._inner, self._frames = ConverseEncoder(request, metrics=False), EventStreamDecoder()
        else:
            self._inner, self._frames = dialect(self._payload).open_encoder(request, arrival), SseDecoder()
        self._failed = False
        self._extension: JsonObject = {}

    def feed(self, item: Event) -> Sequence[bytes]:
        """Return the chunks the event makes."""
        if self._failed:
            return ()
        if type(item) is Extension:
            self._extension |= item.fields
        if type(item) is Failed:
            return self._fail(item.error)
        event = event_of_anthropic(item) if self._payload == "anthropic_messages" else item
        return self._wrapped(self._inner.feed(event))

    def finish(self) -> Sequence[bytes]:
        """Return the end of the stream; nothing after a failure."""
        return () if self._failed else self._wrapped(self._inner.finish())

    def _fail(self, error: BardoError) -> Sequence[bytes]:
        """Return what was held, and say what happened as Bedrock does: its own event, instead of one of the payload's."""
        self._failed = True
        held = list(self._inner.feed(Failed(error)))
        name, payload = exception_of(error, self._extension)
        headers = {":exception-type": name, ":content-type": "application/json", ":message-type": "exception"}
        chunks = [chunk for chunk in self._payloads(held) if not _tells_of_error(chunk)]
        return (*map(_chunk, chunks), encode_event(payload, headers))

    def _wrapped(self, pieces: Iterable[bytes]) -> Sequence[bytes]:
        return tuple(_chunk(payload) for payload in self._payloads(pieces))

    def _payloads(self, pieces: Iterable[bytes]) -> list[bytes]:
        frames = [frame for piece in pieces for frame in self._frames.feed(piece)]
        named = self._payload == "bedrock_converse"
        return [
            b'{"%b":%b}' % (frame.event.encode(), frame.data) if named else frame.data
            for frame in frames
            if frame.data and frame.data != b"[DONE]"
        ]


def _chunk(payload: bytes) -> bytes:
    return encode_event(msgspec.json.encode({"bytes": payload}), _HEADERS)


def _tells_of_error(payload: bytes) -> bool:
    value = msgspec.json.decode(payload)
    return value.get("type") == "error" or "error" in value or any(name.endswith("Exception") for name in value)


_COUNT_HEADER = "x-amzn-bedrock-input-token-count"


def encode_request(request: EmbedRequest, endpoint: EmbedEndpoint) -> WireRequest:
    """Write a request in the words of the model's family; the rest is in `degraded`. Raises Unsupported for an input that is no text."""
    body, degraded = encode_texts(request) if endpoint.payload == "cohere" else _titan(request)
    return WireRequest(path=f"model/{path_segment(request.model)}/invoke", body=write_json(body), degraded=degraded)


def _titan(request: EmbedRequest) -> tuple[JsonObject, tuple[Degradation, ...]]:
    """Titan takes one text in a call: the row says so, and the calls are made one after the other."""
    body: JsonObject = {"inputText": texts_of(request, "Titan")[0]}
    if request.dimensions is not None:
        body["dimensions"] = request.dimensions
    return body, lost_fields(request, "Titan", task=request.task, truncate=request.truncate)


def decode_reply(body: JsonObject, headers: Mapping[str, str]) -> Embeddings:
    """Read a reply of either family. Raises WrongShape."""
    if "embedding" in body:
        tokens = whole_number(body.get("inputTextTokenCount"))
        raw = {name: value for name, value in body.items() if name.endswith("TokenCount")}
        return Embeddings(
            vectors=(numbers(body["embedding"], "embedding"),), usage=Usage(input_tokens=tokens, raw=raw or None)
        )
    counted = headers.get(_COUNT_HEADER, "")
    tokens = int(counted) if counted.isascii() and counted.isdigit() and len(counted) < 16 else None
    return Embeddings(vectors=decode_vectors(body), usage=Usage(input_tokens=tokens))


EMBEDDINGS = EmbeddingForm(encode_request=encode_request, decode_reply=decode_reply)


def _decode_counted(body: bytes, arrival: Arrival) -> Request:
    """Read a CountTokens request, whose input is one of two. Raises InvalidRequest naming the field."""
    given = required(decode_object(body), "input", dict)
    converse = optional(given, "converse", dict, "input.")
    if converse is not None:
        return CONVERSE.decode_request(write_json(converse), arrival)
    at = "input.invokeModel.body"
    invoked = required(required(given, "invokeModel", dict, "input."), "body", str, "input.invokeModel.")
    try:
        body = b64decode(invoked, validate=True)
    except ValueError:
        raise InvalidRequest(f"{at} is not base64", hint="encode the body of InvokeModel in base64", param=at) from None
    return decode_request(body, arrival)


def _encode_count(count: TokenCount) -> bytes:
    return write_json(with_bardo({"inputTokens": count.input_tokens}, {"tokens_approx": True} if count.approx else {}))


TOKEN_COUNT = CountForm(decode_request=_decode_counted, encode_reply=_encode_count)


_MOST_PROFILES = 1000
_SYSTEM = "SYSTEM_DEFINED"


def _profile(model: ModelInfo) -> JsonObject:
    """Return a model as an inference profile of AWS, which is asked for by the id or by the ARN."""
    arn = f"arn:aws:bedrock:us-east-1:000000000000:inference-profile/{model.id}"
    made = "1970-01-01T00:00:00Z"
    return {
        "inferenceProfileId": model.id,
        "inferenceProfileName": model.display_name or model.id,
        "inferenceProfileArn": arn,
        "description": model.about or f"{model.model or model.id} at {model.provider}",
        "models": [{"modelArn": f"arn:aws:bedrock:us-east-1::foundation-model/{model.id}"}],
        "status": "ACTIVE",
        "type": _SYSTEM,
        "createdAt": made,
        "updatedAt": made,
    }


def _profiles(models: Sequence[ModelInfo], query: Mapping[str, str]) -> bytes:
    """Write one page of the inference profiles: those from `nextToken` on, which is the id of a model. None of them is a user's own."""
    size = page_size(query, "maxResults", _MOST_PROFILES) if "maxResults" in query else len(models)
    if query.get("type", _SYSTEM) != _SYSTEM:
        models = ()
    elif "nextToken" in query:
        models = models[place_of(models, query["nextToken"], "nextToken") :]
    more = {"nextToken": models[size].id} if size < len(models) else {}
    return write_json({"inferenceProfileSummaries": [_profile(model) for model in models[:size]], **more})


MODELS = ModelsForm(encode_list=_profiles, encode_model=lambda model: write_json(_profile(model)), keeps_claude=True)


DIALECT = Dialect(
    name=NAME,
    over_budget_status=400,
    model_field="",
    stream_framing="eventstream",
    decode_request=decode_request,
    declaration=CONVERSE.declaration,
    request_path=request_path,
    encode_body=encode_body,
    encode_control=encode_control,
    wraps=payload_dialect,
    reply=CONVERSE.reply,
    open_decoder=Decoder,
    open_encoder=Encoder,
    encode_response=encode_response,
    encode_error=encode_error,
    error_headers=error_headers,
    decode_error=decode_error,
    model_in_path=True,
    embeddings=EMBEDDINGS,
    token_count=TOKEN_COUNT,
    models=MODELS,
)
