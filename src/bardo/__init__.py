"""bardo: say once how a model should think, and read every model's thinking in one form.

`parse` reads a model's raw text, `decode` a provider's recorded reply; `Client` and `AsyncClient` ask any configured model, and `explain`
says what they would send. Everything else is found where ARCHITECTURE says. Names are loaded when they are first used, so `import bardo`
stays light.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bardo._version import __version__

if TYPE_CHECKING:
    from bardo.engine.explanation import Explanation
    from bardo.structured import UnusableAnswer
    from bardo.surfaces.library.client import AsyncClient, Client
    from bardo.surfaces.library.decoding import decode, parse
    from bardo.surfaces.library.explaining import explain
    from bardo.surfaces.library.typed import TypedResponse
    from bardo.values.blocks import ReasoningBlock
    from bardo.values.degradation import Degradation
    from bardo.values.errors import BardoError, CallerError, OperatorError, ProviderError
    from bardo.values.reasoning import ReasoningChain, ReasoningCost, ReasoningStep, ReasoningVisibility
    from bardo.values.request import Message, ReasoningPolicy, StructuredOptions, Tool
    from bardo.values.response import Response, ToolInvocation
    from bardo.values.usage import Usage

_HOMES: dict[str, str] = {
    "AsyncClient": "bardo.surfaces.library.client",
    "BardoError": "bardo.values.errors",
    "CallerError": "bardo.values.errors",
    "Client": "bardo.surfaces.library.client",
    "Degradation": "bardo.values.degradation",
    "Explanation": "bardo.engine.explanation",
    "Message": "bardo.values.request",
    "OperatorError": "bardo.values.errors",
    "ProviderError": "bardo.values.errors",
    "ReasoningBlock": "bardo.values.blocks",
    "ReasoningChain": "bardo.values.reasoning",
    "ReasoningCost": "bardo.values.reasoning",
    "ReasoningPolicy": "bardo.values.request",
    "ReasoningStep": "bardo.values.reasoning",
    "ReasoningVisibility": "bardo.values.reasoning",
    "Response": "bardo.values.response",
    "StructuredOptions": "bardo.values.request",
    "Tool": "bardo.values.request",
    "ToolInvocation": "bardo.values.response",
    "TypedResponse": "bardo.surfaces.library.typed",
    "UnusableAnswer": "bardo.structured",
    "Usage": "bardo.values.usage",
    "decode": "bardo.surfaces.library.decoding",
    "explain": "bardo.surfaces.library.explaining",
    "parse": "bardo.surfaces.library.decoding",
}

__all__ = [
    "AsyncClient",
    "BardoError",
    "CallerError",
    "Client",
    "Degradation",
    "Explanation",
    "Message",
    "OperatorError",
    "ProviderError",
    "ReasoningBlock",
    "ReasoningChain",
    "ReasoningCost",
    "ReasoningPolicy",
    "ReasoningStep",
    "ReasoningVisibility",
    "Response",
    "StructuredOptions",
    "Tool",
    "ToolInvocation",
    "TypedResponse",
    "UnusableAnswer",
    "Usage",
    "__version__",
    "decode",
    "explain",
    "parse",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'bardo' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return __all__
