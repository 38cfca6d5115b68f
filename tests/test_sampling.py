"""What runs by day is drawn by a seed, and the shards of a night hold everything once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recordings import OWN, Recording, sampled
from support import sampling
from support.patience import PATIENCE

NAMES = [f"case {number}" for number in range(50)]
LAWS = """
import pytest

@pytest.mark.sampled(3)
@pytest.mark.parametrize("number", range(40))
def test_a_law(number):
    pass

@pytest.mark.sampled(1, of="client")
@pytest.mark.parametrize("number", range(10))
@pytest.mark.parametrize("client", ["chat", "messages"])
def test_each_client(client, number):
    pass

@pytest.mark.nightly
def test_at_night():
    pass

def test_always():
    pass
"""


@pytest.fixture
def by_day(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "NIGHTLY", False)


@pytest.mark.usefixtures("by_day")
def test_the_same_seed_draws_the_same_and_another_seed_something_else(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    for seed in ("a", "a", "b"):
        monkeypatch.setattr(sampling, "seed", lambda seed=seed: seed)
        drawn.append(sampling.sample(NAMES, 10, law="law"))
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(drawn[0]) == 10
    assert drawn[0] == sorted(drawn[0], key=NAMES.index)


@pytest.mark.usefixtures("by_day")
def test_a_sample_does_not_depend_on_what_else_is_drawn() -> None:
    assert sampling.sample(NAMES, 10, law="one") != sampling.sample(NAMES, 10, law="another")
    assert sampling.sample(NAMES[::-1], 10, law="one") == sampling.sample(NAMES, 10, law="one")[::-1]


@pytest.mark.usefixtures("by_day")
def test_what_always_counts_is_taken_besides() -> None:
    drawn = sampling.sample(NAMES, 5, law="law", always=lambda name: name.endswith("9"))
    assert {name for name in NAMES if name.endswith("9")} <= set(drawn)


def test_at_night_nothing_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "NIGHTLY", True)
    assert sampling.sample(NAMES, 1, law="law") == NAMES


def test_each_item_is_in_one_shard() -> None:
    for name in NAMES:
        assert [sampling.in_shard(name, f"{number}/4") for number in (1, 2, 3, 4)].count(True) == 1


@pytest.mark.parametrize("shard", ["", "0/4", "5/4", "1", "a/b", "1/0"])
def test_what_is_no_shard_is_refused(shard: str) -> None:
    with pytest.raises(ValueError, match="write 1/4"):
        sampling.in_shard("name", shard)


@pytest.mark.usefixtures("by_day")
def test_a_sample_of_recordings_has_some_of_each_folder_and_our_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordings.changed_dialects", frozenset)
    recordings = [
        Recording(f"{folder}/{number}", "json", False, (), {}, root)
        for folder in ("groq", "openai-chat")
        for root, count in ((OWN, 2), (tmp_path, 20))
        for number in range(count)
    ]
    drawn = sampled(recordings, 0.1, law="law")
    assert {one.file.partition("/")[0] for one in drawn} == {"groq", "openai-chat"}
    assert {str(one) for one in recordings if one.root is OWN} <= {str(one) for one in drawn}
    assert len(drawn) < 9


@pytest.mark.usefixtures("by_day")
def test_the_recordings_of_a_dialect_that_changed_are_all_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("recordings.changed_dialects", lambda: frozenset({"anthropic_messages"}))
    messages = [Recording(f"anthropic-messages/{n}", "json", False, (), {}, tmp_path) for n in range(20)]
    chat = [Recording(f"groq/{n}", "json", False, (), {}, tmp_path) for n in range(20)]
    drawn = sampled([*messages, *chat], 0.1, law="law")
    assert [one for one in drawn if one in messages] == messages
    assert len(drawn) == 22


@pytest.mark.parametrize(("night", "passed"), [("", 3 + 2 + 1), ("1", 40 + 20 + 1 + 1)])
def test_marks_leave_out_by_day_what_runs_at_night(tmp_path: Path, night: str, passed: int) -> None:
    assert f"{passed} passed" in run_suite(tmp_path, BARDO_NIGHTLY=night)


def test_the_shards_of_a_night_come_to_all_of_it(tmp_path: Path) -> None:
    ended = [run_suite(tmp_path, BARDO_NIGHTLY="1", SHARD=f"{number}/3") for number in (1, 2, 3)]
    assert sum(int(text.rpartition(" passed")[0].split()[-1]) for text in ended) == 62


def run_suite(folder: Path, **variables: str) -> str:
    """Run a suite with the hooks of this one, and return what it printed."""
    (folder / "conftest.py").write_text(
        (Path(__file__).with_name("conftest.py")).read_text(encoding="utf-8"), encoding="utf-8"
    )
    (folder / "test_laws.py").write_text(LAWS, encoding="utf-8")
    tests = Path(__file__).parent
    (folder / "pytest.ini").write_text(f"[pytest]\npythonpath = {tests} {tests.parent / 'tools'}\n", encoding="utf-8")
    environment = {
        name: value for name, value in os.environ.items() if name not in ("BARDO_NIGHTLY", "SHARD")
    } | variables
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", str(folder)]
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout
