"""OpenAI's older `POST /v1/completions`, over chat: a prompt is the one message of a user, and the reply's text is the completion.

What stands in a chat message beside its content (thinking, a refusal) stands beside the text here. A limit of tokens that the client does
not give is left to the provider: the older API's 16 tokens would all go into thinking.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.dialects.openai_chat.reply_out import ChatEncoder, encode_response
from bardo.dialects.openai_chat.request_in import decode_request
from bardo.dialects.openai_chat.wire import Completion
from bardo.dialects.shared.json_values import JsonObject, JsonValue, decode_object, encode_json, take, write_json
from bardo.dialects.shared.structs import names_of, read
from bardo.streams.sse import KEEP_ALIVE, encode_sse
from bardo.values.degradation import Degradation
from bardo.values.errors import InvalidRequest, Unsupported
from bardo.values.events import Event
from bardo.values.request import Request
from bardo.values.response import Response

MOST_PROMPTS = 64
"""Prompts in one request: each is a call of its own."""
_OWN = names_of(Completion)
_DATA = b"data: "
_DONE = b"data: [DONE]\n\n"


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The chat requests that a completion asks for, one for each of its prompts; `echo`: the prompt stands before each text."""

    prompts: tuple[str, ...]
    requests: tuple[Request, ...]
    echo: bool = False

    @property
    def stream(self) -> bool:
        """Whether the reply is streamed."""
        return self.requests[0].stream


def decode_completion(body: bytes) -> CompletionRequest:
    """Read a request. Raises InvalidRequest naming the field, and Unsupported for what a chat cannot express."""
    fields = decode_object(body)
    if "messages" in fields:
        hint = "send a prompt here, or the messages to /v1/chat/completions"
        raise InvalidRequest("a completion takes no messages", hint=hint, param="messages")
    asked = read({name: value for name, value in fields.items() if name in _OWN}, Completion, "")
    prompts = _prompts(asked.prompt)
    shared = {name: value for name, value in fields.items() if name not in _OWN}
    if asked.logprobs is not None:
        # Of a chat, log probabilities are asked for by a flag, and how many beside those of the tokens that were chosen.
        shared |= {"logprobs": True, "top_logprobs": asked.logprobs} if asked.logprobs else {"logprobs": True}
    requests = tuple(decode_request(_chat_body(shared, prompt)) for prompt in prompts)
    degraded = _degraded(asked, requests[0])
    return CompletionRequest(
        prompts=prompts,
        requests=tuple(msgspec.structs.replace(prompt, operation="complete", degraded=degraded) for prompt in requests),
        echo=bool(asked.echo),
    )


def _prompts(value: JsonValue) -> tuple[str, ...]:
    if isinstance(value, str):
        return (value,)
    if not value:
        raise InvalidRequest("prompt is required", hint="give a text, or a list of texts", param="prompt")
    listed = take(value, list, "prompt")
    if len(listed) > MOST_PROMPTS and all(isinstance(prompt, str) for prompt in listed):
        raise InvalidRequest(f"prompt holds {len(listed)} texts, and may hold {MOST_PROMPTS}", param="prompt")
    if any(isinstance(prompt, int | list) for prompt in listed):
        hint = "send the text: tokens mean something else to another model"
        raise Unsupported("a prompt of tokens cannot be put to a chat", hint=hint, param="prompt")
    return tuple(take(prompt, str, f"prompt[{place}]") for place, prompt in enumerate(listed))


def _chat_body(shared: JsonObject, prompt: str) -> bytes:
    return write_json({**shared, "messages": [{"role": "user", "content": prompt}]})


def _degraded(asked: Completion, request: Request) -> tuple[Degradation, ...]:
    """Return what a chat leaves out. Raises Unsupported for a suffix, unless the caller allows that loss."""
    degraded: list[Degradation] = []
    if asked.suffix:
        why = "a chat has no place for what comes after the completion"
        if not {"suffix", "*"} & set(request.options.allow_loss):
            hint = 'ask /api/generate, which has the gap filled; or allow the loss with "bardo": {"allow_loss": ["suffix"]}'
            raise Unsupported(why, hint=hint, param="suffix", details={"unsupported": ["suffix"]})
        degraded.append(Degradation("suffix", asked.suffix, why=why))
    if asked.best_of is not None and asked.best_of > request.choices:
        why = "a chat gives every completion it makes: none is chosen among more"
        degraded.append(Degradation("best_of", asked.best_of, request.choices, why))
    if asked.echo and asked.logprobs is not None:
        degraded.append(Degradation("logprobs", why="a chat says nothing of the tokens of the prompt"))
    return tuple(degraded)


def encode_completion(responses: Sequence[Response], asked: CompletionRequest) -> bytes:
    """Write one whole reply: the choices of each prompt after those of the prompt before.

    Of several prompts, `bardo` holds a list `calls`, with the object of each prompt's call.
    """
    pairs = zip(responses, asked.requests, strict=True)
    chats = [msgspec.json.decode(encode_response(response, request)) for response, request in pairs]
    choices = [
        _choice(moved, asked, place)
        for place, (chat, request) in enumerate(zip(chats, asked.requests, strict=True))
        for moved in ({**choice, "index": choice["index"] + place * request.choices} for choice in chat["choices"])
    ]
    usage = _sum([chat["usage"] for chat in chats if chat.get("usage")])
    calls = [chat["bardo"] for chat in chats if "bardo" in chat]
    bardo = {"bardo": {"calls": calls}} if len(calls) > 1 else {}
    return encode_json(
        {**chats[0], "object": "text_completion", "choices": choices, **({"usage": usage} if usage else {}), **bardo}
    )


