"""Functions that a model calls and bardo executes within one call of the client: the web search, and the search for tools."""

from bardo.engine.own_calls.answer import ContinueWithResults, HiddenTurns, OwnCallsAnswer, with_origin
from bardo.engine.own_calls.stage import OwnCallStage

__all__ = ["ContinueWithResults", "HiddenTurns", "OwnCallStage", "OwnCallsAnswer", "with_origin"]
