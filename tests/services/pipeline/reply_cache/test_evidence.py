"""What is counted of similar questions: in memory, in a file that workers share, and never with contents."""

from __future__ import annotations

from pathlib import Path

from bardo.context.cache.confidence import Evidence
from bardo.services.pipeline.reply_cache.evidence import FILE, SimilarEvidence, read_figures


def test_workers_that_share_a_file_learn_from_each_other(tmp_path: Path) -> None:
    one, other = (SimilarEvidence(tmp_path / FILE) for _ in range(2))
    one.compared("f", b"e", 0.9, "same")
    other.compared("f", b"e", 0.9, "different")
    one.store()
    other.store()
    one.store()
    assert one.pool("f", 0.9) == other.pool("f", 0.9) == Evidence(1, 1)
    assert one.own(b"e") == Evidence(same=1)
    one.store()
    assert one.pool("f", 0.9) == Evidence(1, 1)


def test_comparisons_of_less_similar_entries_count_for_more_similar_ones_and_not_the_reverse() -> None:
    evidence = SimilarEvidence(None)
    evidence.compared("f", b"a", 0.81, "same")
    evidence.compared("f", b"b", 0.99, "different")
    evidence.compared("f", b"b", 0.99, "undecided")
    assert evidence.pool("f", 0.99) == Evidence(1, 1)
    assert evidence.pool("f", 0.82) == Evidence(1, 0)
    assert evidence.pool("f", 0.76) == Evidence()
    assert evidence.pool("another", 0.99) == Evidence()


def test_figures_are_read_by_another_program(tmp_path: Path) -> None:
    assert read_figures(tmp_path) == []
    evidence = SimilarEvidence(tmp_path / FILE)
    for outcome in ("nothing", "refused", "shadowed", "shadowed", "served", "rechecked"):
        evidence.count("f", outcome)
    evidence.compared("f", b"a", 0.9, "same")
    evidence.compared("f", b"a", 0.9, "undecided")
    assert evidence.figures() == evidence.figures()
    evidence.store()
    (found,) = read_figures(tmp_path)
    assert [found] == evidence.figures()
    assert (found.lookups, found.allowed, found.served) == (6, 4, 1)
    assert (found.same, found.different, found.undecided) == (1, 0, 1)
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_a_file_that_is_no_database_gives_no_figures(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"no database at all, but long enough to be looked at" * 40)
    assert read_figures(tmp_path) == []
