"""The fault matrix: every fault, at providers of every dialect, whole and streamed, with one provider and with two.

In every cell the client gets a whole answer or an error in its dialect, no text is cut off silently or comes twice, and everything that
reached a provider is in the log. Where a second provider is there and the client has seen nothing, it answers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product

import pytest

from bardo.adapters.config.routing import FailoverSettings
from bardo.adapters.config.settings import ProviderEntry
from bardo.adapters.net.client import Deadlines
from bardo.adapters.stores.log import LogRow
from bardo.replies.reply_reader import row_reader
from bardo.routing.circuit import AttemptOutcome
from bardo.routing.health import MemoryHealth
from bardo.services.facts.failover import Failover
from bardo.services.facts.health import HealthKeeper
from bardo.surfaces.library.decoding import provider_row
from bardo.values.response import Response
from support.any_model import Simulator
from support.gateway import House, house, model_of
from support.patience import PATIENCE
from support.talk import CLIENTS, Answer, ask
from surfaces.gateway.refusals import broken, refusal

# One provider of each dialect, and two of Chat Completions that word their errors differently.
UPSTREAMS = (
    *("anthropic", "openai_responses", "deepseek", "openrouter", "gemini"),
    *("gemini_interactions", "ollama_native", "cohere", "bedrock", "watsonx"),
)
SECOND = "groq"
READERS = {
    "openai_chat": "openai-chat",
    "openai_responses": "openai",
    "anthropic_messages": "anthropic",
    "gemini": "gemini",
}
REFUSED = "refused"
AT_THE_START = (
    *("disconnect", "reset", "content-type", "lying", "status=429", "status=429,retry-after=2", "status=401"),
    *("status=402", "status=404", "status=500", "status=503,retry-after=60", "status=529", "error-body=500"),
    *("error-body=429", "stall=0", "cut=0", "early-end=0", "malformed=0", "error-event=0", "keep-alive=0"),
    REFUSED,
)
# Behind the head of a reply, which most dialects have, and behind some of its text.
LATER = tuple(
    f"{kind}={after}" for after in (1, 9) for kind in ("stall", "cut", "early-end", "malformed", "error-event")
)
SILENT = 2.0


class Forgetful(MemoryHealth):
    """Health that nothing is noted of, so that each cell begins at the first provider."""

    def note(self, provider: str, model: str, outcome: AttemptOutcome, now: float) -> None:
        """Forget."""


@dataclass(frozen=True)
class Cell:
    """One call: by which client, with which fault, and whether a second provider is there."""

    place: int
    fault: str
    stream: bool
    alone: bool

    @property
    def client(self) -> str:
        return CLIENTS[(self.place + self.place // len(CLIENTS)) % len(CLIENTS)]

    @property
    def is_endless(self) -> bool:
        """Whether it is a whole reply of which blanks come for ever: only the deadline of the call ends it."""
        return self.fault == "keep-alive=0" and not self.stream

    @property
    def alias(self) -> str:
        return f"cell-{self.place}"


CELLS = tuple(
    Cell(place, *one) for place, one in enumerate(product((*AT_THE_START, *LATER), (False, True), (True, False)))
)


def aliases(upstream: str) -> str:
    """Return bardo.toml's aliases: each cell has a name of its own at both providers."""
    lines = ["[aliases]"]
    for cell in CELLS:
        first = f"{model_of(upstream)}+fault:{cell.fault}" if cell.fault != REFUSED else f"gone/{cell.alias}"
        models = [first] if cell.alone else [first, f"{SECOND}/{cell.alias}"]
        lines.append(f"{cell.alias} = {json.dumps(models)}")
    return "\n".join(lines)


