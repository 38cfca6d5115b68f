"""The front door: the names `bardo` offers, and how little it costs to open it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import bardo
from support.offenders import each_case
from support.patience import PATIENCE

pytestmark = pytest.mark.each_python

NAMES = [
    "AffinitySettings",
    "Alias",
    "AsyncClient",
    "AsyncEventStream",
    "AsyncMemory",
    "AsyncReplyStream",
    "BardoError",
    "BatchSettings",
    "BlockFields",
    "BrokenStream",
    "BudgetRange",
    "BudgetSettings",
    "CacheOptions",
    "CacheSettings",
    "CacheStats",
    "CachingSettings",
    "CallFinished",
    "CallProgress",
    "CallStarted",
    "CallerError",
    "CapRow",
    "Carried",
    "ClassifySettings",
    "Client",
    "ClientMisuse",
    "CompressSettings",
    "ConfigError",
    "ConstraintRule",
    "ConstraintsSettings",
    "ContentChunk",
    "ContextOverflow",
    "DedupSettings",
    "Degradation",
    "Degraded",
    "DiscordSettings",
    "DocumentBlock",
    "EmbeddingSettings",
    "Embeddings",
    "EmptyThought",
    "Episode",
    "EpisodeMatch",
    "Erased",
    "Event",
    "EventStream",
    "Explanation",
    "Extension",
    "Extraction",
    "Failed",
    "FailoverSettings",
    "Finish",
    "Forbidden",
    "FormatSettings",
    "GatewaySettings",
    "GolemSettings",
    "HeaderVariable",
    "HeadersTooLarge",
    "HealthChanged",
    "HealthSettings",
    "ImageBlock",
    "InferenceEvent",
    "InferenceProfile",
    "InferenceSettings",
    "InjectionSettings",
    "Intent",
    "InternalError",
    "InvalidRequest",
    "KeyEntry",
    "LearnedSettings",
    "LogSettings",
    "MalformedReply",
    "Memory",
    "MemorySettings",
    "MemoryStats",
    "Message",
    "MethodNotAllowed",
    "MissingKey",
    "ModelIds",
    "ModelInfo",
    "ModelRow",
    "NeedRow",
    "Opaque",
    "OpaqueState",
    "OperatorError",
    "Options",
    "Origin",
    "Overloaded",
    "OwnProfile",
    "Partial",
    "Payment",
    "PaymentRefused",
    "PaymentSettings",
    "PaymentUnsettled",
    "PipelineSettings",
    "PortableBudgets",
    "PrefilterSettings",
    "PriceRow",
    "PriceTier",
    "PrivacyPattern",
    "PrivacySettings",
    "ProfileApplied",
    "ProfileDegraded",
    "Provenance",
    "ProviderEntry",
    "ProviderError",
    "ProviderIdSettings",
    "PublishedEvent",
    "ReasoningBlock",
    "ReasoningCaptured",
    "ReasoningChain",
    "ReasoningCost",
    "ReasoningFormat",
    "ReasoningPolicy",
    "ReasoningSettings",
    "ReasoningStep",
    "ReasoningStepType",
    "ReasoningText",
    "ReasoningVisibility",
    "RefreshSettings",
    "RefusalBlock",
    "RefusalChunk",
    "RelevanceSettings",
    "ReorderSettings",
    "ReplaySettings",
    "ReplyFields",
    "ReplyStart",
    "ReplyStream",
    "RequestTimeout",
    "Resolution",
    "Response",
    "ResponseSchema",
    "ResponseSettings",
    "RoutingSettings",
    "SchemaFallback",
    "SchemaValidated",
    "SearchSettings",
    "Settings",
    "ShuttingDown",
    "StateSettings",
    "StructuredOptions",
    "StructuredOutput",
    "TelegramSettings",
    "TelemetrySettings",
    "TextBlock",
    "ThinkChunk",
    "ThinkEnd",
    "ThinkStart",
    "TimeoutSettings",
    "TokenCount",
    "TooLarge",
    "Tool",
    "ToolCallBlock",
    "ToolCallChunk",
    "ToolCallEnd",
    "ToolCallStart",
    "ToolChoice",
    "ToolInvocation",
    "ToolResultBlock",
    "ToolsSettings",
    "TypedResponse",
    "Unavailable",
    "UnknownBlock",
    "UnknownContent",
    "UnknownModel",
    "UnknownRoute",
    "Unreachable",
    "Unsupported",
    "UnsupportedMediaType",
    "UnusableAnswer",
    "UpstreamRefused",
    "UpstreamTimeout",
    "Usage",
    "UsageDetails",
    "UsageUpdate",
    "WebSearchUsed",
    "WithheldThought",
    "WorkloadRow",
    "__version__",
    "decode",
    "explain",
    "known_formats",
    "load_settings",
    "parse",
    "parse_settings",
]
HEAVY = {
    "aiohttp",
    "alembic",
    "asyncio",
    "httptools",
    "h11",
    "msgspec",
    "rich",
    "sqlalchemy",
    "typer",
    "uvicorn",
}


def test_the_names_are_these_and_sorted() -> None:
    assert NAMES == bardo.__all__ == sorted(bardo.__all__) == dir(bardo)


@each_case("name", NAMES)
def test_every_name_leads_somewhere(name: str) -> None:
    assert getattr(bardo, name) is getattr(bardo, name)
    assert name in vars(bardo), "src/bardo/__init__.py does not say where this name is from"


def test_any_other_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'bardo' has no attribute 'Clint'"):
        bardo.Clint  # noqa: B018


def loaded_by(program: str) -> set[str]:
    """Return the top-level packages a fresh interpreter has loaded after `program`."""
    told = "import json, sys; print(json.dumps(sorted({name.partition('.')[0] for name in sys.modules})))"
    result = subprocess.run(
        [sys.executable, "-c", f"{program}\n{told}"], capture_output=True, text=True, check=True, timeout=PATIENCE
    )
    assert result.stderr == ""
    return set(json.loads(result.stdout))


def test_importing_bardo_loads_next_to_nothing() -> None:
    assert not loaded_by("import bardo") & HEAVY


def test_importing_bardo_leaves_the_garbage_collector_alone() -> None:
    kept = "before = gc.get_threshold(), gc.get_freeze_count()\n"
    told = "import bardo.surfaces.gateway.main, bardo.server.serving\nassert before == (gc.get_threshold(), gc.get_freeze_count())"
    loaded_by(f"import gc\n{kept}import bardo\n{told}")


def test_the_command_that_serves_loads_no_database_toolkit_and_no_reader_of_toml_in_python() -> None:
    program = "import bardo.surfaces.cli.serve, bardo.surfaces.gateway.main, bardo.wiring; bardo.wiring.preload()"
    assert not loaded_by(program) & {"sqlalchemy", "tomllib"}


def test_reading_text_and_replies_needs_no_server_and_no_database() -> None:
    program = "import bardo; bardo.parse('<think>x</think>y'); bardo.decode(b'{}', 'deepseek')"
    assert not loaded_by(program) & (HEAVY - {"msgspec"})


def test_the_clients_name_loads_no_server_and_no_database() -> None:
    assert not loaded_by("import bardo; bardo.Client") & (HEAVY - {"msgspec", "asyncio"})


def test_a_client_without_a_log_loads_no_database() -> None:
    program = (
        "import bardo\n"
        "from bardo.adapters.config.settings import LogSettings, Settings\n"
        "bardo.Client(Settings(log=LogSettings(enabled=False))).close()"
    )
    assert not loaded_by(program) & {"alembic", "httptools", "rich", "sqlalchemy", "typer"}
