"""What llama-server says: its chat template's abilities, and the prompts it renders with thinking on, off and unsaid.

Where the prompts differ, the template listens. What the rendered prompt ends with says whether a reply begins inside the thinking.
Checked against real answers of a llama-server; the levels are the template's own words.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from bardo.catalog.models import Control
from bardo.reasoning.registry import builtin_formats
from bardo.services.facts.introspect.answer_values import Answers, NotAnAnswer, count, flag, inside, level, text
from bardo.services.facts.introspect.live import LiveFacts
from bardo.values.request import EFFORTS, Effort

# Templates that are switched by a sentence in the conversation: that the kwargs move nothing does not mean there is no off.
_SPOKEN_SWITCH = re.compile(r"/no_?think|detailed thinking")
_TAIL = 64


def read_llama_server(answers: Answers, model: str) -> dict[str, LiveFacts]:
    """Read `/props` and the renderings of `/apply-template`, as far as there are any."""
    props = answers["props"]
    template = text(inside(props, "chat_template"))
    if template is None and not isinstance(inside(props, "default_generation_settings"), dict):
        raise NotAnAnswer("it is not what llama-server's /props says")
    prompts = {name: prompt for name, body in answers.items() if (prompt := text(inside(body, "prompt")))}
    opened = _opens_thinking(prompts.get("unsaid"))
    switch = _switch_of(prompts)
    if switch == "thinking":
        prompts |= {"on": prompts["thinking_on"], "off": prompts["thinking_off"]}
    budgeted = switch is None and _differ(prompts, "unsaid", "budget")
    listens, levelled = switch is not None, _levelled(props, prompts)
    offered = _levels_of(template or "")
    parser = text(inside(props, "default_generation_settings", "params", "reasoning_format"))
    alias = text(inside(props, "model_alias"))
    facts = LiveFacts(
        control=_control(listens=listens, levelled=levelled, opened=opened, budgeted=budgeted),
        efforts=offered if levelled and len(offered) > 1 else None,
        default_effort=_default_of(template or "") if levelled else None,
        omit=_omit(prompts, listens=listens, opened=opened),
        switch=None if switch == "enable_thinking" and not _same(prompts, "thinking_on", "thinking_off") else switch,
        form="template-budget" if budgeted else None,
        off=True
        if listens or budgeted
        else False
        if opened and not _SPOKEN_SWITCH.search(template or "") and "off" in prompts
        else None,
        starts_inside=opened,
        starts_inside_on=_opens_thinking(prompts.get("on")),
        starts_inside_off=_opens_thinking(prompts.get("off")),
        text_format=parser,
        known_as=None if alias == model else alias,
        context=count(inside(props, "default_generation_settings", "n_ctx")),
    )
    return {model: facts}


def _switch_of(prompts: dict[str, str]) -> str | None:
    """Return the variable that turns the template's thinking on and off, None where none does."""
    if _differ(prompts, "on", "off"):
        return "enable_thinking"
    return "thinking" if _differ(prompts, "thinking_on", "thinking_off") else None


def _control(*, listens: bool, levelled: bool, opened: bool | None, budgeted: bool) -> tuple[Control, ...] | None:
    """A model whose thinking the server can see takes the server's own budget; where nothing differs, nothing is known.

    `budgeted`: the template itself reads a budget, 0 for no thinking.
    """
    control: list[Control] = ["effort"] if levelled else []
    control += ["budget"] if listens or opened or budgeted else []
    control += ["toggle"] if listens else []
    return tuple(control) or None


def _omit(prompts: dict[str, str], *, listens: bool, opened: bool | None) -> Any:
    if not listens:
        return "on" if opened else None
    return "off" if prompts.get("unsaid") == prompts["off"] else "on"


def _differ(prompts: dict[str, str], one: str, other: str) -> bool:
    return one in prompts and other in prompts and prompts[one] != prompts[other]


def _same(prompts: dict[str, str], one: str, other: str) -> bool:
    return one in prompts and other in prompts and prompts[one] == prompts[other]


def _levelled(props: Any, prompts: dict[str, str]) -> bool:
    """Whether the template listens to a level: newer servers say so, and two levels render differently."""
    said = flag(inside(props, "chat_template_caps", "supports_reasoning_effort"))
    return bool(said) or any(_differ(prompts, "low", other) for other in ("high", "unsaid"))


def _opens_thinking(prompt: str | None) -> bool | None:
    """Whether the rendered prompt ends with the opener of a block of thinking; None where there is no prompt."""
    if prompt is None:
        return None
    tail = prompt.rstrip()[-_TAIL:]
    return any(tail.endswith(opener) for opener in _openers())


@cache
def _openers() -> tuple[str, ...]:
    """Every opener of a known format that is a tag by itself."""
    rows = builtin_formats().rows.values()
    return tuple({opener.rstrip() for row in rows for opener in row.starts if len(opener.strip()) > 3})


def _levels_of(template: str) -> tuple[Effort, ...]:
    """Return the levels a template compares with, in rising order: quoted words in the statements that name the effort."""
    statements = re.findall(r"\{[%{](?:(?!\{[%{]).)*?[%}]\}", template, re.DOTALL)
    quoted = {word for one in statements if "reasoning_effort" in one for word in re.findall(r"['\"](\w+)['\"]", one)}
    return tuple(effort for effort in EFFORTS if effort in quoted)


def _default_of(template: str) -> Effort | None:
    """Return the level a template sets where none was said."""
    found = re.search(r"set\s+reasoning_effort\s*=\s*['\"](\w+)['\"]", template)
    found = found or re.search(r"reasoning_effort\s*\|\s*default\(\s*['\"](\w+)['\"]", template)
    return level(found[1]) if found else None
