"""Decide what each knob does, by distributions and nothing else.

The rules, in order, for a knob with several settings:

1. Every setting is refused: `refuses`. Too few answers: `inconclusive`.
2. The least setting and the most differ, upwards: `honours`.
3. No positive control differs, so that no difference could have been seen: `inconclusive`. No answer thought as much as the least budget,
   so that no budget was a limit: `inconclusive`.
4. Its settings are alike. They differ from nothing sent, or off in the same field works: `flattens`. Else `ignores`.

For off: no thinking in any answer, while other cells think: `honours`; less thinking, but some: `flattens`; as much as without it:
`ignores`. For on: it thinks where it does not unasked: `honours`; it does not think: `ignores`.

A positive control is any pair of cells that differs: the easy question and the hard one, the ends of a knob, a knob and nothing sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from bardo.edge.probe.cells import BASELINE, Cell, Knob, knobs_of
from bardo.edge.probe.samples import Samples
from bardo.edge.probe.statistics import Comparison
from bardo.edge.probe.trials import Measure, Trial

Verdict = Literal["honours", "flattens", "ignores", "refuses", "inconclusive"]


class Refused(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider said of a setting that it does not take."""

    setting: str
    status: int
    message: str


class KnobVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What one knob does, in one form, and why that is thought.

    `medians` are tokens by setting, `alike` neighbours that were not told apart, `test` the comparison that decided.
    """

    knob: str
    form: str
    verdict: Verdict
    why: str
    medians: dict[str, float] = {}
    refused: tuple[Refused, ...] = ()
    alike: tuple[tuple[str, str], ...] = ()
    test: Comparison | None = None


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """All verdicts. `control` is the pair that showed that differences can be seen, None where there was none."""

    measure: Measure
    verdicts: tuple[KnobVerdict, ...]
    control: Comparison | None = None
    thinks_unasked: bool | None = None


def decide(cells: Sequence[Cell], trials: Sequence[Trial]) -> Decision:
    """Return what the trials show of every knob."""
    samples, knobs = Samples(cells, trials), knobs_of(cells)
    control = samples.control(knobs)
    offs = [cell for knob in knobs if knob.name == "off" for cell in knob.cells if samples.stops(cell)]
    return Decision(
        measure=samples.measure,
        control=control,
        thinks_unasked=samples.thinks_unasked,
        verdicts=tuple(_verdict(knob, samples, offs, control) for knob in knobs),
    )


def _verdict(knob: Knob, samples: Samples, offs: Sequence[Cell], control: Comparison | None) -> KnobVerdict:
    refused = tuple(_refusals(knob, samples))
    found = samples.answered(knob.cells)
    if refused and len(refused) == len(knob.cells):
        said = _said(knob, "refuses", f"status {refused[0].status}: {refused[0].message}")
    elif not found:
        said = _said(knob, "inconclusive", "too few answers")
    elif knob.name == "off":
        said = _of_off(knob, found[0], samples, control)
    elif knob.name == "on":
        said = _of_on(knob, found[0], samples, control)
    else:
        said = _of_scale(knob, found, samples, offs, control)
    return msgspec.structs.replace(said, medians=samples.medians(knob.cells), refused=refused)


def _refusals(knob: Knob, samples: Samples) -> list[Refused]:
    said = [(cell, samples.refused[cell.id]) for cell in knob.cells if cell.id in samples.refused]
    return [Refused(setting=cell.setting, status=trial.status, message=trial.message) for cell, trial in said]


def _of_scale(
    knob: Knob, found: Sequence[Cell], samples: Samples, offs: Sequence[Cell], control: Comparison | None
) -> KnobVerdict:
    pooled, ends = samples.pooled(found), samples.against(found[0].id, found[-1].id)
    if len(found) == 1 or ends is None:
        moved = pooled is not None and pooled.moved
        why = f"its only setting is {'unlike' if moved else 'like'} nothing sent"
        return _said(knob, "honours" if moved else "inconclusive", why, test=pooled)
    if ends.moved:
        if not ends.rises:
            return _said(knob, "inconclusive", "the most setting thinks less than the least", test=ends)
        why = f"{found[-1].setting} thinks {_times(ends)} {found[0].setting}"
        return _said(knob, "honours", why, test=ends, alike=_alike(found, samples))
    unseen = _unseen(ends, control) or _unreached(knob, found, samples)
    if unseen is not None:
        return _said(knob, "inconclusive", unseen, test=ends)
    if pooled is not None and pooled.moved:
        return _said(knob, "flattens", "its settings are alike, and unlike nothing sent", test=ends)
    if any(off.fields.keys() & found[0].fields.keys() for off in offs):
        return _said(knob, "flattens", "its settings are alike, though off in the same field works", test=ends)
    return _said(knob, "ignores", "its settings are alike, and like nothing sent", test=ends)


def _of_off(knob: Knob, off: Cell, samples: Samples, control: Comparison | None) -> KnobVerdict:
    test = samples.against(BASELINE, off.id)
    if samples.stops(off):
        return _said(knob, "honours", "no thinking in any answer, while others show some", test=test)
    if test is not None and test.moved and not test.rises:
        if samples.measure == "output":
            return _said(knob, "honours", "less output; thinking itself is not counted here", test=test)
        return _said(knob, "flattens", "it thinks less, and still thinks", test=test)
    if not samples.thinks_at_all and samples.measure != "output":
        return _said(knob, "inconclusive", "nothing made it think", test=test)
    unseen = _unseen(test, control)
    return _said(knob, "inconclusive" if unseen else "ignores", unseen or "like nothing sent", test=test)


def _of_on(knob: Knob, on: Cell, samples: Samples, control: Comparison | None) -> KnobVerdict:
    test = samples.against(BASELINE, on.id)
    if test is not None and test.moved and test.rises:
        return _said(knob, "honours", "it thinks more than when nothing is sent", test=test)
    if samples.thinks_unasked is not False:
        return _said(knob, "inconclusive", "it may think when nothing is sent, too", test=test)
    unseen = _unseen(test, control)
    return _said(knob, "inconclusive" if unseen else "ignores", unseen or "like nothing sent", test=test)


def _unseen(test: Comparison | None, control: Comparison | None) -> str | None:
    """Say why a difference could not have been seen, None where it could."""
    if test is None or not test.powered:
        return "too few answers to show a difference"
    return "no positive control showed a difference" if control is None else None


def _unreached(knob: Knob, found: Sequence[Cell], samples: Samples) -> str | None:
    """Say that no budget could have shown anything: a limit that is never reached limits nothing. None where one was reached."""
    if knob.name != "budget" or samples.measure == "output" or samples.reached(int(found[0].setting), found):
        return None
    return f"no answer thought as much as the least budget, {found[0].setting} tokens, so none of them was a limit"


def _alike(found: Sequence[Cell], samples: Samples) -> tuple[tuple[str, str], ...]:
    pairs = pairwise(found)
    compared = [(one.setting, other.setting, samples.against(one.id, other.id)) for one, other in pairs]
    return tuple((one, other) for one, other, test in compared if test is not None and not test.moved)


def _times(ends: Comparison) -> str:
    return "and does not at" if ends.ratio is None else f"{ends.ratio:.1f} times as much as"


def _said(
    knob: Knob,
    verdict: Verdict,
    why: str,
    *,
    test: Comparison | None = None,
    alike: tuple[tuple[str, str], ...] = (),
) -> KnobVerdict:
    return KnobVerdict(knob=knob.name, form=knob.form, verdict=verdict, why=why, test=test, alike=alike)
