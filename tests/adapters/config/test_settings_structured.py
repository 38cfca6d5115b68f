"""`[inference.structured_outputs]` of bardo.toml."""

from __future__ import annotations

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.structured import StructuredSettings
from bardo.values.errors import ConfigError

TABLE = "[inference.structured_outputs]\n"


def test_every_key_has_the_documents_default() -> None:
    assert parse_settings("").inference.structured_outputs == StructuredSettings()
    assert parse_settings("[inference]\n").inference.structured_outputs == StructuredSettings()


def test_every_key_is_read() -> None:
    text = (
        f"{TABLE}enabled = false\nprefer_schema_enforcement = false\nvalidation = false\n"
        "retry_on_validation_failure = false\nmax_retries = 3\n"
    )
    assert parse_settings(text).inference.structured_outputs == StructuredSettings(
        enabled=False,
        prefer_schema_enforcement=False,
        validation=False,
        retry_on_validation_failure=False,
        max_retries=3,
    )


MISTAKES = {
    "an unknown key": ("validate = true\n", r"line 2: unknown key 'validate'.*did you mean 'validation'"),
    "a wrong kind": ('validation = "yes"\n', r"line 2: .*validation.* true or false"),
    "too many": ("max_retries = 50\n", r"line 2: .*max_retries must be at most 5"),
}


@pytest.mark.parametrize(("lines", "told"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_names_its_line(lines: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        parse_settings(TABLE + lines)
