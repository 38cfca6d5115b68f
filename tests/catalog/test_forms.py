"""Wire forms and endpoints fit together, and say only what they can."""

from __future__ import annotations

import re

import pytest

from bardo.catalog.forms import builtin_forms, read_forms
from bardo.catalog.load import builtin
from bardo.catalog.models import builtin_models
from bardo.catalog.parameters import builtin_parameters, read_parameters
from bardo.values.errors import ConfigError


def test_every_provider_row_has_an_endpoint_in_its_dialect() -> None:
    forms = builtin_forms()
    for row in builtin().providers:
        assert forms.endpoint(row.id, row.dialect) in forms.endpoints, row.id


def test_a_provider_goes_before_any_server_of_its_dialect() -> None:
    forms = builtin_forms()
    assert forms.endpoint("qwen", "openai_chat").forms == ("qwen",)
    assert forms.endpoint("unheard-of", "openai_chat").forms == ("reasoning_effort",)


def test_an_unknown_dialect_has_nothing_to_say() -> None:
    endpoint = builtin_forms().endpoint("unheard-of", "morse")
    assert builtin_forms().choose(endpoint, maker="", control=("effort",), named=None).name == "none"


def test_every_form_is_used() -> None:
    forms = builtin_forms()
    offered = {name for one in forms.endpoints for names in (one.forms, *one.makers.values()) for name in names}
    named = {row.form for row in builtin_models().rows if row.form}
    assert set(forms.forms) - offered - named == set()


def test_every_nearest_off_is_a_fragment_of_a_form() -> None:
    for row in builtin_models().rows:
        if row.nearest_off:
            assert any(getattr(form, row.nearest_off, None) for form in builtin_forms().forms.values())


def test_every_rule_that_a_row_names_is_there() -> None:
    names = {rule.name for rule in builtin_parameters().rule}
    assert {name for row in builtin_models().rows for name in row.rules or ()} <= names


def test_every_refusal_is_a_pattern_with_the_groups_its_kind_reads() -> None:
    groups = {"levels": {"levels"}, "range": {"least", "most"}, "least": {"least"}, "most": {"most"}}
    for refusal in builtin_forms().refusals:
        assert set(re.compile(refusal.pattern).groupindex) == groups.get(refusal.kind, set()), refusal.pattern


def test_an_endpoint_with_an_unknown_form_is_refused() -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        read_forms({"endpoint": [{"providers": ["x"], "dialects": ["y"], "forms": ["nowhere"]}]})


def test_a_wrong_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="wire_forms"):
        read_forms({"form": [{"name": "x", "efort": {}}]})
    with pytest.raises(ConfigError, match="parameters"):
        read_parameters({"rule": [{"name": "x"}], "step": []})
