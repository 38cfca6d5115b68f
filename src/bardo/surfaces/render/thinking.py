"""The sign on stderr that a model is at work: `[thinking…]`, on a terminal only, gone before the answer begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.status import Status

WAITING = "[waiting…]"
THINKING = "[thinking…]"


class ThinkingSign:
    """One sign for one reply. Where stderr is no terminal, it never shows."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._status: Status | None = None

    def show(self, words: str) -> None:
        """Show the sign, or change its words."""
        if not self._shown:
            return
        from rich.text import Text

        if self._status is None:
            from bardo.surfaces.render.console import console

            self._status = console(stderr=True).status(Text(words, style="dim"), spinner="dots")
            self._status.start()
        else:
            self._status.update(Text(words, style="dim"))

    def hide(self) -> None:
        """Take the sign away; the line is empty again."""
        if self._status is not None:
            self._status.stop()
            self._status = None
