"""Functions that a model calls and bardo executes within one call of the client: the web search, and the search for tools."""

from bardo.engine.own_calls.answer import ContinueWithResults, HiddenTurns, OwnCallsAnswer
from bardo.engine.own_calls.stage import OwnCallStage
from bardo.engine.own_calls.turns import with_origin

__all__ = ["ContinueWithResults", "HiddenTurns", "OwnCallStage", "OwnCallsAnswer", "with_origin"]
