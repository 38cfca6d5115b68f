"""One request of each dialect with every field that its decoder looks at, for tests that go through all of them."""

from __future__ import annotations

from typing import Any

FULL_REQUESTS: dict[str, dict[str, Any]] = {
    "openai_chat": {
        "model": "m",
        "stream": False,
        "messages": [
            {"role": "system", "content": "s"},
            {
                "role": "user",
                "name": "n",
                "content": [
                    {"type": "text", "text": "t"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA==", "detail": "low"}},
                    {"type": "input_audio", "input_audio": {"data": "AA==", "format": "wav"}},
                    {"type": "file", "file": {"file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf"}},
                ],
            },
            {
                "role": "assistant",
                "content": "c",
                "reasoning_content": "r",
                "reasoning_details": [
                    {
                        "type": "reasoning.text",
                        "text": "t",
                        "signature": "s",
                        "index": 0,
                        "format": "anthropic-claude-v1",
                    }
                ],
                "refusal": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                        "extra_content": {
                            "google": {"thought_signature": "x"},
                            "bardo": {"opaque": {"signature": {"data": "x", "format": "y"}}},
                        },
                    },
                    {"id": "c2", "type": "custom", "custom": {"name": "g", "input": "x"}},
                ],
                "function_call": {"name": "f", "arguments": "{}"},
            },
            {"role": "tool", "tool_call_id": "c1", "content": [{"type": "text", "text": "r"}]},
            {"role": "function", "name": "f", "content": "x"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "d",
                    "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
                    "strict": True,
                },
            }
        ],
        "functions": [{"name": "f", "parameters": {}}],
        "function_call": "auto",
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "parallel_tool_calls": True,
        "max_tokens": 5,
        "max_completion_tokens": 6,
        "temperature": 1,
        "top_p": 0.5,
        "n": 1,
        "seed": 1,
        "stop": ["x"],
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logit_bias": {"1": 2},
        "logprobs": True,
        "top_logprobs": 2,
        "user": "u",
        "metadata": {"a": "b"},
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "n",
                "schema": {"type": "object", "properties": {"a": {"type": "string"}}},
                "strict": True,
            },
        },
        "stream_options": {"include_usage": True},
        "reasoning_effort": "low",
        "reasoning": {"effort": "low", "exclude": False, "enabled": True, "summary": "auto"},
        "enable_thinking": True,
        "chat_template_kwargs": {"enable_thinking": True},
        "think": True,
        "include_reasoning": True,
        "extra_body": {"google": {"thinking_config": {"thinking_budget": 1}}},
        "bardo": {
            "include": ["receipt"],
            "reasoning": "low",
            "on_impossible": "floor",
            "structured": {"mode": "none", "retries": 1},
            "allow_loss": ["x"],
        },
        "modalities": ["text"],
        "audio": {"voice": "a", "format": "wav"},
        "prediction": {"type": "content", "content": "x"},
        "service_tier": "auto",
        "store": False,
        "verbosity": "low",
        "web_search_options": {},
    },
    "openai_responses": {
        "model": "m",
        "instructions": "i",
        "input": [
            {"role": "user", "content": "x"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "t"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
                    {"type": "input_file", "file_data": "x", "filename": "f"},
                ],
            },
            {
                "type": "reasoning",
                "id": "rs",
                "summary": [{"type": "summary_text", "text": "s"}],
                "content": [{"type": "reasoning_text", "text": "r"}],
                "encrypted_content": "e",
            },
            {
                "type": "message",
                "id": "m1",
                "role": "assistant",
                "status": "completed",
                "content": [
                    {"type": "output_text", "text": "o", "annotations": [], "logprobs": []},
                    {"type": "refusal", "refusal": "x"},
                ],
            },
            {
                "type": "function_call",
                "id": "f1",
                "call_id": "c1",
                "name": "f",
                "arguments": "{}",
                "status": "completed",
            },
            {"type": "function_call_output", "call_id": "c1", "output": "x"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "g", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "x"}]},
            {"type": "item_reference", "id": "x"},
        ],
        "tools": [
            {"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": True},
            {"type": "web_search"},
            {"type": "custom", "name": "g", "format": {"type": "text"}},
        ],
        "tool_choice": {"type": "function", "name": "f"},
        "parallel_tool_calls": True,
        "max_output_tokens": 5,
        "max_tool_calls": 1,
        "temperature": 1,
        "top_p": 1,
        "top_logprobs": 1,
        "text": {
            "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": True},
            "verbosity": "low",
        },
        "reasoning": {"effort": "low", "summary": "auto"},
        "include": ["reasoning.encrypted_content"],
        "metadata": {"a": "b"},
        "store": False,
        "stream": False,
        "user": "u",
        "truncation": "auto",
        "service_tier": "auto",
        "prompt_cache_key": "x",
        "safety_identifier": "x",
        "previous_response_id": None,
        "conversation": None,
        "background": False,
        "prompt": None,
        "stream_options": {"include_obfuscation": False},
        "bardo": {"include": ["receipt"]},
    },
    "anthropic_messages": {
        "model": "m",
        "max_tokens": 5000,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "t"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}},
                    {
                        "type": "document",
                        "source": {"type": "base64", "media_type": "application/pdf", "data": "AA=="},
                        "title": "t",
                        "citations": {"enabled": True},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "t", "signature": "s"},
                    {"type": "redacted_thinking", "data": "d"},
                    {"type": "text", "text": "x", "citations": [{"type": "char_location", "cited_text": "x"}]},
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
                    {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c1",
                        "content": [{"type": "text", "text": "x"}],
                        "is_error": False,
                    }
                ],
            },
        ],
        "tools": [
            {
                "name": "f",
                "description": "d",
                "input_schema": {"type": "object"},
                "cache_control": {"type": "ephemeral"},
            },
            {"type": "web_search_20250305", "name": "web_search", "max_uses": 1},
        ],
        "tool_choice": {"type": "tool", "name": "f", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2000, "display": "summarized"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}},
        "temperature": 1,
        "top_p": 1,
        "top_k": 1,
        "stop_sequences": ["x"],
        "stream": False,
        "metadata": {"user_id": "u"},
        "service_tier": "auto",
        "context_management": {"edits": []},
        "mcp_servers": [],
        "container": None,
        "bardo": {"include": ["receipt"]},
    },
    "gemini": {
        "systemInstruction": {"role": "user", "parts": [{"text": "s"}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"text": "t"},
                    {"inlineData": {"mimeType": "image/png", "data": "AA=="}},
                    {"fileData": {"fileUri": "x", "mimeType": "image/png"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "th", "thought": True, "thoughtSignature": "c2ln"},
                    {"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}, "thoughtSignature": "c2ln"},
                    {"executableCode": {"language": "PYTHON", "code": "x"}},
                ],
            },
            {"role": "user", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {"result": "x"}}}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {
                        "name": "f",
                        "description": "d",
                        "parameters": {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}},
                        "parametersJsonSchema": {"type": "object"},
                    }
                ]
            },
            {"googleSearch": {}},
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
        "safetySettings": [{"category": "x", "threshold": "y"}],
        "generationConfig": {
            "temperature": 1,
            "topP": 1,
            "topK": 1,
            "candidateCount": 1,
            "maxOutputTokens": 100,
            "stopSequences": ["x"],
            "responseMimeType": "application/json",
            "responseSchema": {"type": "OBJECT"},
            "responseJsonSchema": {"type": "object"},
            "seed": 1,
            "presencePenalty": 0,
            "frequencyPenalty": 0,
            "responseLogprobs": True,
            "logprobs": 1,
            "thinkingConfig": {"thinkingBudget": 100, "includeThoughts": True},
            "responseModalities": ["TEXT"],
        },
        "cachedContent": None,
        "labels": {"a": "b"},
        "bardo": {"include": ["receipt"]},
    },
    "ollama": {
        "model": "m",
        "messages": [
            {"role": "user", "content": "x", "images": ["AA=="]},
            {
                "role": "assistant",
                "content": "c",
                "thinking": "t",
                "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"a": 1}, "index": 0}}],
            },
            {"role": "tool", "content": "x", "tool_name": "f", "tool_call_id": "c"},
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "d",
                    "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
                    "strict": True,
                },
            }
        ],
        "format": {"type": "object"},
        "options": {"temperature": 1, "num_predict": 5, "stop": ["x"], "top_k": 1, "top_p": 1, "seed": 1},
        "stream": False,
        "think": True,
        "keep_alive": "5m",
        "logprobs": True,
        "top_logprobs": 1,
        "bardo": {},
    },
    "cohere": {
        "model": "m",
        "messages": [
            {"role": "system", "content": "s"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "t"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
                ],
            },
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "x"}],
                "tool_plan": "p",
                "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                "citations": [],
            },
            {
                "role": "tool",
                "tool_call_id": "c1",
                "content": [{"type": "document", "document": {"data": "x", "id": "1"}}],
            },
        ],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "f",
                    "description": "d",
                    "parameters": {"type": "object", "properties": {"a": {"type": "string"}}},
                    "strict": True,
                },
            }
        ],
        "documents": ["x", {"data": {"a": "b"}, "id": "1"}],
        "tool_choice": "REQUIRED",
        "thinking": {"type": "enabled", "token_budget": 5},
        "response_format": {"type": "json_object", "json_schema": {"type": "object"}},
        "max_tokens": 5,
        "temperature": 1,
        "p": 0.5,
        "k": 1,
        "seed": 1,
        "stop_sequences": ["x"],
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "logprobs": True,
        "safety_mode": "OFF",
        "citation_options": {"mode": "FAST"},
        "stream": False,
        "bardo": {},
    },
    "bedrock_converse": {
        "messages": [
            {
                "role": "user",
                "content": [
                    {"text": "t"},
                    {"image": {"format": "png", "source": {"bytes": "AA=="}}},
                    {"document": {"format": "pdf", "name": "n", "source": {"bytes": "AA=="}}},
                    {"cachePoint": {"type": "default"}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}},
                    {"reasoningContent": {"redactedContent": "AA=="}},
                    {"text": "x"},
                    {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {
                        "toolResult": {
                            "toolUseId": "c1",
                            "content": [{"text": "x"}, {"json": {"a": 1}}],
                            "status": "success",
                        }
                    }
                ],
            },
        ],
        "system": [{"text": "s"}],
        "inferenceConfig": {"maxTokens": 5, "temperature": 1, "topP": 1, "stopSequences": ["x"]},
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": {"type": "object"}}}}],
            "toolChoice": {"tool": {"name": "f"}},
        },
        "additionalModelRequestFields": {
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "reasoning_config": {"type": "enabled"},
        },
        "additionalModelResponseFieldPaths": ["/x"],
        "requestMetadata": {"a": "b"},
        "guardrailConfig": {"guardrailIdentifier": "x"},
        "performanceConfig": {"latency": "standard"},
        "outputConfig": {
            "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"schema": "{}", "name": "n"}}}
        },
        "bardo": {},
    },
    "gemini_interactions": {
        "model": "m",
        "input": [
            {
                "type": "user_input",
                "content": [{"type": "text", "text": "t"}, {"type": "image", "data": "AA==", "mime_type": "image/png"}],
            },
            {"type": "thought", "signature": "x", "summary": [{"type": "text", "text": "s"}]},
            {"type": "model_output", "content": [{"type": "text", "text": "x"}]},
            {"type": "function_call", "id": "c", "name": "f", "arguments": {"a": 1}},
            {"type": "function_result", "call_id": "c", "name": "f", "result": "x"},
        ],
        "system_instruction": "s",
        "tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}}],
        "generation_config": {
            "temperature": 1,
            "max_output_tokens": 5,
            "thinking_level": "low",
            "thinking_summaries": "auto",
            "stop_sequences": ["x"],
            "tool_choice": "auto",
        },
        "response_format": {"type": "text", "mime_type": "application/json", "schema": {"type": "object"}},
        "response_modalities": ["text"],
        "stream": False,
        "store": False,
        "background": False,
        "previous_interaction_id": None,
        "bardo": {},
    },
}

