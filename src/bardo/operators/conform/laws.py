"""The laws: what each asks, and why clients need it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Status = Literal["kept", "broken", "unclear", "skipped"]


class Law(msgspec.Struct, frozen=True, kw_only=True):
    """One law. `why` says what goes wrong in clients where it does not hold."""

    id: str
    title: str
    why: str


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What was found about one law. `faults` say what is wrong, in words; `evidence` is the beginning of what the server sent.

    `cause`: why the request was refused, where it was: laws that were refused for the same cause are counted once.
    """

    law: str
    status: Status
    faults: tuple[str, ...] = ()
    evidence: str = ""
    cause: str = ""


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What was found at one server. `at` is Unix time."""

    address: str
    dialect: str
    model: str
    at: float
    findings: tuple[Finding, ...]

    @property
    def broken(self) -> Sequence[Finding]:
        """The laws that do not hold."""
        return [finding for finding in self.findings if finding.status == "broken"]


LAWS: tuple[Law, ...] = (
    Law(
        id="reply.whole", title="A whole reply has the form of its API", why="official SDKs read fields by their types"
    ),
    Law(id="usage.whole", title="Tokens are told, and add up", why="what a call costs is reckoned from them"),
    Law(
        id="reply.stream",
        title="A stream has the form of its API, and ends once",
        why="readers wait for an end that does not come, or stop at one that came too early",
    ),
    Law(id="usage.stream", title="Tokens are told in a stream too", why="most calls of agents are streams"),
    Law(id="limit.told", title="A reply cut by its limit says so", why="half an answer passes for a whole one"),
    Law(id="thinking.whole", title="Thinking comes in its own field", why="it is lost, or shown as the answer"),
    Law(id="thinking.stream", title="Thinking comes in its own field of a stream", why="as above, in most programs"),
    Law(id="thinking.counted", title="Thinking is counted", why="it is paid for, and seen nowhere"),
    Law(id="tools.whole", title="A call of a tool has id, name and arguments", why="agents cannot act on it"),
    Law(
        id="tools.stream", title="The pieces of a call make one call", why="arguments are put together by their places"
    ),
    Law(
        id="tools.loop",
        title="The result of a tool is taken with the turn as it came",
        why="a turn that its own server refuses ends every agent's loop",
    ),
    Law(
        id="typed.whole",
        title="An answer in a schema is JSON of that schema",
        why="programs read its fields, and the next step fails far from the cause",
    ),
    Law(
        id="typed.stream",
        title="An answer in a schema is JSON of that schema in a stream too",
        why="its pieces are put together and read as above",
    ),
    Law(
        id="error.json", title="A body that is no JSON is a 400 in the API's form", why="SDKs raise by status and form"
    ),
    Law(
        id="error.value", title="A wrong value is a 400 in the API's form", why="the message is the only help there is"
    ),
    Law(id="error.model", title="An unknown model is an error in the API's form", why="clients fall back by it"),
    Law(id="error.key", title="A wrong key is a 401 in the API's form", why="programs ask for another key by it"),
    Law(id="error.overflow", title="A prompt too long is told in the API's words", why="agents shorten theirs by them"),
    Law(
        id="cut.loud",
        title="A stream that broke off does not end as if it were whole",
        why="half an answer passes for one",
    ),
)
