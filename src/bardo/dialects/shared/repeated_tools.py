"""Read and write the tools of a request."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any

from bardo.values.request import Request, Tool

if TYPE_CHECKING:
    from bardo.dialects.shared.losses import Losses


class RepeatedTools:
    """Reads tools."""

    def read(self, tools: list[Any], dialect: str, read: Callable[[list[Any]], tuple[Tool, ...]]) -> tuple[Tool, ...]:
        """Return what `read` gives for the tools of a dialect. Raises what `read` raises."""
        return read(tools)


def written_tools(
    request: Request, losses: Losses, write: Callable[[Sequence[Tool], Losses], list[Any]], *form: Hashable
) -> list[Any]:
    """Return the tools of a request as `write` writes them."""
    return write(request.tools, losses)


REPEATED_TOOLS = RepeatedTools()
