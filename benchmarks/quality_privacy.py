"""Quality of the layer `privacy`: values found and look-alikes left alone, beside Presidio's own recognisers where they are installed.

The cases are parameters of Presidio's own tests (MIT): each says of one kind how many values of it are in a text. A case is judged by the
rows of that kind alone, and by Presidio's recogniser of that kind alone, at any score; kinds that need a language model are left out. The
sentences are templates of presidio-research (MIT) filled by Faker: all kinds are looked for there, at the usual scores.
"""

from __future__ import annotations

import importlib
import inspect
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bardo.catalog.layer_rows import pii_entities
from bardo.context.privacy.detect import Detector
from benchmarks.bench import Bench
from benchmarks.figures import Figure, Row, Table, Target
from benchmarks.quality_data import Rows, read_set, share_of

OWN, PEER = "bardo", "Presidio's patterns"
_ROUNDS = 5
_LEAST_TIMES = 10
# What the files of Presidio's tests are called where it is not the name of the kind.
_KINDS = {
    "aba_routing": "ABA_ROUTING_NUMBER",
    "certificate_number": "MEDICAL_LICENSE",
    "date": "DATE_TIME",
    "email": "EMAIL_ADDRESS",
    "iban": "IBAN_CODE",
    "ip": "IP_ADDRESS",
    "mac": "MAC_ADDRESS",
    "medical_license": "MEDICAL_LICENSE",
    "phone": "PHONE_NUMBER",
    "sg_fin": "SG_NRIC_FIN",
    "us_bank": "US_BANK_NUMBER",
}
_FILES = {"certificate_number": "medical_license"}
_NEED_A_MODEL = ("PERSON", "LOCATION", "ORGANIZATION", "NRP", "JOB")
Spans = Sequence[tuple[int, int]]
Find = Callable[[str], Spans]


def run(bench: Bench) -> tuple[list[Table], list[Target]]:
    """Measure cases, sentences and time."""
    presidio = Presidio.installed()
    if presidio is None:
        bench.note("quality of privacy: presidio-analyzer is not installed, so that bardo stands alone")
    else:
        bench.versions["presidio-analyzer"] = presidio.version
    tables: list[Table] = []
    targets: list[Target] = []
    for measured in (_cases(bench, presidio), _sentences(bench, presidio)):
        if measured is not None:
            tables.append(measured[0])
            targets += measured[1]
    return tables, targets


class Presidio:
    """Presidio's recognisers that need no language model, each asked without the engine around it."""

    def __init__(self) -> None:
        recognisers = importlib.import_module("presidio_analyzer.predefined_recognizers")
        base = importlib.import_module("presidio_analyzer").PatternRecognizer
        phone = recognisers.PhoneRecognizer
        made = [
            one for _, one in inspect.getmembers(recognisers, inspect.isclass) if issubclass(one, base) or one is phone
        ]
        self._by_file = {one.__module__.rpartition(".")[2].removesuffix("_recognizer"): one() for one in made}
        self.version = importlib.import_module("importlib.metadata").version("presidio-analyzer")
        _stay_offline()

    @classmethod
    def installed(cls) -> Presidio | None:
        """Return it, or None where it is not installed."""
        try:
            return cls()
        except ImportError:
            return None

    def of(self, file: str) -> Find | None:
        """Return what one recogniser finds; None where this version has none of that name."""
        found = self._by_file.get(_FILES.get(file, file))
        return None if found is None else lambda text: self._spans([found], text)

    def all(self, text: str) -> Spans:
        """Return what all of them find at a score of a half or more."""
        return self._spans(self._by_file.values(), text, least=0.5)

    @staticmethod
    def _spans(recognisers: Iterable[Any], text: str, least: float = 0.0) -> Spans:
        found = [one for each in recognisers for one in each.analyze(text, each.supported_entities, None)]
        return [(one.start, one.end) for one in found if one.score >= least]


def _stay_offline() -> None:
    tldextract: Any = importlib.import_module("tldextract")
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)


