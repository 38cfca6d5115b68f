"""How programs are told where the gateway is, from `catalog/data/agents.toml`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, NamedTuple

import msgspec
import tomli

_NO_PROXY = ("NO_PROXY", "no_proxy")


class AgentRow(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One program, by the name of its command; an empty name is any other.

    `arguments` go before those of the user. Those of `model_arguments` and `model_environment` are for calls with a model, and
    `context_environment` is for one whose context is known. `unset` are variables that would lead the program elsewhere. `files` are
    written into a folder that is there while the program runs, which `{folder}` names. `needs_model`: it starts with no model of its own.
    `refused` says why it cannot be led to the gateway at all.
    """

    command: str
    title: str
    environment: dict[str, str] = {}
    model_environment: dict[str, str] = {}
    context_environment: dict[str, str] = {}
    arguments: tuple[str, ...] = ()
    model_arguments: tuple[str, ...] = ()
    unset: tuple[str, ...] = ()
    files: dict[str, str] = {}
    needs_model: bool = False
    refused: str = ""

    def told(self, *, address: str, key: str, model: str, folder: str = "", context: str = "") -> AgentTold:
        """Return what the program is told of the gateway; `folder` is where its files are, `context` how many tokens the model takes."""
        filled = partial(_filled, address=address, key=key, model=model, folder=folder)
        variables = {**self.environment, **(self.model_environment if model else {})}
        variables |= {
            name: text.replace("{context}", context) for name, text in self.context_environment.items() if context
        }
        first = (*self.arguments, *(self.model_arguments if model else ()))
        return AgentTold(
            [filled(sentence) for sentence in first],
            {name: filled(value) for name, value in variables.items()},
            {name: filled(text) for name, text in self.files.items()},
        )

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        *,
        address: str,
        key: str,
        model: str,
        folder: str = "",
        context: str = "",
    ) -> AgentStart:
        """Return what the program is started with. `environment` is that of this process, which stays as it is."""
        told = self.told(address=address, key=key, model=model, folder=folder, context=context)
        own = {name: value for name, value in environment.items() if name not in self.unset} | told.environment
        for name in _NO_PROXY:
            # The gateway is on this machine, which a proxy does not reach.
            own[name] = ",".join(filter(None, (own.get(name, ""), "127.0.0.1,localhost")))
        return AgentStart([*told.arguments, *arguments], own)


class AgentTold(NamedTuple):
    """The arguments, variables and files by which a program finds the gateway."""

    arguments: list[str]
    environment: dict[str, str]
    files: dict[str, str]


class Picker(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which ids of models an agent shows that it found in a list: those that begin so. `prefix` makes one of any other."""

    begins: tuple[str, ...]
    prefix: str


class AgentStart(NamedTuple):
    """The arguments and the environment of a program."""

    arguments: list[str]
    environment: dict[str, str]


def _filled(text: str, *, address: str, key: str, model: str, folder: str) -> str:
    filled = text.replace("{address}", address).replace("{key}", key).replace("{model}", model)
    return filled.replace("{folder}", folder)


@cache
def agent_rows() -> dict[str, AgentRow]:
    """Return the rows that come with bardo, by command."""
    return {row.command: row for row in msgspec.convert(_read()["agent"], list[AgentRow])}


@cache
def picker() -> Picker:
    """Return what an agent shows of a list of models, where it does not show all."""
    return msgspec.convert(_read()["picker"], Picker)


def _read() -> dict[str, Any]:
    return tomli.loads(files("bardo.catalog").joinpath("data/agents.toml").read_text(encoding="utf-8"))
