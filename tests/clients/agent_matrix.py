"""What coding agents are put through beside their tool loop, over providers of four dialects, and what an agent cannot be put through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from clients.agents import AGENTS, Agent

MODES = {
    "parallel": "two calls in one turn, and both results in the next",
    "cut": "the connection breaks inside a call: no half of it is run, and the agent asks again (opencode shows the error)",
    "resume": "a second run goes on with the first one's conversation, its calls, results and thinking",
    "interrupted": "Ctrl-C while a reply streams: the log says `cancelled`, and the next run is answered",
    "compacted": "the agent has its conversation summed up, and goes on from the summary to the end",
    "picture": "the provider gets a picture in its own form",
    "401": "the provider refuses the gateway's key: the agent shows its words",
    "429": "the provider is busy and says when to ask again: the agent does, and is answered",
    "overloaded": "the same with a provider that is overloaded (529, elsewhere 503)",
}
"""The modes, as the page on clients explains them."""
PICTURE = "picture.png"


@dataclass(frozen=True)
class Ways:
    """An agent, and the arguments that put it into a mode; they go before those of its question, behind its own command.

    `opens_picture` is the tool by which its model opens a picture, `names_picture` how its question names one, where `picture` are no
    arguments for one. `stops_when_cut`: it shows the error, and does not ask again. `left_out` says of modes why they are not run.
    """

    agent: Agent
    resume: tuple[str, ...]
    always: tuple[str, ...] = ()
    picture: tuple[str, ...] = ()
    opens_picture: str = ""
    names_picture: str = ""
    stops_when_cut: bool = False
    left_out: Mapping[str, str] = field(default_factory=dict)

    def arguments(self, question: str, *further: str) -> tuple[str, ...]:
        """Return its arguments for a question, with `further` ones of a mode."""
        own = self.agent.arguments
        place = next((index + 1 for index, one in enumerate(own) if one in ("exec", "run")), 0)
        return (*own[:place], *self.always, *further, *own[place:], question)


WAYS = {
    ways.agent.name: ways
    for ways in (
        Ways(AGENTS["claude"], ("--continue",), opens_picture="Read"),
        Ways(AGENTS["codex"], ("resume", "--last"), picture=("--image", PICTURE)),
        Ways(AGENTS["gemini"], ("--resume", "latest"), names_picture=f" @{PICTURE}"),
        # A title of its own, since it asks the model for one beside the first question.
        Ways(
            AGENTS["opencode"],
            ("--continue",),
            always=("--title", "note"),
            picture=("--file", PICTURE),
            stops_when_cut=True,
        ),
    )
}


def table() -> str:
    """Return the table of the page: a row for each mode, which says of each agent whether it is run."""
    rows = [f"| mode | {' | '.join(WAYS)} | what has to be true |", "|---" * (2 + len(WAYS)) + "|"]
    for mode, meaning in MODES.items():
        cells = ["–" if mode in ways.left_out else "yes" for ways in WAYS.values()]
        rows.append(f"| {mode} | {' | '.join(cells)} | {meaning} |")
    return "\n".join(rows)


def notes() -> str:
    """Return the list of the page: which agent is not put into a mode, and why."""
    return "\n".join(
        f"- {name}: `{mode}` ({why})." for name, ways in WAYS.items() for mode, why in ways.left_out.items()
    )


if __name__ == "__main__":
    print(table(), notes(), sep="\n\n")
