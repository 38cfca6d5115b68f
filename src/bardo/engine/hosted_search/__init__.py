"""Web search that the gateway executes, for models whose providers do not run the search tool that a client asks for."""

from bardo.engine.hosted_search.plan import SearchPlan, SearchPolicy, with_search
from bardo.engine.hosted_search.session import SearchFunction
from bardo.engine.hosted_search.values import SearchWeb

__all__ = ["SearchFunction", "SearchPlan", "SearchPolicy", "SearchWeb", "with_search"]
