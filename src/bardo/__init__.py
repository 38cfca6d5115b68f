"""bardo: say once how a model should think, and read every model's thinking in one form.

`parse` reads a model's raw text, `decode` a provider's recorded reply; `Client` and `AsyncClient` ask any configured model, and `explain`
says what they would send. Everything that these take, return and raise is exported here. Names are loaded when they are first used, so that
`import bardo` is fast. docs/reference/modules.md lists the other public modules.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bardo._version import __version__

if TYPE_CHECKING:
    from bardo.adapters.config.accounts import BudgetSettings, PaymentSettings
    from bardo.adapters.config.chat import DiscordSettings, TelegramSettings
    from bardo.adapters.config.formats import known_formats
    from bardo.adapters.config.gateway import BatchSettings
    from bardo.adapters.config.pipeline import (
        AffinitySettings,
        CacheSettings,
        ClassifySettings,
        EmbeddingSettings,
        InjectionSettings,
        OwnProfile,
        PipelineSettings,
        PrefilterSettings,
        ToolsSettings,
    )
    from bardo.adapters.config.routing import (
        CachingSettings,
        FailoverSettings,
        HealthSettings,
        LearnedSettings,
        RoutingSettings,
        SearchSettings,
    )
    from bardo.adapters.config.settings import (
        GatewaySettings,
        GolemSettings,
        HeaderVariable,
        InferenceSettings,
        KeyEntry,
        LogSettings,
        MemorySettings,
        ProviderEntry,
        ProviderIdSettings,
        ReasoningSettings,
        RefreshSettings,
        ReplaySettings,
        ResponseSettings,
        Settings,
        StateSettings,
        TelemetrySettings,
        TimeoutSettings,
        load_settings,
        parse_settings,
    )
    from bardo.catalog.layer_rows import CapRow, NeedRow
    from bardo.catalog.models import BudgetRange, ModelIds, ModelRow
    from bardo.catalog.prices import PriceRow, PriceTier
    from bardo.context.privacy.settings import PrivacyPattern, PrivacySettings
    from bardo.context.steps.settings import (
        CompressSettings,
        ConstraintRule,
        ConstraintsSettings,
        DedupSettings,
        FormatSettings,
        RelevanceSettings,
        ReorderSettings,
    )
    from bardo.planning.explanation import Explanation
    from bardo.planning.model_names import Alias
    from bardo.reasoning.control.target import PortableBudgets
    from bardo.reasoning.formats import ReasoningFormat
    from bardo.routing.workloads import WorkloadRow
    from bardo.services.facts.event_feed import AsyncEventStream
    from bardo.structured import Extraction, Provenance, StructuredOutput, UnusableAnswer
    from bardo.surfaces.library.asking import Options
    from bardo.surfaces.library.blocking_client import Client
    from bardo.surfaces.library.client import AsyncClient
    from bardo.surfaces.library.decoding import decode, parse
    from bardo.surfaces.library.explaining import explain
    from bardo.surfaces.library.memory import AsyncMemory, Memory
    from bardo.surfaces.library.stream import AsyncReplyStream, EventStream, ReplyStream
    from bardo.surfaces.library.typed import TypedResponse
    from bardo.values.blocks import (
        Carried,
        DocumentBlock,
        ImageBlock,
        Opaque,
        Origin,
        ReasoningBlock,
        RefusalBlock,
        TextBlock,
        ToolCallBlock,
        ToolResultBlock,
        UnknownBlock,
    )
    from bardo.values.degradation import Degradation
    from bardo.values.episodes import Episode, EpisodeMatch, Erased, MemoryStats
    from bardo.values.errors import (
        BardoError,
        BrokenStream,
        CallerError,
        ClientMisuse,
        ConfigError,
        ContextOverflow,
        Forbidden,
        HeadersTooLarge,
        InternalError,
        InvalidRequest,
        MalformedReply,
        MethodNotAllowed,
        MissingKey,
        OperatorError,
        Overloaded,
        ProviderError,
        RequestTimeout,
        ShuttingDown,
        TooLarge,
        Unavailable,
        UnknownModel,
        UnknownRoute,
        Unreachable,
        Unsupported,
        UnsupportedMediaType,
        UpstreamRefused,
        UpstreamTimeout,
    )
    from bardo.values.events import (
        BlockFields,
        ContentChunk,
        Degraded,
        EmptyThought,
        Event,
        Extension,
        Failed,
        Finish,
        OpaqueState,
        Partial,
        RefusalChunk,
        ReplyFields,
        ReplyStart,
        ThinkChunk,
        ThinkEnd,
        ThinkStart,
        ToolCallChunk,
        ToolCallEnd,
        ToolCallStart,
        UnknownContent,
        UsageUpdate,
        WithheldThought,
    )
    from bardo.values.inference_events import (
        CacheStats,
        CallFinished,
        CallProgress,
        CallStarted,
        HealthChanged,
        InferenceEvent,
        ProfileApplied,
        ProfileDegraded,
        PublishedEvent,
        ReasoningCaptured,
        ReasoningText,
        SchemaFallback,
        SchemaValidated,
        WebSearchUsed,
    )
    from bardo.values.operations import Embeddings, ModelInfo, TokenCount
    from bardo.values.payments import Payment, PaymentRefused, PaymentUnsettled
    from bardo.values.profile import InferenceProfile, ResponseSchema
    from bardo.values.reasoning import (
        ReasoningChain,
        ReasoningCost,
        ReasoningStep,
        ReasoningStepType,
        ReasoningVisibility,
    )
    from bardo.values.request import (
        CacheOptions,
        Intent,
        Message,
        ReasoningPolicy,
        Resolution,
        StructuredOptions,
        Tool,
        ToolChoice,
    )
    from bardo.values.response import Response, ToolInvocation
    from bardo.values.usage import Usage, UsageDetails

_HOMES: dict[str, str] = {
    "bardo.catalog.models": "BudgetRange ModelIds ModelRow",
    "bardo.catalog.layer_rows": "CapRow NeedRow",
    "bardo.catalog.prices": "PriceRow PriceTier",
    "bardo.services.facts.event_feed": "AsyncEventStream",
    "bardo.adapters.config.formats": "known_formats",
    "bardo.values.inference_events": (
        "CacheStats CallFinished CallProgress CallStarted HealthChanged InferenceEvent ProfileApplied ProfileDegraded "
        "PublishedEvent ReasoningText ReasoningCaptured SchemaFallback SchemaValidated WebSearchUsed"
    ),
    "bardo.adapters.config.settings": (
        "GatewaySettings GolemSettings HeaderVariable InferenceSettings KeyEntry "
        "LogSettings ProviderEntry ProviderIdSettings ReasoningSettings ReplaySettings ResponseSettings Settings "
        "TimeoutSettings load_settings parse_settings RefreshSettings StateSettings TelemetrySettings MemorySettings"
    ),
    "bardo.context.steps.settings": (
        "CompressSettings ConstraintRule ConstraintsSettings DedupSettings FormatSettings RelevanceSettings ReorderSettings"
    ),
    "bardo.adapters.config.pipeline": (
        "OwnProfile PipelineSettings InjectionSettings CacheSettings ClassifySettings PrefilterSettings "
        "ToolsSettings AffinitySettings EmbeddingSettings"
    ),
    "bardo.context.privacy.settings": "PrivacyPattern PrivacySettings",
    "bardo.adapters.config.routing": "CachingSettings LearnedSettings RoutingSettings SearchSettings FailoverSettings HealthSettings",
    "bardo.adapters.config.gateway": "BatchSettings",
    "bardo.adapters.config.accounts": "BudgetSettings PaymentSettings",
    "bardo.adapters.config.chat": "DiscordSettings TelegramSettings",
    "bardo.planning.model_names": "Alias",
    "bardo.planning.explanation": "Explanation",
    "bardo.reasoning.control.target": "PortableBudgets",
    "bardo.reasoning.formats": "ReasoningFormat",
    "bardo.routing.workloads": "WorkloadRow",
    "bardo.structured": "Extraction Provenance StructuredOutput UnusableAnswer",
    "bardo.surfaces.library.asking": "Options",
    "bardo.surfaces.library.blocking_client": "Client",
    "bardo.surfaces.library.client": "AsyncClient",
    "bardo.surfaces.library.decoding": "decode parse",
    "bardo.surfaces.library.explaining": "explain",
    "bardo.surfaces.library.memory": "AsyncMemory Memory",
    "bardo.surfaces.library.stream": "AsyncReplyStream EventStream ReplyStream",
    "bardo.surfaces.library.typed": "TypedResponse",
    "bardo.values.blocks": (
        "Carried DocumentBlock ImageBlock Opaque Origin ReasoningBlock RefusalBlock TextBlock ToolCallBlock ToolResultBlock "
        "UnknownBlock"
    ),
    "bardo.values.degradation": "Degradation",
    "bardo.values.episodes": "Episode EpisodeMatch Erased MemoryStats",
    "bardo.values.errors": (
        "BardoError BrokenStream CallerError ClientMisuse ConfigError ContextOverflow Forbidden HeadersTooLarge InternalError "
        "InvalidRequest MalformedReply MethodNotAllowed MissingKey OperatorError Overloaded ProviderError RequestTimeout "
        "ShuttingDown TooLarge Unavailable UnknownModel UnknownRoute Unreachable Unsupported UnsupportedMediaType "
        "UpstreamRefused UpstreamTimeout"
    ),
    "bardo.values.payments": "Payment PaymentRefused PaymentUnsettled",
    "bardo.values.events": (
        "BlockFields ContentChunk Degraded EmptyThought Event Extension Failed Finish OpaqueState Partial RefusalChunk "
        "ReplyFields ReplyStart ThinkChunk ThinkEnd ThinkStart ToolCallChunk ToolCallEnd ToolCallStart UnknownContent "
        "UsageUpdate WithheldThought"
    ),
    "bardo.values.profile": "InferenceProfile ResponseSchema",
    "bardo.values.reasoning": "ReasoningChain ReasoningCost ReasoningStep ReasoningStepType ReasoningVisibility",
    "bardo.values.request": (
        "CacheOptions Intent Message ReasoningPolicy Resolution StructuredOptions Tool ToolChoice"
    ),
    "bardo.values.operations": "Embeddings ModelInfo TokenCount",
    "bardo.values.response": "Response ToolInvocation",
    "bardo.values.usage": "Usage UsageDetails",
}
"""The names that each module exports here."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
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


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'bardo' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(module), name)
    return value


def __dir__() -> list[str]:
    return __all__
