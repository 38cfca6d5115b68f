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
    from bardo.catalog.models import BudgetRange, ModelRow
    from bardo.edge.event_bus import AsyncEventStream
    from bardo.edge.formats import known_formats
    from bardo.edge.settings import (
        CachingSettings,
        GatewaySettings,
        GolemSettings,
        HeaderVariable,
        HttpSettings,
        InferenceSettings,
        KeyEntry,
        LogSettings,
        ProviderEntry,
        ReasoningSettings,
        ReplaySettings,
        ResponseSettings,
        Settings,
        TimeoutSettings,
        load_settings,
        parse_settings,
    )
    from bardo.edge.settings_routing import LearnedSettings, RoutingSettings
    from bardo.engine.aliases import Alias
    from bardo.engine.explanation import Explanation
    from bardo.reasoning.control.amounts import PortableBudgets
    from bardo.reasoning.formats import ReasoningFormat
    from bardo.routing.workloads import WorkloadRow
    from bardo.structured import Extraction, Provenance, StructuredOutput, UnusableAnswer
    from bardo.surfaces.library.asking import Options
    from bardo.surfaces.library.blocking_client import Client
    from bardo.surfaces.library.client import AsyncClient
    from bardo.surfaces.library.decoding import decode, parse
    from bardo.surfaces.library.explaining import explain
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
    from bardo.values.errors import (
        BardoError,
        BrokenStream,
        CallerError,
        ClientMisuse,
        ConfigError,
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
        InferenceEvent,
        ProfileApplied,
        ProfileDegraded,
        PublishedEvent,
        ReasoningCaptured,
        SchemaFallback,
        SchemaValidated,
        WebSearchUsed,
    )
    from bardo.values.intent import Intent, Resolution
    from bardo.values.operations import Embeddings, ModelInfo, TokenCount
    from bardo.values.profile import InferenceProfile, ResponseSchema
    from bardo.values.reasoning import (
        ReasoningChain,
        ReasoningCost,
        ReasoningStep,
        ReasoningStepType,
        ReasoningVisibility,
    )
    from bardo.values.request import Message, ReasoningPolicy, StructuredOptions, Tool, ToolChoice
    from bardo.values.response import Response, ToolInvocation
    from bardo.values.usage import Usage

_HOMES: dict[str, str] = {
    "bardo.catalog.models": "BudgetRange ModelRow",
    "bardo.edge.event_bus": "AsyncEventStream",
    "bardo.edge.formats": "known_formats",
    "bardo.values.inference_events": (
        "CacheStats InferenceEvent ProfileApplied ProfileDegraded PublishedEvent "
        "ReasoningCaptured SchemaFallback SchemaValidated WebSearchUsed"
    ),
    "bardo.edge.settings": (
        "CachingSettings GatewaySettings GolemSettings HeaderVariable HttpSettings InferenceSettings KeyEntry LogSettings ProviderEntry "
        "ReasoningSettings ReplaySettings "
        "ResponseSettings Settings TimeoutSettings load_settings parse_settings "
    ),
    "bardo.edge.settings_routing": "LearnedSettings RoutingSettings",
    "bardo.engine.aliases": "Alias",
    "bardo.engine.explanation": "Explanation",
    "bardo.reasoning.control.amounts": "PortableBudgets",
    "bardo.reasoning.formats": "ReasoningFormat",
    "bardo.routing.workloads": "WorkloadRow",
    "bardo.structured": "Extraction Provenance StructuredOutput UnusableAnswer",
    "bardo.surfaces.library.asking": "Options",
    "bardo.surfaces.library.blocking_client": "Client",
    "bardo.surfaces.library.client": "AsyncClient",
    "bardo.surfaces.library.decoding": "decode parse",
    "bardo.surfaces.library.explaining": "explain",
    "bardo.surfaces.library.stream": "AsyncReplyStream EventStream ReplyStream",
    "bardo.surfaces.library.typed": "TypedResponse",
    "bardo.values.blocks": (
        "Carried DocumentBlock ImageBlock Opaque Origin ReasoningBlock RefusalBlock TextBlock ToolCallBlock ToolResultBlock "
        "UnknownBlock "
    ),
    "bardo.values.degradation": "Degradation",
    "bardo.values.errors": (
        "BardoError BrokenStream CallerError ClientMisuse ConfigError Forbidden HeadersTooLarge InternalError "
        "InvalidRequest MalformedReply MethodNotAllowed MissingKey OperatorError Overloaded ProviderError "
        "RequestTimeout ShuttingDown TooLarge Unavailable UnknownModel UnknownRoute Unreachable Unsupported "
        "UnsupportedMediaType UpstreamRefused UpstreamTimeout "
    ),
    "bardo.values.events": (
        "BlockFields ContentChunk Degraded EmptyThought Event Extension Failed Finish OpaqueState Partial RefusalChunk "
        "ReplyFields ReplyStart ThinkChunk ThinkEnd ThinkStart ToolCallChunk ToolCallEnd ToolCallStart UnknownContent "
        "UsageUpdate WithheldThought "
    ),
    "bardo.values.intent": "Intent Resolution",
    "bardo.values.profile": "InferenceProfile ResponseSchema",
    "bardo.values.reasoning": "ReasoningChain ReasoningCost ReasoningStep ReasoningStepType ReasoningVisibility",
    "bardo.values.request": "Message ReasoningPolicy StructuredOptions Tool ToolChoice",
    "bardo.values.operations": "Embeddings ModelInfo TokenCount",
    "bardo.values.response": "Response ToolInvocation",
    "bardo.values.usage": "Usage",
}
"""The names that each module exports here."""
_MODULES = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = [
    "Alias",
    "AsyncClient",
    "AsyncEventStream",
    "AsyncReplyStream",
    "BardoError",
    "BlockFields",
    "BrokenStream",
    "BudgetRange",
    "CacheStats",
    "CachingSettings",
    "CallerError",
    "Carried",
    "Client",
    "ClientMisuse",
    "ConfigError",
    "ContentChunk",
    "Degradation",
    "Degraded",
    "DocumentBlock",
    "Embeddings",
    "EmptyThought",
    "Event",
    "EventStream",
    "Explanation",
    "Extension",
    "Extraction",
    "Failed",
    "Finish",
    "Forbidden",
    "GatewaySettings",
    "GolemSettings",
    "HeaderVariable",
    "HeadersTooLarge",
    "HttpSettings",
    "ImageBlock",
    "InferenceEvent",
    "InferenceProfile",
    "InferenceSettings",
    "Intent",
    "InternalError",
    "InvalidRequest",
    "KeyEntry",
    "LearnedSettings",
    "LogSettings",
    "MalformedReply",
    "Message",
    "MethodNotAllowed",
    "MissingKey",
    "ModelInfo",
    "ModelRow",
    "Opaque",
    "OpaqueState",
    "OperatorError",
    "Options",
    "Origin",
    "Overloaded",
    "Partial",
    "PortableBudgets",
    "ProfileApplied",
    "ProfileDegraded",
    "Provenance",
    "ProviderEntry",
    "ProviderError",
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
    "ReasoningVisibility",
    "RefusalBlock",
    "RefusalChunk",
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
    "Settings",
    "ShuttingDown",
    "StructuredOptions",
    "StructuredOutput",
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
