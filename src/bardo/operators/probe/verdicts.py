"""Decide what each setting does, by distributions and nothing else.

The rules, in order, for a setting with several values:

1. Every value is refused: `refuses`. Too few answers: `inconclusive`.
2. The least value and the most differ, upwards: `honours`.
3. No positive control differs, so that no difference could have been seen: `inconclusive`. No answer thought as much as the least budget,
   so that no budget was a limit: `inconclusive`.
4. Its values are alike. They differ from nothing sent, or off in the same field works: `flattens`. Else `ignores`.

For off: no thinking in any answer, while other cells think: `honours`; less thinking, but some: `flattens`; as much as without it:
`ignores`. For on: it thinks where it does not unasked: `honours`; it does not think: `ignores`.

A positive control is any pair of cells that differs: the easy question and the hard one, the ends of a setting, a setting and nothing sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from bardo.operators.probe.cells import BASELINE, Cell, Setting, settings_of
from bardo.operators.probe.samples import Comparison, Measure, Samples, Trial

Verdict = Literal["honours", "flattens", "ignores", "refuses", "inconclusive"]


class RefusedValue(msgspec.Struct, frozen=True, kw_only=True):
    """A value that the provider refused, with its words."""

    value: str
    status: int
    message: str


class SettingVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one setting, in one form, and its reasons.

    `medians` are tokens by value, `alike` neighbours that were not told apart, `test` the comparison that decided.
    """

    setting: str
    form: str
    verdict: Verdict
    why: str
    medians: dict[str, float] = {}
    refused: tuple[RefusedValue, ...] = ()
    alike: tuple[tuple[str, str], ...] = ()
    test: Comparison | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts. `control` is the pair that showed that differences can be seen, or None if there was none."""

    measure: Measure
    verdicts: tuple[SettingVerdict, ...]
    control: Comparison | None = None
    thinks_unasked: bool | None = None


def decide(cells: Sequence[Cell], trials: Sequence[Trial]) -> Decision:
    """Return what the trials show of every setting."""
    samples, settings = Samples(cells, trials), settings_of(cells)
    control = samples.control(settings)
    offs = [cell for setting in settings if setting.name == "off" for cell in setting.cells if samples.stops(cell)]
    return Decision(
        measure=samples.measure,
        control=control,
        thinks_unasked=samples.thinks_unasked,
        verdicts=tuple(_verdict(setting, samples, offs, control) for setting in settings),
    )


def _verdict(setting: Setting, samples: Samples, offs: Sequence[Cell], control: Comparison | None) -> SettingVerdict:
    trials = [(cell, samples.refused[cell.id]) for cell in setting.cells if cell.id in samples.refused]
    refused = tuple([RefusedValue(value=cell.value, status=item.status, message=item.message) for cell, item in trials])
    cells = samples.answered(setting.cells)
    if refused and len(refused) == len(setting.cells):
        verdict = _setting_verdict(setting, "refuses", f"status {refused[0].status}: {refused[0].message}")
    elif not cells:
        verdict = _setting_verdict(setting, "inconclusive", "too few answers")
    elif setting.name == "off":
        verdict = _of_off(setting, cells[0], samples, control)
    elif setting.name == "on":
        verdict = _of_on(setting, cells[0], samples, control)
    else:
        verdict = _of_scale(setting, cells, samples, offs, control)
    return msgspec.structs.replace(verdict, medians=samples.medians(setting.cells), refused=refused)


def _of_scale(
    setting: Setting, cells: Sequence[Cell], samples: Samples, offs: Sequence[Cell], control: Comparison | None
) -> SettingVerdict:
    pooled, ends = samples.pooled(cells), samples.against(cells[0].id, cells[-1].id)
    if len(cells) == 1 or ends is None:
        moved = pooled is not None and pooled.moved
        why = f"its only value is {'unlike' if moved else 'like'} nothing sent"
        return _setting_verdict(setting, "honours" if moved else "inconclusive", why, test=pooled)
    if ends.moved:
        if not ends.rises:
            return _setting_verdict(setting, "inconclusive", "the most value thinks less than the least", test=ends)
        why = f"{cells[-1].value} thinks {_times(ends)} {cells[0].value}"
        pairs = pairwise(cells)
        compared = [(cell.value, other.value, samples.against(cell.id, other.id)) for cell, other in pairs]
        alike = tuple((value, other) for value, other, test in compared if test is not None and not test.moved)
        return _setting_verdict(setting, "honours", why, test=ends, alike=alike)
    unseen = _unseen(ends, control) or _unreached(setting, cells, samples)
    if unseen is not None:
        return _setting_verdict(setting, "inconclusive", unseen, test=ends)
    if pooled is not None and pooled.moved:
        return _setting_verdict(setting, "flattens", "its values are alike, and unlike nothing sent", test=ends)
    if any(off.fields.keys() & cells[0].fields.keys() for off in offs):
        return _setting_verdict(
            setting, "flattens", "its values are alike, though off in the same field works", test=ends
        )
    return _setting_verdict(setting, "ignores", "its values are alike, and like nothing sent", test=ends)


def _of_off(setting: Setting, off: Cell, samples: Samples, control: Comparison | None) -> SettingVerdict:
    test = samples.against(BASELINE, off.id)
    if samples.stops(off):
        return _setting_verdict(setting, "honours", "no thinking in any answer, while others show some", test=test)
    if test is not None and test.moved and not test.rises:
        if samples.measure == "output":
            return _setting_verdict(setting, "honours", "less output; thinking itself is not counted here", test=test)
        return _setting_verdict(setting, "flattens", "it thinks less, and still thinks", test=test)
    if not samples.thinks_at_all and samples.measure != "output":
        return _setting_verdict(setting, "inconclusive", "nothing made it think", test=test)
    unseen = _unseen(test, control)
    return _setting_verdict(setting, "inconclusive" if unseen else "ignores", unseen or "like nothing sent", test=test)


def _of_on(setting: Setting, on: Cell, samples: Samples, control: Comparison | None) -> SettingVerdict:
    test = samples.against(BASELINE, on.id)
    if test is not None and test.moved and test.rises:
        return _setting_verdict(setting, "honours", "it thinks more than when nothing is sent", test=test)
    if samples.thinks_unasked is not False:
        return _setting_verdict(setting, "inconclusive", "it may think when nothing is sent, too", test=test)
    unseen = _unseen(test, control)
    return _setting_verdict(setting, "inconclusive" if unseen else "ignores", unseen or "like nothing sent", test=test)


def _unseen(test: Comparison | None, control: Comparison | None) -> str | None:
    """Say why a difference could not have been seen, or None if it could."""
    if test is None or not test.powered:
        return "too few answers to show a difference"
    return "no positive control showed a difference" if control is None else None


def _unreached(setting: Setting, cells: Sequence[Cell], samples: Samples) -> str | None:
    """Say that no budget could have shown anything: a limit that is never reached limits nothing. None if one was reached."""
    if setting.name != "budget" or samples.measure == "output" or samples.reached(int(cells[0].value), cells):
        return None
    return f"no answer thought as much as the least budget, {cells[0].value} tokens, so none of them was a limit"


def _times(ends: Comparison) -> str:
    return "and does not at" if ends.ratio is None else f"{ends.ratio:.1f} times as much as"


def _setting_verdict(
    setting: Setting,
    verdict: Verdict,
    why: str,
    *,
    test: Comparison | None = None,
    alike: tuple[tuple[str, str], ...] = (),
) -> SettingVerdict:
    return SettingVerdict(setting=setting.name, form=setting.form, verdict=verdict, why=why, test=test, alike=alike)
