"""Ask a server about each law, and report its results."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from bardo.operators.conform.checked_server import MOST_BYTES, CheckedServer, Frame, ReceivedReply
from bardo.operators.conform.laws import (
    ANSWER_QUESTION,
    ANSWER_SCHEMA,
    LAWS,
    QUESTION,
    TOOL,
    TOOL_QUESTION,
    TOOL_SCHEMA,
    Finding,
    Reading,
    Status,
    ToolUse,
    Wire,
    read_frames,
)
from bardo.operators.conform.reply_checks import Chat, Messages, Responses
from bardo.structured.validation import checker
from bardo.values.errors import ProviderError, Unreachable

_REFUSALS = frozenset({"SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION"})


class Gemini:
    """Gemini's generateContent."""

    counts_thinking = True
    names_calls = False
    limits = frozenset({"MAX_TOKENS"})
    key_statuses = frozenset({400, 401, 403})

    def path(self, model: str, *, stream: bool) -> str:
        """Return the path below the base URL."""
        return f"models/{quote(model, safe='/')}:{'streamGenerateContent?alt=sse' if stream else 'generateContent'}"

    def auth(self, key: str) -> dict[str, str]:
        """Return the headers of a key."""
        return {"x-goog-api-key": key}

    def question(self, model: str, text: str, *, stream: bool = False, limit: int = 2048) -> dict[str, Any]:
        """Return a request; the model and the stream stand in the path."""
        return {
            "contents": [{"role": "user", "parts": [{"text": text}]}],
            "generationConfig": {"maxOutputTokens": limit},
        }

    def with_thinking(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for thinking."""
        return {**body, "generationConfig": {**body["generationConfig"], "thinkingConfig": {"includeThoughts": True}}}

    def with_tool(self, body: dict[str, Any], *, forced: bool) -> dict[str, Any]:
        """Offer the tool."""
        declared = {"name": TOOL, "description": "The weather of a city.", "parameters": TOOL_SCHEMA}
        mode = {"mode": "ANY", "allowedFunctionNames": [TOOL]} if forced else {"mode": "AUTO"}
        tools = [{"functionDeclarations": [declared]}]
        return {**body, "tools": tools, "toolConfig": {"functionCallingConfig": mode}}

    def with_schema(self, body: dict[str, Any]) -> dict[str, Any]:
        """Ask for an answer in the schema."""
        asked = {"responseMimeType": "application/json", "responseJsonSchema": ANSWER_SCHEMA}
        return {**body, "generationConfig": {**body["generationConfig"], **asked}}

    def with_result(self, body: dict[str, Any], reply: Any, calls: Sequence[ToolUse]) -> dict[str, Any]:
        """Return the next turn: the content as it came, and the results."""
        results = []
        for call in calls:
            answer: dict[str, Any] = {"name": call.name, "response": {"output": "18 °C, sunny"}}
            results.append({"functionResponse": {**answer, "id": call.id} if call.id else answer})
        turns = [reply["candidates"][0]["content"], {"role": "user", "parts": results}]
        mode = {"functionCallingConfig": {"mode": "AUTO"}}
        return {**body, "contents": [*body["contents"], *turns], "toolConfig": mode}

    def wrong_value(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request with a value of the wrong type."""
        return {**body, "contents": 5}

    def read_whole(self, reply: Any) -> Reading:
        """Read a whole reply."""
        reading = Reading(ended=True)
        _response(reading, reply)
        reading.require(bool(reading.finish), "the candidate has no finishReason")
        return reading

    def read_stream(self, frames: Sequence[Frame]) -> Reading:
        """Read a stream."""
        reading = Reading()

        def take(_: Frame, value: dict[str, Any]) -> None:
            if "error" in value:
                reading.error = json.dumps(value["error"])[:200]
                return
            _response(reading, value)

        reading.require(
            not any(frame.data.strip() == "[DONE]" for frame in frames),
            "the stream has a [DONE], which this API has not",
        )
        read_frames([frame for frame in frames if frame.data.strip() != "[DONE]"], reading, take)
        reading.ended = bool(reading.finish) and not reading.error
        reading.require(reading.ended or bool(reading.error), "no event has a finishReason")
        return reading

    def error_faults(self, reply: ReceivedReply) -> list[str]:
        """Return the faults of the form of an error."""
        reading = Reading()
        error = reading.field(reply.json, "error", dict, "body")
        if error is not None:
            reading.field(error, "message", str, "error")
            reading.field(error, "status", str, "error")
            reading.require(
                error.get("code") == reply.status, f"error.code is {error.get('code')!r}, the status {reply.status}"
            )
        return reading.faults

    def is_overflow(self, reply: ReceivedReply) -> bool:
        """Return whether an error says that the prompt is too long."""
        return b"exceeds the maximum number of tokens allowed" in reply.body


def _response(reading: Reading, value: Any) -> None:
    candidates = reading.field(value, "candidates", list, "response") or []
    for candidate in candidates[:1]:
        content = candidate.get("content") if isinstance(candidate, dict) else None
        for part in (content or {}).get("parts") or []:
            _part(reading, part)
        finish = candidate.get("finishReason")
        if finish is not None:
            reading.require(isinstance(finish, str) and finish.isupper(), f"finishReason is {finish!r}")
            reading.finish = str(finish)
            reading.refused = reading.finish in _REFUSALS
    usage = value.get("usageMetadata") if isinstance(value, dict) else None
    if isinstance(usage, dict):
        reading.input_tokens = reading.field(usage, "promptTokenCount", int, "usageMetadata")
        # What a search brought is counted apart from the prompt, and in the total (recorded of gemini-2.5-flash).
        brought = usage.get("toolUsePromptTokenCount")
        if reading.input_tokens is not None and isinstance(brought, int):
            reading.input_tokens += brought
        reading.total_tokens = reading.field(usage, "totalTokenCount", int, "usageMetadata")
        thought, answered = usage.get("thoughtsTokenCount"), usage.get("candidatesTokenCount")
        reading.thinking_tokens = thought if isinstance(thought, int) else None
        reading.output_tokens = (
            (answered or 0) + (thought or 0) if answered is not None or thought is not None else None
        )


def _part(reading: Reading, part: Any) -> None:
    if not isinstance(part, dict):
        reading.wrong("a part is no object")
        return
    reading.hidden_thinking = reading.hidden_thinking or "thoughtSignature" in part
    if isinstance(part.get("text"), str):
        if part.get("thought"):
            reading.thinking += part["text"]
        else:
            reading.text += part["text"]
    if "functionCall" in part:
        call = part["functionCall"]
        name = reading.field(call, "name", str, "functionCall") or ""
        arguments = call.get("args", {}) if isinstance(call, dict) else None
        reading.require(isinstance(arguments, dict), "functionCall.args is no object")
        reading.calls.append(ToolUse(id=str(call.get("id") or ""), name=name, arguments=json.dumps(arguments)))


WIRES: dict[str, Callable[[], Wire]] = {
    "openai_chat": Chat,
    "openai_responses": Responses,
    "anthropic_messages": Messages,
    "gemini": Gemini,
}
"""The dialects that can be checked."""
_UNKNOWN_MODEL = "no-such-model-8f2c"
_WRONG_KEY = "sk-wrong-0000000000000000"
_MARKS = ("<think>", "</think>", "<thinking>", "<reasoning>", "◁think▷", "<|channel|>")
_FEW = 16
_MOST_TEXT = 200
_REFUSED = frozenset({400, 404, 422})


class CheckOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a check: the model, and whether it thinks.

    `cut_model` is a model whose streams break off, empty for none; `overflow_tokens` are more than a prompt may have, 0 where none is sent.
    """

    model: str
    thinks: bool = True
    cut_model: str = ""
    overflow_tokens: int = 0
    has_key: bool = False


class Checker:
    """Checks one server by one dialect."""

    def __init__(self, server: CheckedServer, wire: Wire, options: CheckOptions) -> None:
        self._server = server
        self._wire = wire
        self._options = options
        self._answered = False

    async def findings(self, only: Sequence[str] = ()) -> AsyncIterator[Finding]:
        """Yield the findings, law by law, in the order of `LAWS`. Each reply is asked for once.

        Raises Unreachable if no server answers at the address.
        """
        wanted = {law.id for law in LAWS if not only or law.id in only or law.id.partition(".")[0] in only}
        causes: dict[str, str] = {}
        for check in (
            self._plain,
            self._limits,
            self._thinking,
            self._tools,
            self._typed,
            self._errors,
            self._check_cut_stream,
        ):
            async for finding in check():
                if finding.law in wanted:
                    yield _told_once(finding, causes)

    async def _ask(self, body: dict[str, Any] | bytes, *, stream: bool = False, model: str = "") -> ReceivedReply:
        path = self._wire.path(model or self._options.model, stream=stream)
        try:
            reply = await self._server.ask(path, body)
        except ProviderError as problem:
            # A law without a request is not broken.
            if isinstance(problem, Unreachable) and not self._answered:
                raise
            return ReceivedReply(status=0, content_type="", body=str(problem).encode(), cut=True)
        self._answered = True
        return reply

    def _question(self, text: str = QUESTION, *, stream: bool = False, limit: int = 2048) -> dict[str, Any]:
        return self._wire.question(self._options.model, text, stream=stream, limit=limit)

    async def _plain(self) -> AsyncIterator[Finding]:
        whole = await self._ask(self._question())
        reading = self._decode(whole)
        yield _judged("reply.whole", whole, [*reading.faults, *_nothing(reading)])
        yield _judged("usage.whole", whole, usage_faults(reading))
        streamed = await self._ask(self._question(stream=True), stream=True)
        reading = self._decode(streamed, stream=True)
        yield _judged("reply.stream", streamed, [*reading.faults, *_nothing(reading), *_stream_faults(streamed)])
        yield _judged("usage.stream", streamed, usage_faults(reading))

    async def _limits(self) -> AsyncIterator[Finding]:
        told = await self._ask(self._question("Count from 1 to 500, with commas.", limit=_FEW))
        reading = self._decode(told)
        if told.status in _REFUSED:
            yield Finding(
                law="limit.told",
                status="unclear",
                faults=(f"a limit of {_FEW} tokens is refused",),
                evidence=told.shown,
            )
            return
        if reading.output_tokens is not None and reading.output_tokens < _FEW // 2:
            yield Finding(
                law="limit.told", status="unclear", faults=("the model said less than the limit",), evidence=told.shown
            )
            return
        faults = [] if reading.finish in self._wire.limits else [f"the reply ends with {reading.finish!r}"]
        yield _judged("limit.told", told, faults)

    async def _thinking(self) -> AsyncIterator[Finding]:
        if not self._options.thinks:
            for law in ("thinking.whole", "thinking.stream", "thinking.counted"):
                yield Finding(law=law, status="skipped", faults=("the model does not think",))
            return
        whole = await self._ask(self._wire.with_thinking(self._question()))
        reading = self._decode(whole)
        yield _check_thinking("thinking.whole", whole, reading)
        streamed = await self._ask(self._wire.with_thinking(self._question(stream=True)), stream=True)
        yield _check_thinking("thinking.stream", streamed, self._decode(streamed, stream=True))
        yield self._counted(whole, reading)

    def _counted(self, whole: ReceivedReply, reading: Reading) -> Finding:
        if not reading.thinking and not reading.hidden_thinking:
            return Finding(law="thinking.counted", status="unclear", faults=("no thinking came",), evidence=whole.shown)
        if not self._wire.counts_thinking:
            return Finding(law="thinking.counted", status="skipped", faults=("this API counts it with the answer",))
        return _judged("thinking.counted", whole, [] if reading.thinking_tokens else ["no count of thinking tokens"])

    async def _tools(self) -> AsyncIterator[Finding]:
        body = self._wire.with_tool(self._question(TOOL_QUESTION), forced=True)
        whole = await self._ask(body)
        reading = self._decode(whole)
        yield _judged("tools.whole", whole, [*reading.faults, *self._call_faults(reading)])
        streamed_body = self._wire.with_tool(self._question(TOOL_QUESTION, stream=True), forced=True)
        streamed = await self._ask(streamed_body, stream=True)
        stream_reading = self._decode(streamed, stream=True)
        yield _judged("tools.stream", streamed, [*stream_reading.faults, *self._call_faults(stream_reading)])
        yield await self._loop(reading)

    async def _loop(self, forced: Reading) -> Finding:
        """Have a call answered with its result, with thinking where the model thinks."""
        question = self._question(TOOL_QUESTION)
        body = self._wire.with_tool(
            self._wire.with_thinking(question) if self._options.thinks else question, forced=False
        )
        first = await self._ask(body)
        reading = self._decode(first)
        if not reading.calls:
            why = "the model called no tool" if first.status == 200 else "the first turn was refused"
            return Finding(law="tools.loop", status="unclear", faults=(why,), evidence=first.shown)
        if reading.finish == "stop":
            # Agents take it for the end of the turn, and run no tool.
            return _judged(
                "tools.loop", first, ["a reply with a call that nobody forced ends with 'stop', not tool_calls"]
            )
        second = await self._ask(self._wire.with_result(body, first.json, reading.calls))
        answered = self._decode(second)
        return _judged("tools.loop", second, [*answered.faults, *_nothing(answered)])

    async def _typed(self) -> AsyncIterator[Finding]:
        for law, stream in (("typed.whole", False), ("typed.stream", True)):
            body = self._wire.with_schema(self._question(ANSWER_QUESTION, stream=stream))
            reply = await self._ask(body, stream=stream)
            if reply.status in _REFUSED:
                # To refuse what one cannot do is honest.
                why = f"an answer in a schema is refused: {_error_text(reply)}"
                yield Finding(law=law, status="unclear", faults=(why,), evidence=reply.shown)
                continue
            reading = self._decode(reply, stream=stream)
            if reading.refused or reading.finish in self._wire.limits:
                why = "the model declined to answer" if reading.refused else "the answer was cut by its limit"
                yield Finding(law=law, status="unclear", faults=(why,), evidence=reply.shown)
                continue
            yield _judged(law, reply, [*reading.faults, *typed_faults(reading)])

    async def _errors(self) -> AsyncIterator[Finding]:
        yield self._error("error.json", await self._ask(b'{"model": "x", '), frozenset({400}))
        wrong = self._wire.wrong_value(self._question())
        yield self._error("error.value", await self._ask(wrong), frozenset({400, 422}))
        unknown = self._wire.question(_UNKNOWN_MODEL, QUESTION)
        yield self._error("error.model", await self._ask(unknown, model=_UNKNOWN_MODEL), frozenset({400, 403, 404}))
        yield await self._wrong_key()
        yield await self._overflow()

    def _error(self, law: str, reply: ReceivedReply, statuses: frozenset[int]) -> Finding:
        faults = (
            []
            if reply.status in statuses
            else [f"the status is {reply.status or 'none: ' + reply.body.decode('utf-8', 'replace')}"]
        )
        if "json" not in reply.content_type:
            faults.append(f"the content type is {reply.content_type or 'missing'}")
        return _judged(law, reply, [*faults, *self._wire.error_faults(reply)], any_status=True)

    async def _wrong_key(self) -> Finding:
        if not self._options.has_key:
            return Finding(law="error.key", status="skipped", faults=("no key was given: the server may ask for none",))
        path = self._wire.path(self._options.model, stream=False)
        reply = await self._server.ask(path, self._question(), self._wire.auth(_WRONG_KEY))
        return self._error("error.key", reply, self._wire.key_statuses)

    async def _overflow(self) -> Finding:
        if not self._options.overflow_tokens:
            return Finding(law="error.overflow", status="skipped", faults=("it was not said how long is too long",))
        reply = await self._ask(self._question("word " * self._options.overflow_tokens))
        finding = self._error("error.overflow", reply, frozenset({400, 413}))
        if finding.status == "broken" or self._wire.is_overflow(reply):
            return finding
        return _judged("error.overflow", reply, ["the error is not in the words of the API"], any_status=True)

    async def _check_cut_stream(self) -> AsyncIterator[Finding]:
        model = self._options.cut_model
        if not model:
            yield Finding(law="cut.loud", status="skipped", faults=("no model was named whose streams break off",))
            return
        reply = await self._ask(self._wire.question(model, QUESTION, stream=True), stream=True, model=model)
        if reply.status in (401, 403, 404):
            yield Finding(law="cut.loud", status="unclear", faults=("the model is refused",), evidence=reply.shown)
            return
        reading = self._wire.read_stream(reply.frames)
        quiet = reply.status == 200 and not reply.cut and not reading.error and reading.ended
        yield _judged("cut.loud", reply, ["the stream ends as if it were whole"] if quiet else [], any_status=True)

    def _decode(self, reply: ReceivedReply, *, stream: bool = False) -> Reading:
        if reply.status != 200:
            return Reading()
        return self._wire.read_stream(reply.frames) if stream else self._wire.read_whole(reply.json)

    def _call_faults(self, reading: Reading) -> list[str]:
        if not reading.calls:
            return ["there is no call, although the tool was forced"]
        return [fault for call in reading.calls for fault in self._faults_of(call)]

    def _faults_of(self, call: ToolUse) -> list[str]:
        faults = []
        if not call.id and self._wire.names_calls:
            faults.append("a call has no id")
        if call.name != TOOL:
            faults.append(f"a call is of {call.name!r}")
        if not isinstance(_value(call.arguments), dict):
            faults.append(f"the arguments are no JSON object: {call.arguments[:60]!r}")
        return faults


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _judged(law: str, reply: ReceivedReply, faults: Sequence[str], *, any_status: bool = False) -> Finding:
    """Return that a law holds where there are no faults. A reply that is none leaves it open only where the server was not reached."""
    problems, cause = list(faults), ""
    if not any_status and reply.status != 200:
        text = _error_text(reply)
        cause = f"the status is {reply.status}: {text}" if reply.status else text
        problems = [cause]
    status: Status = "broken" if problems else "kept"
    return Finding(
        law=law, status=status, faults=tuple(problems), evidence=reply.shown if problems else "", cause=cause
    )


def _told_once(finding: Finding, causes: dict[str, str]) -> Finding:
    """Return a finding, unclear where its request was refused for a cause that an earlier law of `causes` has told."""
    first = causes.setdefault(finding.cause, finding.law) if finding.cause else finding.law
    if first == finding.law:
        return finding
    return msgspec.structs.replace(finding, status="unclear", faults=(f"refused for the same cause as {first}",))


def _error_text(reply: ReceivedReply) -> str:
    """Return the message of an error, in whichever place it stands; else the beginning of the body."""
    value = reply.json
    error = value.get("error", value) if isinstance(value, dict) else value
    message = error.get("message") if isinstance(error, dict) else error
    text = message if isinstance(message, str) else reply.body.decode("utf-8", "replace")
    return " ".join(text[:_MOST_TEXT].split()) or "no text"


def _check_thinking(law: str, reply: ReceivedReply, reading: Reading) -> Finding:
    marks = [mark for mark in _MARKS if mark in reading.text]
    if marks:
        return _judged(law, reply, [f"{mark} stands in the answer" for mark in marks])
    if reply.status == 200 and not reading.thinking and not reading.hidden_thinking:
        return Finding(
            law=law, status="unclear", faults=("no thinking came: the model may have had none",), evidence=reply.shown
        )
    return _judged(law, reply, reading.faults)


def typed_faults(reading: Reading, schema: Any = ANSWER_SCHEMA) -> list[str]:
    """Return where the text of an answer is not JSON of a schema."""
    try:
        value = json.loads(reading.text)
    except ValueError:
        return [f"the answer is no JSON: {' '.join(reading.text[:60].split())!r}"]
    return [
        f"the answer breaks its schema at {failure.path or 'its top'}: {failure.message}"
        for failure in checker(schema).failures(value)
    ]


def _nothing(reading: Reading) -> list[str]:
    return [] if reading.text.strip() or reading.calls else ["the reply says nothing"]


def _stream_faults(reply: ReceivedReply) -> list[str]:
    faults = (
        []
        if reply.content_type.startswith("text/event-stream")
        else [f"the content type is {reply.content_type or 'missing'}"]
    )
    if reply.oversized:
        return [*faults, f"the reply has more than {MOST_BYTES:,} bytes, and may have no end"]
    return [*faults, "the connection broke before the end"] if reply.cut else faults


def usage_faults(reading: Reading) -> list[str]:
    """Return the faults of the counts of a reply."""
    if not reading.input_tokens or not reading.output_tokens:
        return ["tokens of the prompt or the answer are missing"]
    total = reading.total_tokens
    if total is not None and total != reading.input_tokens + reading.output_tokens:
        return [f"{reading.input_tokens} and {reading.output_tokens} tokens are not {total}"]
    if (reading.thinking_tokens or 0) > reading.output_tokens:
        return ["there are more tokens of thinking than of output"]
    return []
