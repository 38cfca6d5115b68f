"""The type of a dialect: a value with the functions that encode and decode one wire format.

The functions are pure, and nothing is shared between two replies. What a dialect may offer beside replies (vectors of texts, counts of
tokens, lists of models) are values of functions too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal, Protocol

import msgspec

from bardo.catalog.endpoint_choice import dialect_models
from bardo.catalog.prompt_caching import breakpoint_rule
from bardo.catalog.request_shapes import shape_at
from bardo.catalog.rows import EmbedEndpoint, ProviderRow
from bardo.dialects.shared.declaration import Declaration, ReplyDeclaration
from bardo.dialects.shared.history_repair import with_sound_history
from bardo.dialects.shared.json_values import JsonObject, WrongShape, decode_leniently, want, write_json
from bardo.dialects.shared.losses import (
    Losses,
    carry_shared,
    report_field_lacks,
    report_message_lacks,
    report_tool_lacks,
    with_inner_fields,
    with_shared,
)
from bardo.dialects.shared.media import carry_pictures, carry_sound, results_as_text, with_known_media, with_plain_sound
from bardo.dialects.shared.original_form import with_original_form
from bardo.dialects.shared.tools import CallsInFrames, carry_hosted
from bardo.dialects.shared.turns import unknown_as_words, with_last_markers, with_marked_end, with_turn, without_fields
from bardo.streams.frames import Frame
from bardo.streams.sse import FrameEnds, encode_sse
from bardo.values.degradation import Degradation
from bardo.values.errors import BardoError, InvalidRequest, Unsupported, UpstreamRefused
from bardo.values.events import Event, ReplyStart
from bardo.values.operations import Embeddings, EmbedRequest, ModelInfo, NativeInput, TokenCount
from bardo.values.request import HistoryFacts, Request, facts_of
from bardo.values.response import Response
from bardo.values.wire import Arrival, WireRequest

ATTRIBUTION = "x-anthropic-billing-header:"
"""The beginning of the line by which Claude Code names itself at the head of a system prompt."""
_STABLE = re.compile(r"cc_version=\d+\.\d+\.\d+|cc_entrypoint=[\w-]+")


def stable_attribution(line: str) -> str:
    """Return what of a line of attribution is the same in all requests of one program; empty where there is no such thing.

    The rest is of one conversation or request: behind the version stands a digest of the first message, and `cch` is another each time.
    """
    parts = [f"{part};" for part in _STABLE.findall(line)]
    return " ".join((ATTRIBUTION, *parts)) if parts else ""


def _not_for_clients(*_: object) -> Any:
    raise Unsupported("no client can ask for this in this dialect")


def _not_for_providers(*_: object) -> Any:
    raise Unsupported("no provider is asked for this in this dialect")


class EmbeddingForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect asks for vectors, and answers with them.

    For providers: `encode_request` writes a request for one model at one endpoint; what cannot be expressed is in its `degraded`, and what
    may not be left out raises Unsupported. `decode_reply` reads the body and headers of a reply, and raises WrongShape for any other.
    For clients: `decode_request` raises InvalidRequest, and `encode_reply` writes the vectors.
    """

    encode_request: Callable[[EmbedRequest, EmbedEndpoint], WireRequest] = _not_for_providers
    decode_reply: Callable[[JsonObject, Mapping[str, str]], Embeddings] = _not_for_providers
    decode_request: Callable[[bytes, Arrival], EmbedRequest] = _not_for_clients
    encode_reply: Callable[[Embeddings, EmbedRequest], bytes] = _not_for_clients


class CountForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect asks for the number of a request's tokens, and answers with it.

    For providers: `encode_request` makes it of the request for a reply that would be sent to the model, `decode_reply` reads the count.
    For clients: `decode_request` reads the request that is to be counted, `encode_reply` writes the count.
    """

    encode_request: Callable[[WireRequest, str], WireRequest] = _not_for_providers
    decode_reply: Callable[[JsonObject], int] = _not_for_providers
    decode_request: Callable[[bytes, Arrival], Request] = _not_for_clients
    encode_reply: Callable[[TokenCount], bytes] = _not_for_clients


class ModelsForm(msgspec.Struct, frozen=True, kw_only=True):
    """How a dialect's servers list models, and describe one.

    `encode_list` gets the fields of the query too, and raises InvalidRequest for those that it cannot heed. `keeps_claude`: there are
    clients that keep names of Claude's alone.
    """

    encode_list: Callable[[Sequence[ModelInfo], Mapping[str, str]], bytes]
    encode_model: Callable[[ModelInfo], bytes]
    keeps_claude: bool = False


def page_size(query: Mapping[str, str], name: str, most: int) -> int:
    """Return how many models a page of a list may have, `most` where the query does not say. Raises InvalidRequest."""
    text = query.get(name)
    if text is None:
        return most
    if not (text.isascii() and text.isdigit() and len(text) < 10 and 1 <= int(text) <= most):
        raise InvalidRequest(f"{name} is {text[:50]!r}", hint=f"write a whole number from 1 to {most}", param=name)
    return int(text)


def place_of(models: Sequence[ModelInfo], name: str, param: str) -> int:
    """Return where a model stands in a list, by which a page begins or ends. Raises InvalidRequest."""
    for place, model in enumerate(models):
        if model.id == name:
            return place
    raise InvalidRequest(
        f"{param} names no model of this list: {name[:200]!r}", hint="take an id of the page before", param=param
    )


def decode_body(body: bytes) -> JsonObject:
    """Return the JSON object of a provider's whole reply. Raises WrongShape."""
    try:
        return want(decode_leniently(body), dict, "the reply")
    except ValueError as problem:
        raise WrongShape(f"it is no JSON: {problem}") from None


def texts_of(request: EmbedRequest, title: str) -> list[str]:
    """Return the inputs as texts. Raises Unsupported for tokens and for what only another dialect can say."""
    for place, given in enumerate(request.inputs):
        if isinstance(given, NativeInput):
            raise Unsupported(f"{title} makes vectors of texts only", param=f"input[{place}]")
        if not isinstance(given, str):
            hint = "send the text: tokens mean something else to another model"
            raise Unsupported(f"{title} takes no tokens", hint=hint, param=f"input[{place}]")
    return [given for given in request.inputs if isinstance(given, str)]


def lost_fields(request: EmbedRequest, title: str, **lost: object) -> tuple[Degradation, ...]:
    """Return a degradation for each field of another dialect, and for each of `lost` that the request gives."""
    why = f"{title} has no such field"
    given = {**request.extra, **{name: value for name, value in lost.items() if value is not None}}
    return tuple(Degradation(name, asked=value, why=why) for name, value in given.items())


def own_body(request: EmbedRequest, dialect: str) -> JsonObject | None:
    """Return the client's own body where it speaks `dialect`, with the model's name at the provider; None for any other."""
    if request.dialect != dialect or request.body is None:
        return None
    return {**request.body, "model": request.model}


def count_field(value: object, name: str) -> int | None:
    """Return a count that must be at least 1. Raises InvalidRequest."""
    if value is None:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InvalidRequest(f"{name} must be a whole number of at least 1", param=name)
    return value


def numbers(value: object, what: str) -> list[float]:
    """Return the numbers of a vector. Raises WrongShape."""
    values: list[float] = want(value, list, what)
    if not all(type(number) is float or type(number) is int for number in values):
        raise WrongShape(f"{what} holds what is no number")
    return values


def whole_number(value: object) -> int | None:
    """Return a count of tokens where it is one, else None: a reply without one is a reply all the same."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def with_bardo(fields: JsonObject, bardo: JsonObject) -> JsonObject:
    """Return the fields of an answer, with bardo's own beside them where there are any."""
    return {**fields, "bardo": bardo} if bardo else fields


def route_fields(model: ModelInfo) -> JsonObject:
    """Return the `bardo` object that marks an entry of a list of models as a route; nothing for a model."""
    if not model.route:
        return {}
    return {"bardo": {"route": model.route, **({"about": model.about} if model.about else {})}}


def count_of(body: JsonObject, name: str) -> int:
    """Return the count of tokens that a reply gives. Raises WrongShape."""
    count = want(body.get(name), int, name)
    if count < 0:
        raise WrongShape(f"{name} is {count}")
    return count


Framing = Literal["sse", "ndjson", "json_array", "eventstream"]
"""How a streamed reply is cut into frames; a whole one is a frame of its own."""


class ReplyDecoder(Protocol):
    """Frames of one reply to events. A whole body is one frame."""

    @property
    def over(self) -> bool:
        """Whether the reply said its last event: nothing that comes after it is looked at."""
        ...

    @property
    def complete(self) -> bool:
        """Whether the reply may end here. More may come: Chat sends its usage behind the finish reason."""
        ...

    def feed(self, item: Frame) -> Sequence[Event]: ...

    def finish(self) -> Sequence[Event]: ...


