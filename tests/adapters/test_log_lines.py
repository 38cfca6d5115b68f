"""Lines of bardo's log go to a terminal as they are, and quote what others sent."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

import bardo
from bardo.adapters.log_filter import LOGGERS, clean_log_lines


@pytest.mark.parametrize("name", LOGGERS)
def test_no_line_of_the_log_plays_with_the_terminal(name: str, caplog: pytest.LogCaptureFixture) -> None:
    clean_log_lines()
    # A server that ran in this process before may have made its logger quieter.
    with caplog.at_level(logging.WARNING, logger=name):
        logging.getLogger(name).warning("no list from %s: %s", "lab", "\x1b[2J\x1b]0;owned\x07\x9b1m\u202ebad\r gone")
    assert caplog.messages == ["no list from lab: �[2J�]0;owned��1m�bad� gone"]


def test_a_traceback_is_cleaned_too(caplog: pytest.LogCaptureFixture) -> None:
    clean_log_lines()
    try:
        raise ValueError("\x1b[2Jgone")
    except ValueError:
        logging.getLogger("bardo.gateway").exception("failed")
    assert "\x1b" not in caplog.text
    assert "�[2Jgone" in caplog.text


def test_every_logger_of_bardo_has_the_filter() -> None:
    sources = Path(bardo.__file__).parent.rglob("*.py")
    named = {
        name
        for path in sources
        for name in re.findall(r'getLogger\("(bardo[\w.]*)"\)', path.read_text(encoding="utf-8"))
    }
    assert named - set(LOGGERS) == set()
