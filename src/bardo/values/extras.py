"""How the optional packages of bardo are installed, as errors say it: in one place, because nothing is published yet."""

from __future__ import annotations


def how_to_install(extra: str) -> str:
    """Return the command that installs the packages of an extra of bardo."""
    return f"pip install '.[{extra}]' in a clone of bardo"
