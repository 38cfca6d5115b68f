"""The requests of a probe: one cell for each value of each setting, beside nothing at all and an easy question.

Pure. A cell's fields are the wire form's own, whatever the catalog says of the model: the probe finds out whether that is right.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Literal

import msgspec

from bardo.catalog.forms import WireForm
from bardo.catalog.fragments import fill
from bardo.reasoning.control.target import ResolvedFacts, ladder
from bardo.values.errors import InvalidRequest

SettingName = Literal["off", "on", "effort", "budget"]
BASELINE, EASY = "nothing sent", "easy question"
BUDGETS = (1024, 4096, 16_384)
ANSWER_ROOM = 8192
"""Tokens of the output limit beside the largest budget."""

HARD_QUESTION = (
    "Find every integer n with 1 <= n <= 500 such that n^2 + 19n + 92 is a perfect square, and every integer k with 1 <= k <= 300 such "
    "that k divides 2^k + 2. Let S be the sum of all those n and T the sum of all those k. In how many ways is S + T a sum of two "
    "distinct primes? Work it out carefully and check each step a second time, since slips are common here. Give only the three results, "
    "one on each line, and nothing else."
)
"""Worth thinking about, and answered in a few words: what varies is the thinking."""
EASY_QUESTION = "What is 2+2? Give only the number."


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to send. `setting` None: nothing is turned. `fields` go into the body, `system` into the system prompt."""

    id: str
    setting: SettingName | None = None
    form: str = ""
    value: str = ""
    fields: dict[str, Any] = {}
    system: str = ""
    question: str = HARD_QUESTION


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """The cells of one setting in one form, from the least thinking to the most."""

    name: SettingName
    form: str
    cells: tuple[Cell, ...]


def plan_cells(facts: ResolvedFacts, forms: Sequence[WireForm] = ()) -> tuple[Cell, ...]:
    """Return the matrix: the two that turn nothing, then every setting of the forms, by default of the one that is in use.

    Raises InvalidRequest where no form has any setting.
    """
    cells = [Cell(id=EASY, question=EASY_QUESTION), Cell(id=BASELINE)]
    for form in forms or (facts.form,):
        cells += [*_off(form, facts), *_on(form, facts), *_efforts(form, facts), *_budgets(form, facts)]
    if len(cells) == 2:
        place = f"{facts.target.provider} ({facts.target.dialect})"
        raise InvalidRequest(f"there is no setting to probe at {place}", hint="name a wire form with --form")
    return tuple(cells)


def settings_of(cells: Sequence[Cell]) -> tuple[Setting, ...]:
    """Return the cells by setting, in order."""
    grouped: dict[tuple[SettingName, str], list[Cell]] = {}
    for cell in cells:
        if cell.setting is not None:
            grouped.setdefault((cell.setting, cell.form), []).append(cell)
    return tuple(Setting(name=name, form=form, cells=tuple(cells)) for (name, form), cells in grouped.items())


def output_limit(facts: ResolvedFacts, cells: Sequence[Cell]) -> int:
    """Return the output limit, the same for all requests: another one for each cell would itself move the tokens."""
    budgets = [int(cell.value) for cell in cells if cell.setting == "budget"]
    wanted = max([*budgets, BUDGETS[-1]]) + ANSWER_ROOM
    most = facts.facts.output_limit
    return wanted if most is None else min(wanted, most)


def in_turn(
    cells: Sequence[Cell], repeats: int, seed: int, done: Collection[tuple[str, int]] = ()
) -> Iterator[tuple[Cell, int]]:
    """Yield the cells still to be sent: round by round, each holding every cell once in an order of its own.

    So what changes with the hour (load, routing, a new version) falls on all cells alike. The same seed gives the same order.
    """
    for turn in range(repeats):
        shuffled = list(cells)
        random.Random(f"{seed}/{turn}").shuffle(shuffled)
        yield from ((cell, turn) for cell in shuffled if (cell.id, turn) not in done)


def _off(form: WireForm, facts: ResolvedFacts) -> list[Cell]:
    by_level = form.off_level is not None and "none" in (facts.facts.efforts or ())
    fields = fill((form.off_level if by_level else form.off) or {}, switches=(facts.switch,))
    return [_cell("off", form, "off", fields, form.system_off)] if fields or form.system_off else []


def _on(form: WireForm, facts: ResolvedFacts) -> list[Cell]:
    fields = fill(form.on or {}, switches=(facts.switch,))
    return [_cell("on", form, "on", fields, form.system_on)] if fields or form.system_on else []


def _efforts(form: WireForm, facts: ResolvedFacts) -> list[Cell]:
    if form.effort is None:
        return []
    levels = ladder(facts.facts.efforts or ()) or form.levels or ("low", "medium", "high")
    return [_cell("effort", form, level, fill(form.effort, effort=level, switches=(facts.switch,))) for level in levels]


def _budgets(form: WireForm, facts: ResolvedFacts) -> list[Cell]:
    if form.budget is None:
        return []
    span = facts.budget
    points = sorted({min(max(tokens, span.min), span.max or tokens) for tokens in BUDGETS})
    fragments = {tokens: fill(form.budget, budget=tokens, switches=(facts.switch,)) for tokens in points}
    return [_cell("budget", form, str(tokens), fields) for tokens, fields in fragments.items()]


def _cell(setting: SettingName, form: WireForm, value: str, fields: dict[str, Any], system: str = "") -> Cell:
    shown = setting if value == setting else f"{setting} {value}"
    return Cell(id=f"{form.name}: {shown}", setting=setting, form=form.name, value=value, fields=fields, system=system)
