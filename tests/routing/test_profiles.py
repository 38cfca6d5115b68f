"""Profiles laid over one another, and profiles that are locked."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from bardo.routing.profiles import LOCKED, merge_profiles, override_profile, set_fields
from bardo.values.profile import InferenceProfile

BASE = InferenceProfile(temperature=0.1, top_k=40, reasoning_effort="max")
PROFILES = st.builds(
    InferenceProfile,
    temperature=st.none() | st.floats(0, 2),
    top_k=st.none() | st.integers(1, 100),
    reasoning_effort=st.none() | st.sampled_from(["none", "low", "max"]),
    web_search=st.none() | st.booleans(),
)


def test_what_is_laid_over_goes_before_what_is_below() -> None:
    merged = merge_profiles(BASE, InferenceProfile(temperature=0.9, seed=7))
    assert merged == InferenceProfile(temperature=0.9, top_k=40, reasoning_effort="max", seed=7)


@given(PROFILES, PROFILES, PROFILES)
def test_merging_is_associative_and_the_empty_profile_changes_nothing(
    one: InferenceProfile, two: InferenceProfile, three: InferenceProfile
) -> None:
    assert merge_profiles(merge_profiles(one, two), three) == merge_profiles(one, merge_profiles(two, three))
    assert merge_profiles(one, None) == merge_profiles(None, one) == merge_profiles(one, InferenceProfile()) == one


def test_a_locked_profile_holds_what_it_sets_and_reports_what_was_asked() -> None:
    wanted = InferenceProfile(temperature=0.9, top_k=40, seed=7)
    held, refused = override_profile("risk", BASE, wanted, locked=True)
    assert held == merge_profiles(BASE, InferenceProfile(seed=7))
    assert [(one.what, one.asked, one.sent, one.why) for one in refused] == [
        ("profile.risk.temperature", 0.9, 0.1, LOCKED)
    ]


@given(PROFILES, PROFILES)
def test_no_field_of_a_locked_profile_ever_changes(base: InferenceProfile, over: InferenceProfile) -> None:
    held, refused = override_profile("risk", base, over, locked=True)
    assert set_fields(held).items() >= set_fields(base).items()
    changed = {name for name, value in set_fields(over).items() if set_fields(held)[name] != value}
    assert {one.what.rpartition(".")[2] for one in refused} == changed


def test_an_open_profile_is_overridden_without_a_report() -> None:
    assert override_profile("dream", BASE, InferenceProfile(temperature=1.0), locked=False) == (
        merge_profiles(BASE, InferenceProfile(temperature=1.0)),
        (),
    )
