"""Live introspection: what servers themselves say of their models' thinking (layer L1)."""

from bardo.edge.introspect.adapters import Adapter, Question, builtin_adapters
from bardo.edge.introspect.answer_values import NotAnAnswer
from bardo.edge.introspect.introspector import Introspector
from bardo.edge.introspect.layers import LayerValue, MergedFact, MergedModel, layers_of, log_override, merge
from bardo.edge.introspect.live import FactsAnswer, LiveFacts
from bardo.edge.introspect.readers import READERS, Reader

__all__ = [
    "READERS",
    "Adapter",
    "FactsAnswer",
    "Introspector",
    "LayerValue",
    "LiveFacts",
    "MergedFact",
    "MergedModel",
    "NotAnAnswer",
    "Question",
    "Reader",
    "builtin_adapters",
    "layers_of",
    "log_override",
    "merge",
]