class RepeatingDecoder:
    """A decoder that reads many frames in one go, as long as nothing but their text is new.

    Most frames of a stream are like the one before. Work done once for many of them costs next to nothing for each.
    """

    def repeated(self) -> FrameEnds | None:
        """Return the bytes around the text of the frames that repeat at present."""
        raise NotImplementedError

    def again(self, values: Sequence[bytes], *, joined: bool) -> Sequence[Event] | None:
        """Return the events of frames with these JSON values as their text, `joined` into one, or None if they must be fed."""
        raise NotImplementedError


class PlainReplyDecoder:
    """A decoder that reads most whole replies in one go, or most frames of streams: those that are nothing but text.

    Bytes that are read so are JSON that any strict reader can read, and hold no call.
    """

    def read_plain(self, data: bytes) -> Sequence[Event] | None:
        """Return the events of a whole reply, those that `feed` gives, or None if it must be fed."""
        return None

    def read_plain_frame(self, item: Frame) -> Sequence[Event] | None:
        """Return the events of one frame of a stream, those that `feed` gives, or None if it must be fed."""
        return None


class SwitchableDecoder:
    """A decoder of a dialect whose streams can be written anew from any frame on: nothing in them counts the frames before.

    `lacks_ids`: a call came without the id that the dialect asks for. `waits`: the latest frames belong to a call that has not begun, for
    want of its id. `missing_end` is the frame that ends a stream and has not come, which many servers leave out.
    """

    @property
    def lacks_ids(self) -> bool:
        """Whether a call came without its id."""
        raise NotImplementedError

    @property
    def waits(self) -> bool:
        """Whether frames that gave no events may still turn out to be of a call without an id."""
        raise NotImplementedError

    @property
    def missing_end(self) -> bytes:
        """Return the frame that ends a stream of the dialect; nothing where it has come."""
        raise NotImplementedError


class ReturningDecoder:
    """A decoder of replies with fields that the provider takes back unmodified in the next request."""

    def fields_to_return(self) -> dict[int, JsonObject]:
        """Return these fields of the message of each choice, as far as the reply has come."""
        raise NotImplementedError


class ReplyEncoder(Protocol):
    """Events of one reply to the bytes of a stream. `finish` closes the stream as the dialect does.

    `keep_alive` is what may be said at any time between two events, and readers skip; empty where there is no such thing.
    """

    @property
    def content_type(self) -> str: ...

    @property
    def keep_alive(self) -> bytes: ...

    def feed(self, item: Event) -> Sequence[bytes]: ...

    def finish(self) -> Sequence[bytes]: ...


def _encode_partial(value: object, start: ReplyStart) -> bytes:
    """Write a partial answer as an event of bardo's own, for clients that tell events by their names and pass over others."""
    return encode_sse(write_json({"type": "bardo.partial", "partial": value}), "bardo.partial")


def _not_spoken_by_clients(*_: object) -> Any:
    raise Unsupported("no client can call bardo in this dialect")


def _unchanged(request: Request) -> Request:
    return request


