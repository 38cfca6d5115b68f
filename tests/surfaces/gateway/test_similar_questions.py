"""Questions that are similar to earlier ones: compared in shadow mode, answered by kept replies only where that has proved right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.any_model import Simulator
from support.gateway import House, house
from support.patience import PATIENCE
from support.talk import Answer, request

MODEL = "deepseek/m"
PROFILE = '[inference.pipeline]\nprofile = "own"\n[inference.pipeline.profiles.own]\nlayers = ["cache"]\n'
# Each asks for the same as all others.
ALIKE = [
    "How do I delete a branch in git?",
    "How can I remove a branch in git?",
    "What are the steps to delete a git branch?",
    "What is the way to remove a git branch?",
    "How do I erase a branch in git?",
    "Please tell me how to delete a branch in git",
    "How to remove a git branch?",
    "What is the procedure to erase a branch in git?",
]
BUDGET = 0.5
"""Four comparisons without an error are enough for it."""


@contextmanager
def caching(*, semantic: str = "serve", **settings: Any) -> Iterator[House]:
    given = {"semantic": f'"{semantic}"', "max_false_hit": BUDGET, "recheck_share": 0.0, **settings}
    lines = "".join(f"{name} = {value}\n" for name, value in given.items())
    with house([Simulator("deepseek")], toml=f"{PROFILE}[inference.pipeline.cache]\n{lines}") as running:
        yield running


def asked(running: House, text: str, **fields: Any) -> Answer:
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": text}],
        "bardo": {"include": ["receipt"]},
        **fields,
    }
    return request(running.address, "POST", "/v1/chat/completions", body)


def saw(answer: Answer) -> dict[str, Any]:
    (receipt,) = answer.json["bardo"]["receipt"]["pipeline"]["layers"]
    found: dict[str, Any] = receipt["saw"]
    return found


def test_in_shadow_mode_every_question_is_answered_by_the_provider() -> None:
    with caching(semantic="shadow") as running:
        answers = [asked(running, text) for text in ALIKE]
        assert [answer.headers["x-bardo-cache"] for answer in answers] == ["miss"] * len(ALIKE)
        assert len(running.arrived("deepseek")) == len(ALIKE)
        assert [saw(answer)["similar"] for answer in answers] == ["nothing", *["shadowed"] * (len(ALIKE) - 1)]
        assert max(saw(answer).get("compared", 0) for answer in answers) >= 4


def test_a_similar_question_is_answered_once_comparisons_have_shown_that_it_is_right() -> None:
    with caching() as running:
        answers = [asked(running, text) for text in ALIKE]
        words = [answer.headers["x-bardo-cache"].partition(";")[0] for answer in answers]
        assert words[:5] == ["miss"] * 5
        assert "similar" in words
        assert len(running.arrived("deepseek")) == words.count("miss")
        last = answers[words.index("similar")]
        assert last.json["choices"] == answers[0].json["choices"]
        assert saw(last)["similar"] == "served"
        assert saw(last)["bound"] <= BUDGET
        row = running.log.row(last.headers["x-bardo-request-id"])
        assert (row.outcome, row.cache, row.attempts) == ("ok", "similar", 0)


def test_what_differs_is_asked_however_similar_it_is() -> None:
    with caching() as running:
        for text in ALIKE:
            asked(running, text)
        before = len(running.arrived("deepseek"))
        other = [
            "How do I delete a tag in git?",
            "How do I create a branch in git?",
            "How do I delete 2 branches in git?",
        ]
        assert [asked(running, text).headers["x-bardo-cache"] for text in other] == ["miss"] * 3
        assert asked(running, ALIKE[0], temperature=0.3).headers["x-bardo-cache"] == "miss"
        assert len(running.arrived("deepseek")) == before + 4


def test_a_share_of_similar_questions_is_asked_again_and_compared() -> None:
    with caching(recheck_share=1.0) as running:
        answers = [asked(running, text) for text in ALIKE]
        assert [answer.headers["x-bardo-cache"] for answer in answers] == ["miss"] * len(ALIKE)
        assert "rechecked" in [saw(answer)["similar"] for answer in answers]


def test_off_looks_for_nothing() -> None:
    with caching(semantic="off") as running:
        answers = [asked(running, text) for text in ALIKE[:3]]
        assert [answer.headers["x-bardo-cache"] for answer in answers] == ["miss"] * 3
        assert all("similar" not in saw(answer) for answer in answers)


def test_programs_that_share_a_store_find_each_other_s_questions(tmp_path: Path) -> None:
    store = f'"{tmp_path / "replies.db"}"'
    with caching(semantic="shadow", store=store, timeout_seconds=PATIENCE) as one:
        asked(one, ALIKE[0])
    with caching(semantic="shadow", store=store, timeout_seconds=PATIENCE) as other:
        found = saw(asked(other, ALIKE[1]))
        assert found["similar"] == "shadowed"


def test_a_model_that_cannot_be_loaded_costs_no_call(tmp_path: Path) -> None:
    for name in ("model.onnx", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"{}")
    toml = PROFILE.replace('profile = "own"\n', f'profile = "own"\nembedding = "{tmp_path}"\n', 1)
    with house([Simulator("deepseek")], toml=toml) as running:
        answer = asked(running, ALIKE[0])
        assert (answer.status, answer.headers["x-bardo-cache"]) == (200, "miss")
        assert "similar" not in saw(answer)
        assert asked(running, ALIKE[0]).headers["x-bardo-cache"].startswith("hit")


def test_a_similar_question_streams_the_kept_reply() -> None:
    with caching(max_false_hit=0.9) as running:
        answers = [asked(running, text) for text in ALIKE[:4]]
        streamed = asked(running, "How can I delete a git branch?", stream=True)
        assert [answer.headers["x-bardo-cache"] for answer in answers][:2] == ["miss", "miss"]
        assert streamed.headers["x-bardo-cache"].startswith("similar; age=")
        assert streamed.headers["content-type"].startswith("text/event-stream")
        pieces = [json.loads(line[6:]) for line in streamed.text.splitlines() if line.startswith("data: {")]
        text = "".join(choice["delta"].get("content") or "" for piece in pieces for choice in piece["choices"])
        assert text == answers[0].json["choices"][0]["message"]["content"]
