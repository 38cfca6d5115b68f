"""The names of OpenTelemetry's conventions for generative AI, all in this module: they are still in development, and may change.

Source: opentelemetry.io/docs/specs/semconv/gen-ai, read 2026-11 (package opentelemetry-semantic-conventions 0.66b2).
"""

from __future__ import annotations

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
REQUEST_STREAM = "gen_ai.request.stream"
RESPONSE_MODEL = "gen_ai.response.model"
RESPONSE_ID = "gen_ai.response.id"
CONVERSATION_ID = "gen_ai.conversation.id"
CHOICES = "gen_ai.request.choice.count"
MAX_TOKENS = "gen_ai.request.max_tokens"
SEED = "gen_ai.request.seed"
STOP = "gen_ai.request.stop_sequences"
TEMPERATURE = "gen_ai.request.temperature"
TOP_K = "gen_ai.request.top_k"
TOP_P = "gen_ai.request.top_p"
FREQUENCY_PENALTY = "gen_ai.request.frequency_penalty"
PRESENCE_PENALTY = "gen_ai.request.presence_penalty"
ENCODING_FORMATS = "gen_ai.request.encoding_formats"
DIMENSIONS = "gen_ai.embeddings.dimension.count"
SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TIME_TO_FIRST_CHUNK = "gen_ai.response.time_to_first_chunk"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
REASONING_TOKENS = "gen_ai.usage.reasoning.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"
ERROR_TYPE = "error.type"
STATUS_CODE = "http.response.status_code"

# bardo's own, where the conventions have no word.
REQUEST_ID = "bardo.request_id"
COST_USD = "bardo.cost_usd"
ATTEMPTS = "bardo.attempts"
VERDICT = "bardo.reasoning.verdict"
DEGRADED = "bardo.degraded"
KEY_ID = "bardo.key_id"
SUBSYSTEM = "bardo.subsystem"
AGENT = "bardo.agent"
REPOSITORY = "bardo.repository"
CACHE = "bardo.cache"
WHY = "bardo.attempt.cause"

DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"
DURATION_BOUNDARIES = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKEN_BOUNDARIES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304)

OPERATIONS = {
    "generate": "chat",
    "complete": "text_completion",
    "embed": "embeddings",
    "count_tokens": "count_tokens",
    "compact": "compact",
}
"""The conventions' names of bardo's operations."""
