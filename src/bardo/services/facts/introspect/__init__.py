"""Live introspection: what servers themselves say of their models' thinking (layer L1)."""

from bardo.services.facts.introspect.adapters import Adapter, Question, builtin_adapters
from bardo.services.facts.introspect.answer_values import NotAnAnswer
from bardo.services.facts.introspect.introspector import Introspector
from bardo.services.facts.introspect.layers import LayerValue, MergedFact, MergedModel, layers_of, log_override, merge
from bardo.services.facts.introspect.live import FactsAnswer, LiveFacts
from bardo.services.facts.introspect.readers import READERS, Reader

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
