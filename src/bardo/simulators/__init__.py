"""Servers that speak as the real providers do, on one's own machine: for programs' tests and for demonstrations.

    simulator = Simulator("anthropic", script=Script((Turn(reasoning="27 * 43 …", text="1161"),)))
    with simulator.running() as server:
        ...  # point a client at server.base_url, then look at server.requests

They share no code with bardo's dialects, so that each can find the other's mistakes.
"""

from bardo.simulators.conversation import Conversation, Tool
from bardo.simulators.faults import KINDS, Fault, parse_fault
from bardo.simulators.incoming import Incoming
from bardo.simulators.many import running_many, serve_many
from bardo.simulators.presets import PRESETS, presets
from bardo.simulators.provider import Provider
from bardo.simulators.script import Script
from bardo.simulators.simulator import Running, Simulator
from bardo.simulators.turns import ToolCall, Turn, Usage

__all__ = [
    "KINDS",
    "PRESETS",
    "Conversation",
    "Fault",
    "Incoming",
    "Provider",
    "Running",
    "Script",
    "Simulator",
    "Tool",
    "ToolCall",
    "Turn",
    "Usage",
    "parse_fault",
    "presets",
    "running_many",
    "serve_many",
]
