"""Providers of Chat with figures of their own beside the usage: Groq, Cerebras, xAI and Venice.

Groq writes `reasoning`, `x_groq` in the first and last chunk, and the usage up to three times. Cerebras writes `reasoning`, timings,
usage in the finish chunk, and no `[DONE]`. At xAI, reasoning tokens stand beside the completion tokens, so the total is the sum of
three. Venice writes `reasoning_content`, a cost in dollars and DIEM, and its parameters given back with all defaults.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from bardo.simulators import chat_request
from bardo.simulators.chat import Chat, asks_for_usage
from bardo.simulators.exchange import Exchange, Incoming, Refusal, Reply, data_event, named_event
from bardo.simulators.fields import Fields, at, fields, rows, without
from bardo.simulators.marks import DIGITS, HEXADECIMAL
from bardo.simulators.provider import masked
from bardo.simulators.providers.openai_responses import OpenAIResponses
from bardo.simulators.turns import Conversation, ToolCall

_GROQ_FINGERPRINT = "fp_8d9ccea017"


class Groq(Chat):
    """api.groq.com/openai/v1."""

    name = "groq"
    catalog_name = "groq"
    base_path = "/openai/v1"
    models = ("openai/gpt-oss-120b", "qwen/qwen3-32b")
    owner = "OpenAI"
    reasoning_field = "reasoning"
    off_switches = (("reasoning_effort", "none"),)
    hiding_switches = (("include_reasoning", False), ("reasoning_format", "hidden"))
    choice_order = ("index", "message", "logprobs", "finish_reason")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        _check_reasoning_format(incoming.fields)
        for index, name in chat_request.own_fields_of_answers(incoming.fields):
            place = f"messages.{index}"
            words = f"the following must be satisfied[('{place}' : property '{name}' is unsupported)]"
            raise Refusal("bad_value", f"'{place}' : for 'role:assistant' {words}")
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.uuid('reply')}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            **super().completion(exchange),
            "usage_breakdown": None,
            "system_fingerprint": _GROQ_FINGERPRINT,
            "x_groq": {"id": _request_id(exchange), "seed": 1367355884},
            "service_tier": "on_demand",
        }

    def message(self, exchange: Exchange) -> Fields:
        """A message of nothing but calls has no content at all."""
        message = super().message(exchange)
        return message if exchange.turn.text else without(message, ["content"])

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"fc_{exchange.uuid(f'call{index}')}"

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        counted: Fields = {
            "queue_time": 0.079634197,
            "prompt_tokens": usage.input_tokens,
            "prompt_time": 0.0037813,
            "completion_tokens": usage.output_tokens,
            "completion_time": 0.222267865,
            "total_tokens": usage.total_tokens,
            "total_time": 0.226049165,
        }
        if usage.cached_input_tokens:
            counted["prompt_tokens_details"] = {"cached_tokens": usage.cached_input_tokens}
        if usage.reasoning_tokens:
            counted["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning_tokens}
        return counted

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        first, *others = super().chunks(exchange)
        yield {**first, "x_groq": {"id": _request_id(exchange), "seed": 1367355884}}
        yield from others

    def reasoning_delta(self, piece: str) -> Fields:
        return {"reasoning": piece, "channel": "analysis"}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        yield {"tool_calls": [{**self.tool_call(exchange, index, call), "index": index}]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        chunk: Fields = {
            **self.envelope(exchange, "chat.completion.chunk"),
            "system_fingerprint": _GROQ_FINGERPRINT,
            "choices": choices,
        }
        return {**chunk, "usage": usage, "service_tier": "on_demand"} if usage is not None else chunk

    def closing_chunks(self, exchange: Exchange) -> Iterator[Fields]:
        usage = self.usage(exchange)
        finished = self.chunk(exchange, [self.choice({}, self.finish(exchange))])
        yield {**finished, "x_groq": {"id": _request_id(exchange), "usage": usage}, "usage": usage}
        if asks_for_usage(exchange):
            yield self.chunk(exchange, [], usage)

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Invalid API Key")

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Invalid API Key")

    def error_body(self, refusal: Refusal) -> Fields:
        codes = {401: "invalid_api_key", 404: "model_not_found", 429: "rate_limit_exceeded"}
        code = codes.get(refusal.status, refusal.reason)
        kind = "invalid_request_error" if refusal.status < 429 else "tokens" if refusal.status == 429 else None
        error: Fields = {"message": refusal.message, "type": kind or "internal_server_error", "code": code}
        return {"error": error}

    def error_events(self) -> Sequence[bytes]:
        error: Fields = {
            "message": "Tool call validation failed: attempted to call a tool which was not in request.tools",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": "",
            "status_code": 400,
        }
        return [named_event("error", {"error": error})]


def _request_id(exchange: Exchange) -> str:
    return f"req_01{exchange.token('request', 24, '0123456789abcdefghjkmnpqrstvwxyz')}"


def _check_reasoning_format(body: Fields) -> None:
    """Refuse thinking in the text beside tools or JSON, and two fields for one thing.

    console.groq.com/docs/reasoning, 2026-11, says that both are errors with the status 400; it does not give their words.
    """
    if "reasoning_format" not in body:
        return
    if "include_reasoning" in body:
        words = "`include_reasoning` and `reasoning_format` cannot be used together"
        raise Refusal("bad_value", words, parameter="reasoning_format")
    json_mode = at(body, "response_format.type") in ("json_object", "json_schema")
    if body["reasoning_format"] == "raw" and (body.get("tools") or json_mode):
        words = "`reasoning_format` must be `parsed` or `hidden` with tool use or JSON mode"
        raise Refusal("bad_value", words, parameter="reasoning_format")


_CEREBRAS_FINGERPRINT = "fp_c5eb0443f84076c16415"


class Cerebras(Chat):
    """api.cerebras.ai/v1."""

    name = "cerebras"
    catalog_name = "cerebras"
    models = ("gpt-oss-120b", "zai-glm-4.7")
    owner = "Cerebras"
    reasoning_field = "reasoning"
    usage_place = "finish"
    ends_with_done = False
    off_switches = (("reasoning_effort", "none"), ("disable_reasoning", True))
    hiding_switches = (("reasoning_format", "hidden"),)
    choice_order = ("finish_reason", "index", "message")

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        # Refuse fields that Cerebras does not have, in its words (QwenLM/qwen-code#11045 and proxysoul/Empryo#209,
        # 2026-09).
        body = incoming.fields
        wrong: list[str] = [name for name in ("reasoning", "enable_thinking", "thinking") if name in body]
        for index, message in enumerate(rows(body.get("messages"))):
            if message.get("role") == "developer":
                expected = "'system', 'user', 'assistant', 'tool'"
                words = f"Input tag 'developer' found using 'role' does not match any of the expected tags: {expected}"
                raise Refusal("bad_value", f"body.messages.{index}: {words}", status=422)
            if "reasoning_content" in message:
                wrong.append(f"messages.{index}.assistant.reasoning_content")
        wrong += [f"messages.{index}.assistant.{name}" for index, name in chat_request.own_fields_of_answers(body)]
        if wrong:
            raise Refusal("unknown_field", "\n".join(f"{name}: property '{name}' is unsupported" for name in wrong))
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return f"chatcmpl-{exchange.uuid('reply')}"

    def completion(self, exchange: Exchange) -> Fields:
        return {
            "id": self.reply_id(exchange),
            "choices": [self.whole_choice(exchange)],
            "created": exchange.created,
            "model": exchange.model,
            "system_fingerprint": _CEREBRAS_FINGERPRINT,
            "object": "chat.completion",
            "usage": self.usage(exchange),
            "time_info": _time_info(exchange),
        }

    def message(self, exchange: Exchange) -> Fields:
        """A message of nothing but calls has no content at all."""
        message = super().message(exchange)
        return message if exchange.turn.text else without(message, ["content"])

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or exchange.token(f"call{index}", 9, HEXADECIMAL)

    def usage(self, exchange: Exchange) -> Fields:
        """The recorded replies do not count reasoning."""
        return without(super().usage(exchange), ["completion_tokens_details"])

    def opening_deltas(self, exchange: Exchange) -> Iterator[Fields]:
        yield {"role": "assistant"}

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        call_id = self.call_id(exchange, index, call)
        yield {"tool_calls": [{"function": function, "type": "function", "id": call_id, "index": index}]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        choice: Fields = {"delta": delta, "index": 0}
        return {"delta": delta, "finish_reason": finish, "index": 0} if finish else choice

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        chunk: Fields = {
            "id": self.reply_id(exchange),
            "choices": choices,
            "created": exchange.created,
            "model": exchange.model,
            "system_fingerprint": _CEREBRAS_FINGERPRINT,
            "object": "chat.completion.chunk",
        }
        return {**chunk, "usage": usage, "time_info": _time_info(exchange)} if usage is not None else chunk

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Wrong API Key", parameter="api_key")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", f"Model {model} does not exist or you do not have access to it.")

    def error_body(self, refusal: Refusal) -> Fields:
        """The error is not inside an `error` object."""
        kind, code = {
            401: ("invalid_request_error", "wrong_api_key"),
            404: ("not_found_error", "model_not_found"),
            429: ("too_many_requests_error", "request_quota_exceeded"),
        }.get(refusal.status, ("invalid_request_error", "wrong_api_format"))
        if refusal.status >= 500:
            kind, code = "server_error", "internal_server_error"
        return {"message": refusal.message, "type": kind, "param": refusal.parameter, "code": code}

    def error_events(self) -> Sequence[bytes]:
        body = self.error_body(Refusal("trouble", "Encountered a server error, please try again.", status=500))
        return [data_event({"error": {**body, "status_code": 500}})]


def _time_info(exchange: Exchange) -> Fields:
    return {
        "queue_time": 0.00012618,
        "prompt_time": 0.002287636,
        "completion_time": 0.029923906,
        "total_time": 0.03423023223876953,
        "created": float(exchange.created),
    }


_XAI_FINGERPRINT = "fp_eb3c003fc66c14ed"


class XAIResponses(OpenAIResponses):
    """api.x.ai/v1/responses."""

    checks_roots = False


class XAI(Chat):
    """api.x.ai/v1."""

    name = "xai"
    catalog_name = "xai"
    other_dialects = (XAIResponses,)
    models = ("grok-4.3", "grok-code-fast-1")
    owner = "xai"
    usage_place = "always"
    off_switches = (("reasoning_effort", "none"),)

    def decode_request(self, incoming: Incoming, path: str) -> Conversation:
        conversation = super().decode_request(incoming, path)
        # Refuse what models that think do not take (yym68686/uni-api#105), and an effort where there is none (hermes-
        # agent#23435, 2026-05).
        body = incoming.fields
        for name, word in _REFUSED.items():
            if body.get(name) and body.get("reasoning_effort") != "none":
                raise Refusal("bad_value", f"Argument not supported on this model: {word}")
        if "reasoning_effort" in body and not conversation.model.startswith(
            ("grok-4.3", "grok-3-mini", "grok-4.20-multi-agent")
        ):
            raise Refusal("bad_value", f"Model {conversation.model} does not support parameter reasoningEffort.")
        return conversation

    def reply_id(self, exchange: Exchange) -> str:
        return exchange.uuid("reply")

    def completion(self, exchange: Exchange) -> Fields:
        return {**super().completion(exchange), "system_fingerprint": _XAI_FINGERPRINT}

    def message(self, exchange: Exchange) -> Fields:
        return {**super().message(exchange), "refusal": None}

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"call_{exchange.token(f'call{index}', 8, DIGITS)}"

    def tool_call(self, exchange: Exchange, index: int, call: ToolCall) -> Fields:
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        return {"id": self.call_id(exchange, index, call), "function": function, "type": "function"}

    def usage(self, exchange: Exchange) -> Fields:
        usage = exchange.usage
        return {
            "prompt_tokens": usage.input_tokens,
            "completion_tokens": usage.answer_tokens,
            "total_tokens": usage.total_tokens,
            "prompt_tokens_details": {
                "text_tokens": usage.input_tokens,
                "audio_tokens": 0,
                "image_tokens": 0,
                "cached_tokens": usage.cached_input_tokens,
            },
            "completion_tokens_details": {
                "reasoning_tokens": usage.reasoning_tokens,
                "audio_tokens": 0,
                "accepted_prediction_tokens": 0,
                "rejected_prediction_tokens": 0,
            },
            "num_sources_used": 0,
            "cost_in_usd_ticks": usage.total_tokens * 3300,
        }

    def deltas(self, exchange: Exchange) -> Iterator[Fields]:
        """The role comes with the first thing said."""
        first, *others = [delta for delta in super().deltas(exchange) if "role" not in delta] or [{"content": ""}]
        yield {**first, "role": "assistant"}
        yield from others

    def call_deltas(self, exchange: Exchange, index: int, call: ToolCall) -> Iterator[Fields]:
        """Calls come whole."""
        function: Fields = {"name": call.name, "arguments": call.arguments_text}
        call_id = self.call_id(exchange, index, call)
        yield {"tool_calls": [{"id": call_id, "function": function, "index": index, "type": "function"}]}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        choice: Fields = {"index": 0, "delta": delta}
        return {**choice, "finish_reason": finish} if finish else choice

    def chunk(self, exchange: Exchange, choices: Sequence[Fields], usage: Fields | None = None) -> Fields:
        return {**super().chunk(exchange, choices, usage), "system_fingerprint": _XAI_FINGERPRINT}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "No API key provided. Specify it in the Authorization header.")

    def wrong_key(self, key: str) -> Refusal:
        """xAI answers a wrong key with 400."""
        where = "You can obtain an API key from https://console.x.ai."
        return Refusal("wrong_key", f"Incorrect API key provided: {masked(key)}. {where}", status=400)

    def error_body(self, refusal: Refusal) -> Fields:
        code = {
            401: "The request does not have valid authentication credentials",
            404: "Some requested entity was not found",
            429: "Some resource has been exhausted",
            500: "Internal error",
            503: "The service is currently unavailable",
        }.get(refusal.status, "Client specified an invalid argument")
        return {"code": code, "error": refusal.message}

    def error_events(self) -> Sequence[bytes]:
        return [data_event({"error": {"message": "Service temporarily unavailable.", "code": 503}})]


_REFUSED = {"presence_penalty": "presencePenalty", "frequency_penalty": "frequencyPenalty", "stop": "stop"}


_PARAMETERS: Fields = {
    "disable_thinking": False,
    "enable_e2ee": True,
    "enable_web_citations": False,
    "enable_web_scraping": False,
    "enable_web_search": "off",
    "enable_x_search": False,
    "include_search_results_in_stream": False,
    "include_venice_system_prompt": True,
    "return_search_results_as_documents": False,
    "strip_thinking_response": False,
    "web_search_citations": [],
}


class Venice(Chat):
    """api.venice.ai/api/v1. `balances` are the rest of the account, as in the headers of each reply."""

    balances: Mapping[str, str] = MappingProxyType({"diem": "12.5", "usd": "3.25"})
    name = "venice"
    catalog_name = "venice"
    runs_templates = True
    embeds = "any"
    lists_without_key = True
    base_path = "/api/v1"
    models = ("qwen3-5-9b", "zai-org-glm-4.7")
    owner = "venice.ai"
    off_switches = (
        ("reasoning.enabled", False),
        ("reasoning_effort", "none"),
        ("reasoning.effort", "none"),
        ("venice_parameters.disable_thinking", True),
    )
    hiding_switches = (("venice_parameters.strip_thinking_response", True),)
    choice_order = ("index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids")

    def encode_reply(self, exchange: Exchange) -> Reply:
        return self._with_balances(super().encode_reply(exchange))

    def encode_stream(self, exchange: Exchange) -> Reply:
        return self._with_balances(super().encode_stream(exchange))

    def _with_balances(self, reply: Reply) -> Reply:
        told = tuple((f"x-venice-balance-{name}", amount) for name, amount in self.balances.items())
        return replace(reply, headers=(*reply.headers, *told))

    def completion(self, exchange: Exchange) -> Fields:
        return {
            **self.envelope(exchange, "chat.completion"),
            "choices": [self.whole_choice(exchange)],
            "service_tier": None,
            "usage": self.usage(exchange),
            "prompt_logprobs": None,
            "prompt_token_ids": None,
            "kv_transfer_params": None,
            "cost": _cost(exchange),
            "venice_parameters": {**_PARAMETERS, **fields(exchange.body.get("venice_parameters"))},
        }

    def message(self, exchange: Exchange) -> Fields:
        calls = [self.tool_call(exchange, index, call) for index, call in exchange.calls()]
        message: Fields = {
            "role": "assistant",
            "content": exchange.turn.text,
            "refusal": None,
            "annotations": None,
            "audio": None,
            "function_call": None,
            "reasoning_content": exchange.turn.reasoning or None,
        }
        return {**message, "tool_calls": calls} if calls else message

    def call_id(self, exchange: Exchange, index: int, call: ToolCall) -> str:
        return call.id or f"chatcmpl-tool-{exchange.token(f'call{index}', 32, HEXADECIMAL)}"

    def usage(self, exchange: Exchange) -> Fields:
        """Most models at Venice do not count reasoning."""
        return without(super().usage(exchange), ["completion_tokens_details"])

    def reasoning_delta(self, piece: str) -> Fields:
        return {"content": "", "reasoning_content": piece}

    def choice(self, delta: Fields, finish: str | None) -> Fields:
        choice: Fields = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**choice, "stop_reason": None, "token_ids": None} if finish else {**choice, "token_ids": None}

    def chunks(self, exchange: Exchange) -> Iterator[Fields]:
        first, *others = super().chunks(exchange)
        yield {**first, "prompt_token_ids": None}
        yield from others

    def closing_chunks(self, exchange: Exchange) -> Iterator[Fields]:
        for chunk in super().closing_chunks(exchange):
            yield {**chunk, "cost": _cost(exchange)} if "usage" in chunk else chunk

    def last_delta(self) -> Fields:
        return {"content": ""}

    def missing_key(self) -> Refusal:
        return Refusal("missing_key", "Authentication failed")

    def wrong_key(self, key: str) -> Refusal:
        return Refusal("wrong_key", "Authentication failed")

    def unknown_model(self, model: str) -> Refusal:
        return Refusal("unknown_model", "Specified model not found")

    def error_body(self, refusal: Refusal) -> Fields:
        """The error is a string."""
        return {"error": refusal.message}

    def model_row(self, model: str) -> Fields:
        capabilities: Fields = {
            "supportsReasoning": True,
            "supportsReasoningEffort": True,
            "reasoningEffortOptions": ["low", "medium", "high"],
            "defaultReasoningEffort": "medium",
            "supportsFunctionCalling": True,
            "supportsResponseSchema": True,
            "supportsTeeAttestation": model.startswith(("e2ee-", "tee-")),
        }
        specification: Fields = {
            "privacy": "private",
            "availableContextTokens": 256000,
            "pricing": {"input": {"usd": 0.1, "diem": 0.1}, "output": {"usd": 0.15, "diem": 0.15}},
            "traits": [],
            "capabilities": capabilities,
        }
        return {**super().model_row(model), "type": "text", "model_spec": specification}


def _cost(exchange: Exchange) -> Fields:
    usage = exchange.usage
    return {"usd": (usage.input_tokens * 0.1 + usage.output_tokens * 0.15) / 1e6, "diem": 0}
