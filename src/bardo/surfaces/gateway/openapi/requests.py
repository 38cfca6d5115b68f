"""The bodies of requests: the fields that bardo reads, by the form of a route. What a body holds beside them goes to the provider."""

from __future__ import annotations

from bardo.dialects.batches.openai_client import ENDPOINTS
from bardo.surfaces.gateway.openapi.json_schema import (
    ANY,
    BOOLEAN,
    INTEGER,
    NUMBER,
    OBJECT,
    STRING,
    Schema,
    array,
    described,
    either,
    fields,
    just,
    one_of,
    or_null,
    ref,
    structure,
)

_BARDO = ref("BardoOptions")
_MODEL = described(STRING, "A model's name, `provider/model`, an alias or a workload.")
_OBJECTS = array(OBJECT)
_TEXTS = either(STRING, array(STRING))
_COUNT = or_null({"type": "integer", "minimum": 1})
_STOPS = or_null(_TEXTS)
_MAYBE_OBJECT, _MAYBE_OBJECTS, _MAYBE_STRING = or_null(OBJECT), or_null(_OBJECTS), or_null(STRING)
_MAYBE_NUMBER, _MAYBE_BOOLEAN = or_null(NUMBER), or_null(BOOLEAN)
_THINKING: dict[str, Schema] = {
    "reasoning_effort": or_null(either(STRING, INTEGER)),
    "reasoning": _MAYBE_OBJECT,
    "thinking": or_null(either(OBJECT, BOOLEAN)),
    "enable_thinking": _MAYBE_BOOLEAN,
    "thinking_budget": or_null(INTEGER),
    "thinking_token_budget": or_null(INTEGER),
    "think": or_null(either(BOOLEAN, STRING)),
    "output_config": _MAYBE_OBJECT,
    "include_reasoning": _MAYBE_BOOLEAN,
}
_SAMPLING: dict[str, Schema] = {
    "temperature": _MAYBE_NUMBER,
    "top_p": _MAYBE_NUMBER,
    "top_k": _MAYBE_NUMBER,
    "min_p": _MAYBE_NUMBER,
    "repetition_penalty": _MAYBE_NUMBER,
    "frequency_penalty": _MAYBE_NUMBER,
    "presence_penalty": _MAYBE_NUMBER,
    "seed": _MAYBE_NUMBER,
    "stop": _STOPS,
}
_CHAT: dict[str, Schema] = {
    "model": _MODEL,
    "messages": _OBJECTS,
    "tools": _MAYBE_OBJECTS,
    "functions": _MAYBE_OBJECTS,
    "tool_choice": or_null(either(STRING, OBJECT)),
    "function_call": or_null(either(STRING, OBJECT)),
    "parallel_tool_calls": _MAYBE_BOOLEAN,
    "n": _COUNT,
    "stream": _MAYBE_BOOLEAN,
    "max_tokens": _COUNT,
    "max_completion_tokens": _COUNT,
    "stream_options": _MAYBE_OBJECT,
    "response_format": _MAYBE_OBJECT,
    "bardo": _BARDO,
    **_SAMPLING,
    **_THINKING,
}
_RESPONSES: dict[str, Schema] = {
    "model": _MODEL,
    "input": either(STRING, _OBJECTS),
    "instructions": or_null(either(STRING, _OBJECTS)),
    "tools": _MAYBE_OBJECTS,
    "tool_choice": or_null(either(STRING, OBJECT)),
    "parallel_tool_calls": _MAYBE_BOOLEAN,
    "max_output_tokens": _COUNT,
    "text": _MAYBE_OBJECT,
    "stream": _MAYBE_BOOLEAN,
    "store": _MAYBE_BOOLEAN,
    "previous_response_id": _MAYBE_STRING,
    "conversation": or_null(either(STRING, OBJECT)),
    "bardo": _BARDO,
    **_SAMPLING,
    **_THINKING,
}
_MESSAGES: dict[str, Schema] = {
    "model": _MODEL,
    "messages": _OBJECTS,
    "system": or_null(either(STRING, _OBJECTS)),
    "max_tokens": {"type": "integer", "minimum": 1},
    "tools": _MAYBE_OBJECTS,
    "tool_choice": _MAYBE_OBJECT,
    "thinking": _MAYBE_OBJECT,
    "output_config": _MAYBE_OBJECT,
    "output_format": _MAYBE_OBJECT,
    "temperature": _MAYBE_NUMBER,
    "top_p": _MAYBE_NUMBER,
    "top_k": _MAYBE_NUMBER,
    "stop_sequences": or_null(array(STRING)),
    "stream": _MAYBE_BOOLEAN,
    "bardo": _BARDO,
}
_GEMINI: dict[str, Schema] = {
    "contents": either(_OBJECTS, OBJECT),
    "systemInstruction": or_null(either(STRING, OBJECT)),
    "tools": or_null(either(_OBJECTS, OBJECT)),
    "toolConfig": _MAYBE_OBJECT,
    "generationConfig": _MAYBE_OBJECT,
    "bardo": _BARDO,
}
_INTERACTIONS: dict[str, Schema] = {
    "model": _MODEL,
    "input": either(STRING, OBJECT, _OBJECTS),
    "system_instruction": _MAYBE_STRING,
    "tools": _MAYBE_OBJECTS,
    "generation_config": _MAYBE_OBJECT,
    "response_format": ANY,
    "response_mime_type": _MAYBE_STRING,
    "stream": _MAYBE_BOOLEAN,
    "bardo": _BARDO,
}
_COHERE: dict[str, Schema] = {
    "model": _MODEL,
    "messages": _OBJECTS,
    "tools": _MAYBE_OBJECTS,
    "strict_tools": _MAYBE_BOOLEAN,
    "tool_choice": _MAYBE_STRING,
    "max_tokens": _COUNT,
    "thinking": _MAYBE_OBJECT,
    "reasoning_effort": _MAYBE_STRING,
    "response_format": _MAYBE_OBJECT,
    "stream": _MAYBE_BOOLEAN,
    "temperature": _MAYBE_NUMBER,
    "p": _MAYBE_NUMBER,
    "k": _MAYBE_NUMBER,
    "frequency_penalty": _MAYBE_NUMBER,
    "presence_penalty": _MAYBE_NUMBER,
    "seed": _MAYBE_NUMBER,
    "stop_sequences": or_null(array(STRING)),
    "bardo": _BARDO,
}
_CONVERSE: dict[str, Schema] = {
    "modelId": _MAYBE_STRING,
    "messages": _OBJECTS,
    "system": _MAYBE_OBJECTS,
    "inferenceConfig": _MAYBE_OBJECT,
    "toolConfig": _MAYBE_OBJECT,
    "outputConfig": _MAYBE_OBJECT,
    "additionalModelRequestFields": _MAYBE_OBJECT,
    "bardo": _BARDO,
}
_OLLAMA: dict[str, Schema] = {
    "model": _MODEL,
    "messages": _MAYBE_OBJECTS,
    "tools": _MAYBE_OBJECTS,
    "options": _MAYBE_OBJECT,
    "format": or_null(either(STRING, OBJECT)),
    "think": or_null(either(BOOLEAN, STRING)),
    "stream": _MAYBE_BOOLEAN,
    "keep_alive": ANY,
    "bardo": _BARDO,
}
_GENERATE = {name: schema for name, schema in _OLLAMA.items() if name not in ("messages", "tools")}
_GENERATE |= {"prompt": _MAYBE_STRING, "system": _MAYBE_STRING, "images": or_null(array(STRING))}
_COMPLETION = {name: schema for name, schema in _CHAT.items() if name not in ("messages", "tools", "functions")}
_COMPLETION |= {
    "prompt": _TEXTS,
    "suffix": _MAYBE_STRING,
    "echo": _MAYBE_BOOLEAN,
    "best_of": _COUNT,
    "logprobs": or_null(INTEGER),
}
_EMBED_CONTENT: dict[str, Schema] = {
    "content": OBJECT,
    "taskType": _MAYBE_STRING,
    "title": _MAYBE_STRING,
    "outputDimensionality": _COUNT,
}
_METADATA = or_null({"type": "object", "additionalProperties": STRING})