@dataclass
class Matrix:
    """What became of every cell at one upstream, and what a good answer says."""

    running: House
    upstream: str
    text: str
    answers: dict[Cell, Answer]

    def problems(self) -> Iterator[str]:
        for cell, answer in self.answers.items():
            try:
                self.check(cell, answer)
            except (AssertionError, LookupError, ValueError) as problem:
                yield f"{cell}: {problem!r}"

    def check(self, cell: Cell, answer: Answer) -> None:
        row = self.running.log.of_model(cell.alias)
        text = self.check_answer(cell, answer, row)
        self.check_row(cell, row)
        if not cell.alone and not text and not cell.is_endless:
            assert row.outcome == "ok", f"the second provider answers: {answer.status} {answer.body!r}"
        if row.provider == SECOND:
            self.check_receipt(cell, answer, row)

    def check_answer(self, cell: Cell, answer: Answer, row: LogRow) -> str:
        """Return the text of a reply that broke; empty for one that did not begin, or is whole."""
        if answer.status != 200:
            assert refusal(cell.client, answer)
            assert (row.outcome, row.status) == ("error", answer.status)
            return ""
        reply = read(cell, answer)
        if reply.error is None:
            assert reply.text == self.text
            assert row.outcome == "ok"
            return ""
        assert cell.stream
        assert broken(cell.client, answer)
        assert row.outcome == "broken"
        said = reply.text or reply.reasoning.content or ""
        assert said, "a stream that broke before its first token goes elsewhere, or is an error by its status"
        assert self.text.startswith(reply.text)
        return said

    def check_row(self, cell: Cell, row: LogRow) -> None:
        """Hold the attempts that are in the log against what reached the providers."""
        faulty = [one for one in self.running.arrived(self.upstream) if f"fault:{cell.fault}" in named(one)]
        second = [one for one in self.running.arrived(SECOND) if named(one) == cell.alias]
        records = row.attempt_records or ()
        at_second = sum(one.provider == SECOND for one in records) if records else int(row.provider == SECOND)
        assert len(second) == at_second
        assert faulty or cell.fault == REFUSED
        assert len(records) in (0, row.attempts)

    def check_receipt(self, cell: Cell, answer: Answer, row: LogRow) -> None:
        assert answer.headers["x-bardo-provider"] == SECOND
        assert "provider" in answer.headers["x-bardo-degraded"].split(", ")
        first, *between, last = row.attempt_records
        assert (first.cause, last.cause, last.error) == ("first", "failover", "")
        assert {one.cause for one in between} <= {"retry"}
        assert all(one.error for one in (first, *between)), "each attempt that failed says how"
        assert last.why


def named(incoming: object) -> str:
    """Return the model that a request names, in its body or its path."""
    body, path = incoming.body, incoming.path  # type: ignore[attr-defined]
    model = body.get("model") or body.get("model_id") if isinstance(body, dict) else None
    return str(model) if model else str(path).replace("%3A", ":").replace("%2B", "+").replace("%3D", "=")


def read(cell: Cell, answer: Answer) -> Response:
    reader = row_reader(provider_row(READERS[cell.client]), streamed=cell.stream)
    reader.feed(answer.body)
    reader.finish()
    return reader.fold.response()


def run(running: House, upstream: str) -> Matrix:
    good = ask(running.address, "openai_chat", f"{SECOND}/good")
    text = read(Cell(0, "", False, True), good).text
    assert text
    with ThreadPoolExecutor(len(CELLS)) as together:
        answers = together.map(lambda one: ask(running.address, one.client, one.alias, stream=one.stream), CELLS)
        return Matrix(running, upstream, text, dict(zip(CELLS, answers, strict=True)))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("upstream", UPSTREAMS)
def test_whatever_a_provider_does_the_client_gets_a_whole_answer_or_an_error(upstream: str) -> None:
    with Simulator("vllm").running() as server:
        gone = ProviderEntry(id="gone", preset="vllm", base_url=server.base_url, models=("m",))
    deadlines = Deadlines(connect=PATIENCE, first_byte=PATIENCE, idle=SILENT)
    settings = FailoverSettings(backoff_seconds=0.01, first_token_seconds=2 * SILENT, deadline_seconds=4 * SILENT)
    simulators = [Simulator(upstream), Simulator(SECOND)]
    with house(
        simulators,
        before=[gone],
        deadlines=deadlines,
        failover=Failover(settings),
        health=HealthKeeper(Forgetful()),
        toml=aliases(upstream),
    ) as running:
        problems = list(run(running, upstream).problems())
        assert not problems, "\n".join([f"{len(problems)} of {len(CELLS)} cells:", *problems])
