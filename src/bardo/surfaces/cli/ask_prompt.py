"""What is asked: words of the command line, what is piped in, and a template, brought into one question."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from bardo.surfaces.cli.ask_conversations import Conversation
from bardo.surfaces.cli.ask_templates import Templates, split_words
from bardo.surfaces.cli.options import checked_prompt, given_text
from bardo.values.errors import InvalidRequest

_INPUT = "input"


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question with what is set for it; what is empty or None is left to others."""

    prompt: str
    model: str = ""
    system: str = ""
    reasoning: str | int | None = None

    def with_options(self, *, model: str, system: str, reasoning: str | None) -> Question:
        """Return the question with what the command line says, which goes before the template."""
        return msgspec.structs.replace(
            self,
            model=model or self.model,
            system=system or self.system,
            reasoning=self.reasoning if reasoning is None else reasoning,
        )

    def after(self, earlier: Conversation | None) -> Question:
        """Return the question as the next one of a conversation, whose model and system prompt hold where no others are named."""
        if earlier is None:
            return self
        return msgspec.structs.replace(self, model=self.model or earlier.model, system=self.system or earlier.system)


def question_of(words: Sequence[str], template: str, *, stdin_taken: bool) -> Question:
    """Return the question. `stdin_taken`: stdin is an attachment. Raises InvalidRequest where nothing is asked."""
    if not template:
        return Question(prompt=checked_prompt(given_text(" ".join(words), stdin_taken=stdin_taken, alone=True)))
    found = Templates().load(template)
    given, rest = split_words(words)
    text = given_text(" ".join(rest), stdin_taken=stdin_taken, alone=False)
    if _INPUT in found.names and _INPUT not in given and (text or _INPUT not in found.variables):
        if not text:
            raise InvalidRequest("the template needs a text", hint="write it behind the variables, or pipe it in")
        given, text = {**given, _INPUT: text}, ""
    filled = found.filled(given)
    prompt = f"{filled.prompt.rstrip()}\n\n{text}" if text else filled.prompt
    return Question(prompt=checked_prompt(prompt), model=filled.model, system=filled.system, reasoning=filled.reasoning)