DIALECT_FIELDS: dict[str, dict[str, Schema]] = {
    "openai_chat": _CHAT,
    "openai_responses": _RESPONSES,
    "anthropic_messages": _MESSAGES,
    "gemini": _GEMINI,
    "gemini_interactions": _INTERACTIONS,
    "cohere": _COHERE,
    "bedrock_converse": _CONVERSE,
    "ollama": _OLLAMA,
}
"""The fields of a request for a reply that each dialect reads; a test compares them with what its decoder reads."""

REQUESTS: dict[str, Schema] = {
    "generate openai_chat": structure(_CHAT, ("model", "messages")),
    "respond openai_responses": structure(_RESPONSES, ("model",)),
    "generate anthropic_messages": structure(_MESSAGES, ("model", "messages", "max_tokens")),
    "generate gemini": structure(_GEMINI, ("contents",)),
    "generate gemini_interactions": structure(_INTERACTIONS, ("model", "input")),
    "generate cohere": structure(_COHERE, ("model", "messages")),
    "generate bedrock_converse": structure(_CONVERSE, ("messages",)),
    "generate bedrock_invoke": fields(bardo=_BARDO),
    "generate_or_load ollama": structure(_OLLAMA, ("model",)),
    "generate_or_load ollama_generate": structure(_GENERATE, ("model",)),
    "complete": structure(_COMPLETION, ("model", "prompt")),
    "embed openai_chat": fields(
        "model",
        "input",
        model=_MODEL,
        input=either(STRING, array(STRING), array(INTEGER), array(array(INTEGER)), _OBJECTS),
        dimensions=_COUNT,
        encoding_format=or_null(one_of("float", "base64")),
        bardo=_BARDO,
    ),
    "embed ollama embed": fields(
        "model",
        "input",
        model=_MODEL,
        input=_TEXTS,
        truncate=_MAYBE_BOOLEAN,
        dimensions=_COUNT,
        bardo=_BARDO,
    ),
    "embed ollama embeddings": fields("model", "prompt", model=_MODEL, prompt=STRING, bardo=_BARDO),
    "embed gemini embedContent": structure({**_EMBED_CONTENT, "bardo": _BARDO}, ("content",)),
    "embed gemini batchEmbedContents": fields(
        "requests",
        requests={**array(structure(_EMBED_CONTENT, ("content",))), "minItems": 1},
        bardo=_BARDO,
    ),
    "count_tokens anthropic_messages": structure(_MESSAGES, ("model", "messages")),
    "count_tokens openai_responses": structure(_RESPONSES, ("model",)),
    "count_tokens gemini": structure({**_GEMINI, "generateContentRequest": _MAYBE_OBJECT}),
    "show_capabilities": fields(model=_MODEL, name=described(STRING, "What older clients call `model`.")),
    "create_conversation": fields(items=_MAYBE_OBJECTS, metadata=_MAYBE_OBJECT),
    "update_conversation": fields(metadata=_MAYBE_OBJECT),
    "add_items": fields("items", items=_OBJECTS),
    "create_batch": fields(
        *("input_file_id", "endpoint", "completion_window"),
        input_file_id=STRING,
        endpoint=one_of(*ENDPOINTS),
        completion_window=just("24h"),
        metadata=_METADATA,
        output_expires_after=_MAYBE_OBJECT,
        bardo=OBJECT,
    )
    | {"additionalProperties": False},
    "create_message_batch": fields(
        "requests",
        requests={**array(fields("custom_id", "params", custom_id=STRING, params=OBJECT)), "minItems": 1},
    ),
    "feedback": fields(
        "request_id",
        request_id=described({**STRING, "minLength": 1, "maxLength": 200}, "The `X-Bardo-Request-Id` of the answer."),
        thumbs=one_of("up", "down"),
        score={"type": "number", "minimum": 0, "maximum": 1},
        comment={**STRING, "maxLength": 2_000},
    )
    | {"additionalProperties": False},
    "purge_cache": fields(tag=_MAYBE_STRING, model=_MAYBE_STRING) | {"additionalProperties": False},
}
"""The bodies by the form of a route."""

UPLOAD: Schema = fields(
    "file",
    "purpose",
    file={"type": "string", "contentMediaType": "application/octet-stream"},
    purpose=just("batch"),
)
"""The form of an upload."""

OPTIONAL_BODIES = ("create_conversation",)
"""The endpoints whose requests may come without a body."""
