"""Templates of `bardo ask`: named prompts with variables, as TOML files in the user's configuration folder.

prompt = "Review this {{language}} code for {{focus}}."
system = "You are a careful reviewer."
model = "opus"
reasoning = "low"

[variables]
focus = "mistakes"          # a default; a variable without one has to be given
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path

import msgspec

from bardo.values.errors import ConfigError, InvalidRequest

_NAME = re.compile(r"[\w][\w.-]{0,63}")
_VARIABLE = re.compile(r"\{\{[ ]{0,3}(\w{1,64})[ ]{0,3}\}\}")
_GIVEN = re.compile(r"(\w{1,64})=(.*)", re.DOTALL)
_ENDING = ".toml"


class Template(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One template. `variables` are defaults; what else is set goes before the defaults of the command."""

    prompt: str
    system: str = ""
    model: str = ""
    reasoning: str | int | None = None
    about: str = ""
    variables: dict[str, str] = {}

    @property
    def names(self) -> list[str]:
        """The variables of the prompt and of the system prompt, in order."""
        return list(dict.fromkeys(_VARIABLE.findall(f"{self.prompt}\n{self.system}")))

    def filled(self, given: Mapping[str, str]) -> Template:
        """Return the template with its variables filled in. Raises InvalidRequest for one that is missing or unknown."""
        unknown = [name for name in given if name not in self.names]
        if unknown:
            near = get_close_matches(unknown[0], self.names, n=1)
            hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(self.names) or 'none'}"
            raise InvalidRequest(f"the template has no variable {unknown[0]!r}", hint=hint)
        values = {**self.variables, **given}
        missing = [name for name in self.names if name not in values]
        if missing:
            hint = f"add {' '.join(f'{name}=…' for name in missing)}"
            raise InvalidRequest(f"the template needs {', '.join(missing)}", hint=hint)
        prompt, system = (_VARIABLE.sub(lambda at: values[at[1]], text) for text in (self.prompt, self.system))
        return msgspec.structs.replace(self, prompt=prompt, system=system)


def split_words(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return which of some words give a variable (`name=value`), and the others: the prompt."""
    given: dict[str, str] = {}
    for place, word in enumerate(words):
        found = _GIVEN.fullmatch(word)
        if found is None:
            return given, list(words[place:])
        given[found[1]] = found[2]
    return given, []


def config_folder(environment: Mapping[str, str] | None = None) -> Path:
    """Return the folder of the user's own configuration of bardo."""
    environment = os.environ if environment is None else environment
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "bardo"


class Templates:
    """The templates in a folder, by the names of their files."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or config_folder() / "templates"

    def names(self) -> list[str]:
        """Return the names of all templates in order."""
        try:
            found = [entry.name for entry in os.scandir(self.folder)]
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise ConfigError(f"cannot read {self.folder}: {problem.strerror or problem}") from problem
        names = [name.removesuffix(_ENDING) for name in found if name.endswith(_ENDING)]
        return sorted(name for name in names if _NAME.fullmatch(name))

    def load(self, name: str) -> Template:
        """Return a template. Raises InvalidRequest where there is none, ConfigError where its file is wrong."""
        names = self.names()
        if name not in names:
            near = get_close_matches(name, names, n=1)
            hint = (
                f"did you mean {near[0]!r}?"
                if near
                else f"write {self.folder / 'NAME.toml'}; `bardo prompts` lists them"
            )
            raise InvalidRequest(f"there is no template {name!r}", hint=hint)
        file = self.folder / f"{name}{_ENDING}"
        try:
            return msgspec.toml.decode(file.read_bytes(), type=Template)
        except OSError as problem:
            raise ConfigError(f"cannot read {file}: {problem.strerror or problem}") from problem
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            hint = 'a template has prompt = "…", and may have system, model, reasoning, about and [variables]'
            raise ConfigError(f"{file}: {problem}", hint=hint) from problem
