"""The sign on stderr that a model is at work: what it does, for how long, and about how many tokens it has thought."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from bardo.surfaces.render.wording import count, seconds
from bardo.values.usage import TokenEstimate

if TYPE_CHECKING:
    from rich.live import Live
    from rich.spinner import Spinner

WAITING = "[waiting…]"
THINKING = "[thinking…]"
_PER_SECOND = 8


class ThinkingSign:
    """One sign for one reply. Where stderr is no terminal, it never shows."""

    def __init__(self, *, shown: bool | None = None) -> None:
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._words = WAITING
        self._since = time.monotonic()
        self._live: Live | None = None
        self._spinner: Spinner | None = None
        self.estimate = TokenEstimate()
        self.tokens: int | None = None
        """The provider's own count, where it has told one."""

    def show(self, words: str) -> None:
        """Show the sign with `words`, or change them; its seconds run on."""
        self._words = words
        if not self._shown or self._live is not None:
            return
        from rich.live import Live
        from rich.spinner import Spinner

        from bardo.surfaces.render.console import console

        self._spinner = Spinner("dots")
        self._live = Live(
            console=console(stderr=True),
            get_renderable=self._line,
            transient=True,
            refresh_per_second=_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        self._live.start(refresh=True)

    def hide(self) -> None:
        """Remove the sign and clear its line."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @property
    def spent(self) -> str:
        """How long the model has been at work and about how many tokens it has thought, in words."""
        words = seconds(time.monotonic() - self._since)
        tokens = count(self.tokens) if self.tokens else count(self.estimate.tokens, estimated=True)
        return f"{words}, {tokens} tokens" if self.tokens or self.estimate.tokens else words

    def _line(self) -> Spinner:
        from rich.text import Text

        assert self._spinner is not None
        whole = int(time.monotonic() - self._since)
        tokens = f", {count(self.estimate.tokens, estimated=True)} tokens" if self.estimate.tokens else ""
        self._spinner.update(text=Text(f"{self._words} {whole} s{tokens}", style="dim", no_wrap=True))
        return self._spinner
