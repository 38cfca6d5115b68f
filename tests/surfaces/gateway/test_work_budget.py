"""The layers of one long request have so much time together: then they are left out, and one that masks refuses the request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from time import thread_time
from typing import Any

import pytest

from bardo.adapters.embedding.personal_data import PersonalDataSearch
from bardo.adapters.work_budget import CURRENT, TooMuchWork, WorkBudget
from bardo.context.effects import CHECK, check_time
from bardo.context.layer import LayerFacts, LayerSteps, Passed, Pause, Receipt
from bardo.context.privacy.detect import Span, find
from bardo.context.privacy.search import FindPersonalData
from bardo.services.pipeline.parts import LayerParts
from bardo.values.request import Request
from support.any_model import Simulator
from support.gateway import house
from support.talk import CLIENTS, Answer, ask

LONG, SHORT = "some words " * 6_000, "some words"
TOML = """
[inference.pipeline]
profile = "own"
max_work_seconds = 0.05
[inference.pipeline.profiles.own]
layers = ["cache", "dedup", "privacy"]
"""


class Working:
    """A layer that takes some time of the processor in each of two steps, and notes them."""

    def __init__(self, name: str, seconds: float, steps_of: list[str], *, masks: bool = False) -> None:
        self.name = name
        self.masks = masks
        self._seconds = seconds
        self._steps_of = steps_of

    def steps(self, request: Request, facts: LayerFacts) -> LayerSteps:
        for _ in range(2):
            self._steps_of.append(self.name)
            until = thread_time() + self._seconds
            while thread_time() < until:
                pass
            yield Pause()
        return Passed(request=request, receipt=Receipt(layer=self.name, did="worked", off="x"))


def asked(
    text: str, *, client: str = "openai_chat", masks: bool = False, **seconds: float
) -> tuple[Answer, list[str], int]:
    """Return the answer to a request on which layers work for some time, the layers of their steps, and how many requests were sent."""
    steps: list[str] = []

    def builder(name: str) -> Callable[[LayerParts], Any]:
        return lambda parts: Working(name, seconds.get(name, 0.0), steps, masks=masks and name == "privacy")

    layers = {name: builder(name) for name in ("cache", "dedup", "privacy")}
    with house([Simulator("deepseek")], toml=TOML, layers=layers) as running:
        answer = ask(running.address, client, "deepseek/m", question=text, bardo={"include": ["receipt"]})
        return answer, steps, len(running.arrived("deepseek"))


ALL = ["cache", "cache", "dedup", "dedup", "privacy", "privacy"]


def test_layers_behind_one_that_used_the_time_are_left_out() -> None:
    answer, steps, sent = asked(LONG, cache=0.06)
    assert (answer.status, steps, sent) == (200, ["cache"], 1)
    lost = answer.headers["x-bardo-degraded"]
    assert all(f"pipeline.{name}" in lost for name in ("cache", "dedup", "privacy"))
    receipts = answer.json["bardo"]["receipt"]["pipeline"]["layers"]
    assert [(one["layer"], one["saw"]) for one in receipts] == [
        (name, {"left_out": True}) for name in ("cache", "dedup", "privacy")
    ]


def test_time_counts_over_all_layers_of_a_request() -> None:
    answer, steps, sent = asked(LONG, cache=0.02, dedup=0.02)
    assert (answer.status, steps, sent) == (200, ["cache", "cache", "dedup"], 1)
    assert "pipeline.cache" not in answer.headers["x-bardo-degraded"]


@pytest.mark.parametrize("client", CLIENTS)
def test_a_request_that_could_not_be_masked_in_time_is_refused_and_not_sent(client: str) -> None:
    answer, steps, sent = asked(LONG, client=client, masks=True, cache=0.06)
    assert (answer.status, steps, sent) == (413, ["cache"], 0)
    assert "max_work_seconds" in answer.text


def test_what_takes_little_time_and_what_is_short_has_all_its_layers() -> None:
    assert asked(LONG)[1] == ALL
    answer, steps, sent = asked(SHORT, cache=0.06)
    assert (answer.status, steps, sent) == (200, ALL, 1)
    assert "pipeline" not in answer.headers.get("x-bardo-degraded", "")


def test_the_search_for_personal_data_counts_and_ends_between_long_texts() -> None:
    searched: list[int] = []

    def find(text: str) -> list[Span]:
        searched.append(len(text))
        until = thread_time() + 0.02
        while thread_time() < until:
            pass
        return []

    async def search(budget: WorkBudget) -> None:
        CURRENT.set(budget)
        await PersonalDataSearch(find).perform(FindPersonalData(tuple(f"{place}" * 1_100_000 for place in range(5))))

    with pytest.raises(TooMuchWork):
        asyncio.run(search(WorkBudget(0.03)))
    assert len(searched) == 2
    asyncio.run(search(WorkBudget(5)))
    assert len(searched) == 7


@pytest.mark.parametrize("part", ["1-2 ", "1 /", "00 ", "+1 (", "a@b.co ", "::1 "])
def test_the_search_of_one_long_text_ends_within_it_once_the_time_is_used(part: str) -> None:
    text, looks = part * (400_000 // len(part)), 0

    def check() -> None:
        nonlocal looks
        looks += 1
        if looks > 3:
            raise TooMuchWork

    reset = CHECK.set(check)
    try:
        with pytest.raises(TooMuchWork):
            find(text)
    finally:
        CHECK.reset(reset)
    assert looks == 4


def test_work_that_looks_at_its_time_ends_where_none_is_left() -> None:
    budget, rounds = WorkBudget(0.001), 0

    def work() -> None:
        nonlocal rounds
        while True:
            rounds += 1
            check_time()

    with pytest.raises(TooMuchWork):
        budget.run(work)
    assert rounds > 0
    with pytest.raises(TooMuchWork):
        budget.check()
    check_time()  # Outside of it nothing is counted.


def test_one_text_that_takes_longer_than_the_budget_is_refused_where_it_is_masked() -> None:
    privacy = TOML + '[inference.pipeline.privacy]\nmode = "mask"\n'
    with house([Simulator("deepseek")], toml=privacy) as running:
        answer = ask(running.address, "openai_chat", "deepseek/m", question="00 " * 200_000)
        assert (answer.status, len(running.arrived("deepseek"))) == (413, 0)
        assert "max_work_seconds" in answer.text
        assert ask(running.address, "openai_chat", "deepseek/m", question="00").status == 200