def _never(_: Request, __: ProviderRow, ___: HistoryFacts) -> bool:
    return False


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One wire format, as functions.

    For providers: `declaration` says what of a request can be expressed, and `encode_body` writes that; the losses go into the Losses it is
    given. `request_path` returns the path below a provider's base URL. `encode_control` writes the fragment of the body that is about
    thinking. `open_decoder` begins to read one reply, whole or streamed: its frames tell which. `decode_error` reads an error answer
    (status, body, headers, the provider's id); a body that is not the dialect's is quoted, shortened. `wraps` gives, for a model, the
    dialect whose body this one wraps: then that one's declaration holds. `history` names the field of a body that holds the conversation,
    empty where it is always written anew. `mends` tells of a request in this dialect whether it has values that this provider refuses,
    which `encode_body` leaves out or writes otherwise.

    For clients, where they may call bardo in it: `reply` says what of a reply can be expressed. `decode_request` reads a request and
    raises InvalidRequest, naming the field. `as_functions` puts tools, calls, results and choices of
    tools that only this dialect has as plain functions, and marks that only it has as Anthropic's,
    for a target that speaks another, and `own_tools_as_functions` those of its tools
    for a server of this dialect that takes no others; a request without them is returned itself, and the encoder of the reply puts them
    back. `open_encoder` begins to write one streamed reply,
    `encode_response` writes a whole one, with `response.bardo` under `bardo` where it is not empty. `encode_error` writes an error body
    as the dialect's own servers do, and `error_headers` returns what they say of an error beside it.

    `omits_call_ids`: tool calls may be without ids, and results are matched to them by name and order. `calls_in_frames`: how a call that
    lacks its id is found in a frame that is forwarded, or None if a stream is not mended so. `tells_call` says of the
    bytes of a frame whether it tells all arguments of a call in another way than by its end, or None if no frame does. `without_calls`
    returns the data of a frame without the calls at these places among those that are whole in it, or None if a frame that ends a call
    holds nothing else. `with_broken_calls` returns the data of the frame that ends a reply which broke off inside a call, where that frame
    repeats the calls: those that are not complete are called so.
    `model_in_path`: the model is named in a request's URL, not in its body. `model_field` is the field of a reply that names the model;
    empty where replies name none. `search_results`: a request may hold results of the caller's own search; elsewhere they become text.
    `model_pictures`: messages of the model may hold pictures; elsewhere only those of the user.
    `marks_messages`: which of other dialects' markers a whole message may have.
    `starts_with_usage`: a stream names the tokens of its prompt where it begins. `over_budget_status` is the status of an answer to a
    client whose budget is used up. `limit_prefix` begins the headers of the rest of a minute, where these are not OpenAI's: the time
    of the reset is a date then.
    `usage_option` is the object of a body, and the field in it, that ask for usage in a stream. `embeddings`, `token_count` and `models`
    are how it asks for vectors, counts of tokens and lists of models, or None if it has no such thing.
    `time_fields` are the fields of a reply that began and ended so many seconds after its request, or None if a reply has none.
    """

    name: str
    stream_framing: Framing
    declaration: Declaration
    request_path: Callable[[Request], str]
    encode_body: Callable[[Request, ProviderRow, Losses], JsonObject]
    encode_control: Callable[[Request, Losses], JsonObject]
    open_decoder: Callable[[ProviderRow], ReplyDecoder]
    decode_error: Callable[[int, bytes, dict[str, str], str], UpstreamRefused]
    decode_request: Callable[[bytes, Arrival], Request] = _not_spoken_by_clients
    as_functions: Callable[[Request], Request] = _unchanged
    own_tools_as_functions: Callable[[Request], Request] = _unchanged
    open_encoder: Callable[[Request, Arrival], ReplyEncoder] = _not_spoken_by_clients
    encode_response: Callable[[Response, Request], bytes] = _not_spoken_by_clients
    encode_error: Callable[[BardoError], bytes] = _not_spoken_by_clients
    error_headers: Callable[[BardoError], list[tuple[str, str]]] = lambda error: []
    encode_partial: Callable[[object, ReplyStart], bytes] = _encode_partial
    reply: ReplyDeclaration | None = None
    mends: Callable[[Request, ProviderRow, HistoryFacts], bool] = _never
    wraps: Callable[[str], Dialect] | None = None
    omits_call_ids: bool = False
    calls_in_frames: CallsInFrames | None = None
    tells_call: Callable[[bytes], bool] | None = None
    without_calls: Callable[[bytes, Collection[int]], bytes] | None = None
    with_broken_calls: Callable[[bytes], bytes] | None = None
    history: str = ""
    model_in_path: bool = False
    model_field: str = "model"
    search_results: bool = False
    model_pictures: bool = False
    starts_with_usage: bool = False
    marks_messages: frozenset[str] = frozenset()
    over_budget_status: int = 402
    limit_prefix: str = ""
    usage_option: tuple[str, str] | None = None
    embeddings: EmbeddingForm | None = None
    token_count: CountForm | None = None
    models: ModelsForm | None = None
    time_fields: Callable[[float, float], JsonObject] | None = None

    def encode_request(self, request: Request, row: ProviderRow, facts: HistoryFacts | None = None) -> WireRequest:
        """Write a request for one provider. What it cannot express is in `degraded`. Raises InvalidRequest for a value that is not JSON.

        `facts` are those of a conversation, which hold for the request where that is its own, or None if they are to be found.
        """
        path, body, losses = self.encode_fields(request, row, facts)
        return WireRequest(path=path, body=write_json(body), degraded=losses.all)

    def encode_fields(
        self, request: Request, row: ProviderRow, facts: HistoryFacts | None = None
    ) -> tuple[str, JsonObject, Losses]:
        """Return the path and the body of a request for one provider, not yet as bytes, and the losses. Raises InvalidRequest."""
        early = Losses(self.declaration)
        is_foreign = request.dialect != self.name
        if request.attribution:
            request = self._with_attribution(request, row, early)
        shape = shape_at(row, request.model)
        request = with_sound_history(request, shape, early)
        facts = facts_of(request.messages, facts)
        # None of these steps adds a class that a later one looks for.
        parts = facts.parts
        request = with_plain_sound(with_known_media(request, early, parts), parts)
        if is_foreign:
            request = carry_sound(request, self.name, parts, early)
            for marker in self.marks_messages.intersection(request.extra, self._no_losses(request, row).markers):
                request = with_marked_end(request, marker)
            request = unknown_as_words(request, early, parts)
            request = carry_pictures(request, early, parts, from_model=self.model_pictures)
            if self._declaration(request).needs_turn:
                request = with_turn(request, early)
        request, hosted = carry_hosted(request, row, early)
        request, carried = carry_shared(request, row, early)
        if is_foreign and not self.search_results:
            request = results_as_text(request, early, parts)
        body, losses = self._written(request, row, early, facts)
        if losses.surplus:
            body, losses = self._with_fewer_markers(request, row, early, losses.surplus)
        if carried or hosted:
            body = with_shared(body, carried | hosted)
        if request.dialect == self.name and request.body is not None:
            body = with_original_form(body, request.body)
        if shape.assistant_fields:
            body = without_fields(body, shape.assistant_fields, losses)
        path = self.request_path(request)
        if row.paths is not None:
            path = row.paths.path(request.model, stream=request.stream)
            paid_by = {name: row.scope[name] for name in row.scope_fields if name in row.scope}
            body = {**row.paths.fields(body, request.model), **paid_by}
        return path, body, losses

    def _with_attribution(self, request: Request, row: ProviderRow, losses: Losses) -> Request:
        """Return the request with what the provider gets of the line by which Claude Code names itself."""
        line, sent = request.attribution, ""
        why = "only Claude's own providers read it, and elsewhere it would change the head of the prompt"
        if request.dialect in self._declaration(request).speaks and row.attribution:
            why = "this provider takes it for a part of the prompt, so what differs between two requests is left out"
            sent = line if row.attribution == "whole" else stable_attribution(line)
        if sent != line:
            losses.lose("attribution", line, why, sent=sent or None)
        return msgspec.structs.replace(request, attribution=sent)

    def _written(
        self, request: Request, row: ProviderRow, early: Losses, facts: HistoryFacts | None = None
    ) -> tuple[JsonObject, Losses]:
        """Return a body and all that is lost of the request. `facts` may be those of an earlier form of its conversation."""
        losses = self.field_losses(request, row)
        losses.add_all(early.all)
        own = request.dialect in losses.declaration.speaks
        report_message_lacks(facts_of(request.messages, facts), losses, own=own)
        body = with_inner_fields(self.encode_body(request, row, losses), request, losses)
        losses.lose_unplaced_markers()
        return body, losses

    def _with_fewer_markers(
        self, request: Request, row: ProviderRow, early: Losses, surplus: Mapping[str, int]
    ) -> tuple[JsonObject, Losses]:
        """Return a body without the markers that are too many, by their names and how many of each are taken, and the losses."""
        for name, most in surplus.items():
            request = with_last_markers(request, name, most)
        body, losses = self._written(request, row, early)
        for name, most in surplus.items():
            why = f"{losses.declaration.title} takes at most {most} of them: the last of the turns, and one before them"
            losses.lose(name, None, why, key="surplus")
        return body, losses

    def field_losses(self, request: Request, row: ProviderRow | None = None) -> Losses:
        """Return what the request's fields, its tools among them, say that cannot be expressed. The messages are not looked at.

        `row` is that of a provider which may take markers beyond those of its dialect.
        """
        losses = self._no_losses(request, row)
        report_field_lacks(request, losses)
        return losses

    def tool_losses(self, request: Request) -> Losses:
        """Return what the request's tools say that cannot be expressed."""
        losses = self._no_losses(request)
        report_tool_lacks(request, losses)
        return losses

    def _no_losses(self, request: Request, row: ProviderRow | None = None) -> Losses:
        declaration = self._declaration(request)
        markers = None if row is None else row.quirks.markers or dialect_models(self.name, request.model).markers
        rule = None if row is None else breakpoint_rule(row.id, self.name, request.model)
        return Losses(declaration, markers=markers, rule=rule)

    def _declaration(self, request: Request) -> Declaration:
        return self.declaration if self.wraps is None else self.wraps(request.model).declaration
