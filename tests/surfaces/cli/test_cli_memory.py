"""`bardo memory`: past thinking is searched, shown and forgotten, and nothing is forgotten by mistake."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from bardo.adapters.config.settings import load_settings, log_path
from support.episodes import Kept, draft
from support.hostile_text import HOSTILE
from surfaces.cli.support import bardo, on_terminal

CONSENT = "[log]\ncontent = true\n[memory]\nenabled = true\n"


@pytest.fixture
def filled(folder: Path) -> Path:
    """A configuration, and a log with three episodes."""
    (folder / "bardo.toml").write_text(CONSENT)
    now = time.time()
    with Kept(str(log_path(load_settings(None))), now=now, folder="") as kept:
        kept.add(
            draft(
                "req_a1",
                "Why two tides a day?",
                "The moon pulls.\n\nWait, both sides bulge.",
                "Gravity.",
                started_at=now,
            ),
            draft(
                "req_a2",
                "Which river is longest?",
                "",
                "The Nile.",
                opaque=True,
                tokens=812,
                tenant="acme",
                started_at=now,
            ),
            draft("req_b", "Is 91 prime?", "7 * 13", "No.", session="s", started_at=now - 90_000),
        )
    return folder


@pytest.mark.usefixtures("filled")
def test_episodes_are_found_shown_and_counted() -> None:
    found = bardo("memory", "search", "tides", "--json").json
    assert found[0]["id"] == "ep_a1"
    assert "words" in found[0]["found_by"]
    assert "Why two tides" in bardo("memory", "search", "tides").out
    shown = bardo("memory", "show", "req_a1")
    assert "thinking: reflection" in shown.out
    assert "Gravity." in shown.out
    steps = bardo("memory", "show", "ep_a1", "--json").json["reasoning"]["steps"]
    assert [step["step_type"] for step in steps] == ["analysis", "reflection"]
    hidden = bardo("memory", "show", "ep_a2").out
    assert "not visible, 812 tokens" in hidden
    stats = bardo("memory", "stats", "--json").json
    assert (stats["episodes"], stats["not_visible"], stats["tenants"]) == (3, 1, 2)
    assert sum(stats["vectors"].values()) == 3
    assert "not visible" in bardo("memory", "stats").out


@pytest.mark.usefixtures("filled")
def test_a_search_is_narrowed() -> None:
    assert (
        bardo("memory", "search", "which river", "--tenant", "acme", "--by", "words", "--json").json[0]["id"] == "ep_a2"
    )
    assert bardo("memory", "search", "river", "--tenant", "nobody").err == "no episodes that fit\n"
    assert bardo("memory", "search", "prime", "--since", "1h", "--by", "words", "--json").json == []
    assert len(bardo("memory", "search", "prime", "--session", "s", "--by", "words", "--json").json) == 1


@pytest.mark.usefixtures("filled")
def test_nothing_is_forgotten_unless_it_is_said_and_confirmed() -> None:
    for arguments in ([], ["ep_a1", "--all"]):
        refused = bardo("memory", "forget", *arguments, "--yes")
        assert refused.code == 2
        assert "which episodes" in refused.err
    asked = bardo("memory", "forget", "ep_a1")
    assert asked.code == 2
    assert "--yes" in asked.err
    assert bardo("memory", "stats", "--json").json["episodes"] == 3


@pytest.mark.usefixtures("filled")
@pytest.mark.parametrize(
    ("arguments", "left"),
    [
        (["ep_a1"], 2),
        (["req_b"], 2),
        (["--before", "1h"], 2),
        (["--tenant", "acme"], 2),
        (["--session", "s"], 2),
        (["--all"], 0),
    ],
    ids=str,
)
def test_what_is_said_is_forgotten(arguments: list[str], left: int) -> None:
    erased = bardo("memory", "forget", *arguments, "--yes", "--json").json
    assert erased == {"episodes": 3 - left, "calls": 3 - left, "file_clean": True}
    assert bardo("memory", "stats", "--json").json["episodes"] == left


def test_a_person_is_asked_and_may_say_no(filled: Path) -> None:
    code, _, shown = on_terminal("memory", "forget", "--all")
    assert code != 0
    assert "3" in shown
    assert bardo("memory", "stats", "--json").json["episodes"] == 3


def test_without_a_memory_a_command_says_how_to_turn_it_on(folder: Path) -> None:
    missing = bardo("memory", "search", "x")
    assert missing.code == 2
    assert "[memory]" in missing.err
    with Kept(str(log_path(load_settings(None)))):
        pass
    assert bardo("memory", "stats", "--json").json["episodes"] == 0


def test_what_models_said_cannot_play_with_a_terminal(folder: Path) -> None:
    with Kept(str(log_path(load_settings(None))), now=time.time()) as kept:
        kept.add(*(draft(f"req_{name}", text, f"needle {text}", text) for name, text in HOSTILE.items()))
    shown = bardo("memory", "search", "needle", "--limit", "100", "--by", "words").out
    for name in HOSTILE:
        shown += bardo("memory", "show", f"ep_{name}").out
    # Joiners stand between letters of scripts that need them.
    assert [letter for letter in shown if not letter.isprintable() and letter not in "\n\t\u200c\u200d"] == []
