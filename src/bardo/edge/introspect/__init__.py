"""Live introspection: what servers themselves say of their models' thinking (layer L1)."""

from bardo.edge.introspect.adapters import Adapter, Question, builtin_adapters
from bardo.edge.introspect.introspector import Introspector
from bardo.edge.introspect.layers import Merged, MergedFact, Saying, layers_of, log_override, merge
from bardo.edge.introspect.live import Learned, LiveFacts
from bardo.edge.introspect.looking import NotAnAnswer
from bardo.edge.introspect.readers import READERS, Reader

__all__ = [
    "READERS",
    "Adapter",
    "Introspector",
    "Learned",
    "LiveFacts",
    "Merged",
    "MergedFact",
    "NotAnAnswer",
    "Question",
    "Reader",
    "Saying",
    "builtin_adapters",
    "layers_of",
    "log_override",
    "merge",
]
