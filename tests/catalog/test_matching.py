"""Model ids fit patterns whatever way their host spells them."""

import pytest

from bardo.catalog.matching import fits


@pytest.mark.parametrize(
    ("pattern", "model_id", "fit"),
    [
        ("lab", "Acme/LAB-1", True),
        ("lab*think", "acme/lab-7b-think:latest", True),
        ("lab*think", "acme/lab-7b", False),
        ("lab-[12]b", "lab_2b", True),
        ("lab.1", "lab-1", False),
        ("Lab_1", "lab:1", True),
    ],
)
def test_a_pattern_is_a_part_of_the_id_or_a_glob_of_one(pattern: str, model_id: str, fit: bool) -> None:
    assert fits(pattern, model_id) is fit