def _choice(choice: JsonObject, asked: CompletionRequest, place: int) -> JsonObject:
    message = choice.get("message") or {}
    prompt = asked.prompts[place] if asked.echo else ""
    return {
        "index": choice["index"],
        "text": prompt + (message.get("content") or ""),
        **{name: value for name, value in message.items() if name not in ("role", "content")},
        "logprobs": _legacy_logprobs(choice.get("logprobs"), len(prompt))[0],
        "finish_reason": _finish(choice.get("finish_reason")),
    }


def _finish(word: str | None) -> str | None:
    """Return why a completion ended: it calls no tools, so a chat that stopped for one has stopped."""
    return "stop" if word in ("tool_calls", "function_call") else word


def _legacy_logprobs(value: JsonValue, offset: int) -> tuple[JsonObject | None, int]:
    """Return log probabilities in the older shape, tokens in one list and their numbers in another, and where the next token begins."""
    rows = value.get("content") if isinstance(value, dict) else None
    if not isinstance(rows, list):
        return None, offset
    offsets = []
    for row in rows:
        offsets.append(offset)
        offset += len(row.get("token", ""))
    tops = [{top["token"]: top["logprob"] for top in row.get("top_logprobs") or ()} for row in rows]
    written = {
        "tokens": [row.get("token", "") for row in rows],
        "token_logprobs": [row.get("logprob") for row in rows],
        "top_logprobs": tops if any(tops) else None,
        "text_offset": offsets,
    }
    return written, offset


def _sum(usages: Sequence[JsonObject]) -> JsonObject:
    """Return the counts of all prompts together."""
    if len(usages) < 2:
        return usages[0] if usages else {}
    names = ("prompt_tokens", "completion_tokens", "total_tokens")
    return {name: sum(usage.get(name) or 0 for usage in usages) for name in names}


class CompletionStream:
    """The common state of the streams of all prompts: the id, the time, and the sum of the tokens."""

    def __init__(self, asked: CompletionRequest) -> None:
        self.asked = asked
        self.head: JsonObject = {}
        self.usages: list[JsonObject] = []

    def encoders(self) -> list[CompletionEncoder]:
        """Return what writes the reply to each prompt, in order."""
        return [CompletionEncoder(self, place) for place in range(len(self.asked.requests))]


class CompletionEncoder:
    """Writes the streamed reply to one prompt: chat's own frames, each as a text completion."""

    content_type = "text/event-stream"
    keep_alive = KEEP_ALIVE

    def __init__(self, stream: CompletionStream, place: int) -> None:
        asked = stream.asked
        self._stream = stream
        self._request = asked.requests[place]
        self._is_last = place == len(asked.requests) - 1
        self._first_index = place * self._request.choices
        self._echo = asked.prompts[place] if asked.echo else ""
        self._offsets: dict[int, int] = {}
        self._chat = ChatEncoder(self._request)

    def feed(self, item: Event) -> Sequence[bytes]:
        """Write one event."""
        return [written for frame in self._chat.feed(item) for written in self._rewritten(frame)]

    def finish(self) -> Sequence[bytes]:
        """Write the end of the prompt's choices; after the last prompt, usage where it was asked for, and `[DONE]`."""
        return [written for frame in self._chat.finish() for written in self._rewritten(frame)]

    def _rewritten(self, frame: bytes) -> Sequence[bytes]:
        if frame == _DONE:
            return (frame,) if self._is_last else ()
        chunk = msgspec.json.decode(frame.removeprefix(_DATA))
        if "error" in chunk:
            return (frame,)
        head = self._stream.head
        head.setdefault("id", chunk["id"])
        head.setdefault("created", chunk["created"])
        if chunk.get("usage"):
            self._stream.usages.append(chunk["usage"])
            if not self._is_last:
                return ()
            chunk["usage"] = _sum(self._stream.usages)
        choices = [written for choice in chunk["choices"] for written in self._choice(choice)]
        if not choices and chunk["choices"]:
            return ()
        return (encode_sse(encode_json({**chunk, **head, "object": "text_completion", "choices": choices})),)

    def _choice(self, choice: JsonObject) -> list[JsonObject]:
        """Return a choice of a frame, or none if it only names the role."""
        delta, index = choice.get("delta") or {}, choice["index"]
        text = delta.get("content") or ""
        if index not in self._offsets:
            self._offsets[index] = len(self._echo)
            text = self._echo + text
        logprobs, self._offsets[index] = _legacy_logprobs(choice.get("logprobs"), self._offsets[index])
        beside = {name: value for name, value in delta.items() if name not in ("role", "content")}
        finish = _finish(choice.get("finish_reason"))
        if not (text or beside or finish or logprobs):
            return []
        first = {"index": index + self._first_index, "text": text, **beside}
        return [{**first, "logprobs": logprobs, "finish_reason": finish}]
