"""One try at one target: what is sent, and how the reply is treated."""

from __future__ import annotations

import msgspec

from bardo.catalog.replay import Binding
from bardo.planning.hosted_search import SearchPlan
from bardo.planning.kept_budget import BudgetPlan
from bardo.planning.knowledge import Lesson
from bardo.planning.prompt_caching import CacheHints
from bardo.planning.route import RouteRecord, Target
from bardo.planning.text_formats import PLAIN, TextFormats
from bardo.planning.tool_search import ToolSearchPlan
from bardo.planning.tools import ToolForm
from bardo.planning.typed_answer import AnswerPlan
from bardo.reasoning.control import ControlPlan
from bardo.reasoning.replay import History
from bardo.values.blocks import Origin
from bardo.values.degradation import Degradation
from bardo.values.request import Request
from bardo.values.wire import WireRequest


class EndpointChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The dialect of the endpoint that was taken where a provider has several, and why that one."""

    dialect: str
    why: str


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """One try at one target.

    `request` is the request with the history that the provider gets, `wire` what is sent. `formats` is how the reply's text is read, `off`
    whether no thinking was asked for, `control` how the model was told to think. `forward`: the reply may go to the client as it comes.
    `withhold_usage`: bardo asked for usage the client did not ask for, so the frame that holds nothing else stays here. `origin` is the
    stamp of what the provider makes, `ask` what it is asked by to leave out thinking that does not hold. `answer` is how an answer in a
    schema is asked for. `written` is what `wire` was written from, or None if it is the client's own body. `endpoint` says why this
    endpoint was taken, or None if the provider has one only, and `route` how the target was found, or None if the request named a model.
    `search` is how calls of the gateway's own web search run, and `tool_search` how those of its search for tools, or None if the model is
    not offered it; `caching` what the prompt cache got.
    `kept_budget` is the budget of thinking that the gateway keeps; `wire` asks for a stream then. `tool_names` are the client's names of
    the tools whose names the target does not take, by those that it got, and `tool_forms` how it gets the arguments of those whose schemas
    it does not take. `teaches` is what a refusal before it said, which holds for later calls once this attempt is answered, and `left_out`
    the earlier state that was left out because of one, or the calls whose missing thinking it was about. `history` are the keys of the
    client's conversation, which those of the reply begin with, or None if they were not found.
    """

    target: Target
    wire: WireRequest
    request: Request | None = None
    formats: TextFormats = PLAIN
    off: bool = False
    control: ControlPlan | None = None
    forward: bool = False
    withhold_usage: bool = False
    origin: Origin | None = None
    ask: Binding | None = None
    answer: AnswerPlan | None = None
    written: Request | None = None
    endpoint: EndpointChoice | None = None
    route: RouteRecord | None = None
    search: SearchPlan | None = None
    tool_search: ToolSearchPlan | None = None
    caching: CacheHints | None = None
    kept_budget: BudgetPlan | None = None
    tool_names: dict[str, str] = {}
    tool_forms: dict[str, ToolForm] = {}
    teaches: tuple[Lesson, ...] = ()
    left_out: frozenset[str] = frozenset()
    history: History | None = None
    degraded: tuple[Degradation, ...] = ()

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the HTTP request, without those that prove who pays."""
        return self.target.provider.headers(self.wire)

    @property
    def url(self) -> str:
        """The provider's base URL and the dialect's path, joined."""
        return self.target.provider.url(self.wire.path)
