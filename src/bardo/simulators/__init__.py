"""Local servers that imitate the real providers: for the tests of programs and for demonstrations.

    with simulate("anthropic", turns=[Turn(reasoning="27 * 43 …", text="1161")]) as provider:
        ...  # point a client at provider.base_url, then look at provider.requests

`provider_fixture` gives the same to pytest in one line, and `Simulator` serves in an event loop of one's own.

They share no code with bardo's dialects, so that each can find the other's mistakes.
"""

from bardo.simulators.exchange import Incoming
from bardo.simulators.faults import KINDS, Fault, parse_fault
from bardo.simulators.gates import Gate
from bardo.simulators.presets import PRESETS, presets
from bardo.simulators.prompt_cache import PrefixCache
from bardo.simulators.provider import Provider
from bardo.simulators.script import Script
from bardo.simulators.simulated import (
    SeenRequest,
    SimulatedProvider,
    provider_fixture,
    running_many,
    serve_many,
    simulate,
)
from bardo.simulators.simulator import Running, Simulator
from bardo.simulators.thinking_behaviour import THINKING_BEHAVIOURS, ThinkingBehaviour
from bardo.simulators.turns import Conversation, Tool, ToolCall, Turn, Usage
from bardo.simulators.x402 import SELLER_BEHAVIOURS, PaidSimulator, PaymentTerms, SimulatedNetwork

__all__ = [
    "KINDS",
    "PRESETS",
    "SELLER_BEHAVIOURS",
    "THINKING_BEHAVIOURS",
    "Conversation",
    "Fault",
    "Gate",
    "Incoming",
    "PaidSimulator",
    "PaymentTerms",
    "PrefixCache",
    "Provider",
    "Running",
    "Script",
    "SeenRequest",
    "SimulatedNetwork",
    "SimulatedProvider",
    "Simulator",
    "ThinkingBehaviour",
    "Tool",
    "ToolCall",
    "Turn",
    "Usage",
    "parse_fault",
    "presets",
    "provider_fixture",
    "running_many",
    "serve_many",
    "simulate",
]