def _cases(bench: Bench, presidio: Presidio | None) -> tuple[Table, list[Target]] | None:
    data = read_set(bench, "pii-recognizer-cases")
    if data is None:
        return None
    rows = [row for row in data.measured or data.fitted if _kind(row) in pii_entities()]
    left_out = sorted({row["recognizer"] for row in data.measured or data.fitted} - {row["recognizer"] for row in rows})
    own = {row["recognizer"]: _own(_kind(row)) for row in rows}
    peers = {} if presidio is None else {name: find for name in own if (find := presidio.of(name)) is not None}
    both = [row for row in rows if row["recognizer"] in peers]
    columns: dict[str, Mapping[str, Find]] = {OWN: own, **({PEER: peers} if peers else {})}
    measured = [
        ("", rows if not peers else both),
        *([(" (kinds that Presidio's package lacks)", [one for one in rows if one not in both])] if peers else []),
    ]
    table_rows = []
    for note, part in measured:
        table_rows += [
            _row(
                f"values found{note}",
                {name: _found(part, finders) for name, finders in columns.items() if name == OWN or not note},
            ),
            _row(
                f"look-alikes found{note}",
                {name: _wrong(part, finders) for name, finders in columns.items() if name == OWN or not note},
            ),
        ]
    notes = (f"Left out, since they need a language model or are no kind: {', '.join(left_out)}.",) if left_out else ()
    table = Table(
        subject="quality",
        title="privacy: cases of single kinds",
        columns=tuple(columns),
        rows=tuple(table_rows),
        notes=notes,
        shares=True,
    )
    found, wrong = (
        {name: table.figure(measure, name) for name in columns} for measure in ("values found", "look-alikes found")
    )
    targets = []
    if peers and (theirs := found[PEER]) is not None and (their_wrong := wrong[PEER]) is not None:
        targets = [
            _target("values found, at least as many as Presidio", theirs.median, found[OWN], "higher"),
            _target("look-alikes found, no more than Presidio", their_wrong.median, wrong[OWN], "lower"),
        ]
    return table, targets


def _sentences(bench: Bench, presidio: Presidio | None) -> tuple[Table, list[Target]] | None:
    data = read_set(bench, "pii-synthetic")
    if data is None:
        return None
    rows = data.measured or data.fitted
    detector = Detector(one for one in pii_entities().values())
    columns: dict[str, Find] = {OWN: lambda text: [(one.start, one.end) for one in detector.find(text)]}
    if presidio is not None:
        columns[PEER] = presidio.all
    kinds = sorted({span[2] for row in rows for span in row["spans"]} - set(_NEED_A_MODEL))
    table_rows = [_row(kind, {name: _of_kind(rows, kind, find) for name, find in columns.items()}) for kind in kinds]
    table_rows.append(
        _row("what is found and is not labelled", {name: _unlabelled(rows, find) for name, find in columns.items()})
    )
    seconds = {name: _seconds(find, [row["text"] for row in rows]) for name, find in columns.items()}
    quality = Table(
        subject="quality",
        title="privacy: sentences, all kinds at once",
        columns=tuple(columns),
        rows=tuple(table_rows),
        shares=True,
        notes=(
            f"Microseconds for a sentence: {', '.join(f'{name} {figure.median * 1e6:.0f}' for name, figure in seconds.items())}.",
        ),
    )
    times = seconds[PEER].median / seconds[OWN].median if PEER in seconds else None
    return quality, [
        Target(
            says="privacy: times as fast as Presidio's patterns",
            limit=_LEAST_TIMES,
            unit="×",
            found=times,
            better="higher",
        )
    ]


def _kind(row: Mapping[str, Any]) -> str:
    name = str(row["recognizer"])
    return _KINDS.get(name, name.upper())


def _own(kind: str) -> Find:
    detector = Detector([pii_entities()[kind]], least=0)
    return lambda text: [(one.start, one.end) for one in detector.find(text)]


def _found(rows: Rows, finders: Mapping[str, Find]) -> list[bool]:
    """Return for each value whether it lies in what was found; a quote or a sign around it does not count."""
    marks: list[bool] = []
    for row in rows:
        spans = finders[row["recognizer"]](row["text"]) if row["spans"] else ()
        marks += [_covers(spans, begin, end) for begin, end in row["spans"]]
    return marks


def _wrong(rows: Rows, finders: Mapping[str, Find]) -> list[bool]:
    return [bool(finders[row["recognizer"]](row["text"])) for row in rows if row["n"] == 0]


def _of_kind(rows: Rows, kind: str, find: Find) -> list[bool]:
    marks: list[bool] = []
    for row in rows:
        wanted = [(begin, end) for begin, end, name in row["spans"] if name == kind]
        spans = find(row["text"]) if wanted else ()
        marks += [_covers(spans, begin, end) for begin, end in wanted]
    return marks


def _unlabelled(rows: Rows, find: Find) -> list[bool]:
    """Return for each text whether something is found in it that overlaps nothing that is labelled."""
    return [
        any(
            not any(start < end and begin < stop for begin, end, _ in row["spans"]) for start, stop in find(row["text"])
        )
        for row in rows
    ]


def _covers(spans: Spans, begin: int, end: int) -> bool:
    return any(start <= begin + 1 and stop >= end - 1 for start, stop in spans)


def _row(measure: str, marks: Mapping[str, Sequence[bool]]) -> Row:
    figures = {name: figure for name, one in marks.items() if (figure := share_of(one)) is not None}
    return Row(measure=measure, unit="share", figures=figures)


def _target(says: str, limit: float, found: Figure | None, better: Any) -> Target:
    return Target(
        says=f"privacy: {says}", limit=limit, unit="", found=None if found is None else found.median, better=better
    )


def _seconds(find: Find, texts: Sequence[str]) -> Figure:
    """Return the processor time for one text."""
    taken = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        for text in texts:
            find(text)
        taken.append((time.process_time() - began) / len(texts))
    figure = Figure.of(taken)
    assert figure is not None
    return figure