FURTHER_REQUESTS: list[tuple[str, dict[str, Any]]] = [
    (
        "openai_chat",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "x"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": [{"type": "text", "text": "t"}], "signature": "s"},
                        {"type": "text", "text": "a"},
                        {"type": "refusal", "refusal": "r"},
                    ],
                    "thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "c2ln"}],
                },
                {"role": "user", "content": [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}]},
            ],
            "function_call": {"name": "f"},
            "functions": [{"name": "f", "parameters": {}}],
        },
    ),
    (
        "openai_chat",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "x"},
                {
                    "role": "assistant",
                    "content": None,
                    "thinking_blocks": [{"type": "thinking", "thinking": "t", "signature": "c2ln"}],
                    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "c1", "content": "x"},
            ],
            "tool_choice": {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]},
            },
            "tools": [
                {"type": "function", "function": {"name": "f", "parameters": {}}},
                {"type": "custom", "custom": {"name": "g", "format": {"type": "text"}}},
            ],
            "output_config": {"format": {"type": "json_schema", "schema": {"type": "object"}}},
        },
    ),
    (
        "openai_responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": "x"},
                {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
                {
                    "type": "function_call_output",
                    "call_id": "c1",
                    "output": [
                        {"type": "input_text", "text": "x"},
                        {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
                    ],
                },
                {
                    "type": "message",
                    "role": "assistant",
                    "content": [
                        {
                            "type": "output_text",
                            "text": "o",
                            "annotations": [
                                {
                                    "type": "url_citation",
                                    "url": "http://x",
                                    "start_index": 0,
                                    "end_index": 1,
                                    "title": "t",
                                }
                            ],
                        }
                    ],
                },
                {"role": "user", "content": "y"},
            ],
            "text": {"format": {"type": "json_object"}},
            "tools": [{"type": "function", "name": "f", "parameters": {}}],
            "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]},
            "reasoning": {"effort": "high"},
        },
    ),
    (
        "openai_responses",
        {
            "model": "m",
            "input": [
                {"role": "user", "content": "x"},
                {
                    "type": "reasoning",
                    "summary": [{"type": "summary_text", "text": "s"}, {"type": "summary_text", "text": "t"}],
                    "encrypted_content": "e",
                },
                {
                    "type": "web_search_call",
                    "id": "ws",
                    "status": "completed",
                    "action": {"type": "search", "query": "q"},
                },
                {"role": "user", "content": "y"},
            ],
            "prompt": {"id": "p", "variables": {"a": "b"}},
        },
    ),
    (
        "anthropic_messages",
        {
            "model": "m",
            "max_tokens": 9000,
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "search_result",
                            "source": "s",
                            "title": "t",
                            "content": [{"type": "text", "text": "x"}],
                            "citations": {"enabled": True},
                        },
                        {"type": "image", "source": {"type": "url", "url": "http://x/a.png"}},
                        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "x"}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "t", "signature": "c2ln"},
                        {"type": "tool_use", "id": "c1", "name": "f", "input": {}, "caller": {"type": "direct"}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "type": "tool_result",
                            "tool_use_id": "c1",
                            "content": [
                                {
                                    "type": "image",
                                    "source": {"type": "base64", "media_type": "image/png", "data": "AA=="},
                                },
                                {
                                    "type": "search_result",
                                    "source": "s",
                                    "title": "t",
                                    "content": [{"type": "text", "text": "x"}],
                                },
                            ],
                        }
                    ],
                },
            ],
            "tools": [{"name": "f", "input_schema": {"type": "object"}}],
            "thinking": {"type": "adaptive"},
            "tool_choice": {"type": "auto"},
            "output_format": {"type": "json_schema", "schema": {"type": "object"}},
        },
    ),
    (
        "gemini",
        {
            "systemInstruction": {"parts": [{"text": "s"}]},
            "contents": [
                {
                    "role": "user",
                    "parts": [
                        {"text": "t"},
                        {"inlineData": {"mimeType": "audio/wav", "data": "AA=="}, "videoMetadata": {"fps": 1}},
                        {"inlineData": {"mimeType": "application/pdf", "data": "AA=="}},
                    ],
                },
                {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {}}}]},
                {
                    "role": "user",
                    "parts": [
                        {
                            "functionResponse": {
                                "name": "f",
                                "response": {"output": "x"},
                                "parts": [{"inlineData": {"mimeType": "image/png", "data": "AA=="}}],
                            }
                        }
                    ],
                },
            ],
            "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": {"type": "object"}}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}, "retrievalConfig": {"latLng": {"latitude": 1}}},
            "generationConfig": {"thinkingConfig": {"thinkingLevel": "low"}, "speechConfig": {"voiceConfig": {"a": 1}}},
        },
    ),
    (
        "bedrock_converse",
        {
            "messages": [
                {
                    "role": "user",
                    "content": [
                        {"text": "t"},
                        {
                            "searchResult": {
                                "source": "s",
                                "title": "t",
                                "content": [{"text": "x"}],
                                "citations": {"enabled": True},
                            }
                        },
                        {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://x"}}}},
                    ],
                },
                {
                    "role": "assistant",
                    "content": [
                        {
                            "citationsContent": {
                                "content": [{"text": "x"}],
                                "citations": [{"title": "t", "location": {"web": {"url": "u"}}}],
                            }
                        },
                        {"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {
                            "toolResult": {
                                "toolUseId": "c1",
                                "content": [
                                    {"image": {"format": "png", "source": {"bytes": "AA=="}}},
                                    {"document": {"format": "pdf", "name": "n", "source": {"bytes": "AA=="}}},
                                ],
                            }
                        }
                    ],
                },
            ],
            "system": [{"text": "s"}, {"cachePoint": {"type": "default", "ttl": "1h"}}],
            "toolConfig": {
                "tools": [
                    {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}},
                    {"cachePoint": {"type": "default"}},
                ],
                "toolChoice": {"auto": {}},
            },
            "promptVariables": {"a": {"text": "b"}},
            "serviceTier": {"type": "flex"},
        },
    ),
    (
        "gemini_interactions",
        {
            "model": "m",
            "input": [
                {
                    "type": "user_input",
                    "content": [
                        {"type": "text", "text": "t"},
                        {"type": "audio", "data": "AA==", "mime_type": "audio/wav"},
                        {"type": "document", "data": "AA==", "mime_type": "application/pdf"},
                    ],
                },
                {"type": "function_call", "id": "c", "name": "f", "arguments": {}},
                {
                    "type": "function_result",
                    "call_id": "c",
                    "name": "f",
                    "result": [
                        {"type": "text", "text": "x"},
                        {"type": "image", "data": "AA==", "mime_type": "image/png"},
                    ],
                },
            ],
            "tools": [{"type": "function", "name": "f", "parameters": {}}, {"type": "google_search"}],
            "generation_config": {"tool_choice": {"allowed_tools": {"mode": "any", "tools": ["f"]}}},
        },
    ),
]
"""What one request of a dialect cannot hold together: other forms of choices and answers, and of parts."""
