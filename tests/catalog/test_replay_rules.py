"""Which state may be read where: the rows, as facts."""

from __future__ import annotations

import pytest

from bardo.catalog.load import builtin
from bardo.catalog.replay import Reader, builtin_replay, read_replay
from bardo.values.blocks import Origin
from bardo.values.errors import ConfigError

RULES = builtin_replay()


def reader(preset: str, model: str, name: str = "", account: str = "") -> Reader:
    row = builtin().provider(preset)
    assert row is not None
    return RULES.reader(name or preset, row, model, account)


def origin(preset: str, model: str, name: str = "", account: str = "") -> Origin:
    return reader(preset, model, name, account).origin()


CLAUDE, GEMINI, OPENAI, XAI = "anthropic-claude-v1", "google-gemini-v1", "openai-responses-v1", "xai-responses-v1"


@pytest.mark.parametrize(
    ("form", "made", "read"),
    [
        (CLAUDE, ("anthropic", "claude-sonnet-4-5"), ("anthropic", "claude-opus-5")),
        (CLAUDE, ("anthropic", "claude-opus-5"), ("anthropic", "claude-fable-5-1")),
        (CLAUDE, ("anthropic", "claude-fable-5-1"), ("anthropic", "claude-fable-5-2")),
        (CLAUDE, ("anthropic", "claude-haiku-5-5"), ("anthropic", "claude-haiku-5-5")),
        (CLAUDE, ("openrouter", "anthropic/claude-opus-5"), ("openrouter", "anthropic/claude-sonnet-5")),
        (GEMINI, ("gemini", "gemini-3-pro"), ("gemini-interactions", "gemini-3.5-flash")),
        (GEMINI, ("gemini-openai-compat", "gemini-3-pro"), ("gemini", "gemini-3-pro")),
        (OPENAI, ("openai", "gpt-5.1"), ("openai", "gpt-5.1")),
        (XAI, ("xai-responses", "grok-4.5"), ("xai-responses", "grok-4.5")),
        ("bedrock-v1", ("bedrock", "anthropic.claude-opus-4-5"), ("bedrock-invoke", "anthropic.claude-opus-4-5")),
        ("content_list", ("mistral", "magistral-medium"), ("mistral", "magistral-small")),
    ],
)
def test_state_goes_where_it_can_be_read(form: str, made: tuple[str, str], read: tuple[str, str]) -> None:
    assert RULES.refusal(form, origin(*made), reader(*read)) == ""


@pytest.mark.parametrize(
    ("form", "made", "read"),
    [
        (CLAUDE, ("anthropic", "claude-opus-5"), ("openrouter", "anthropic/claude-opus-5")),
        (CLAUDE, ("openrouter", "anthropic/claude-opus-5"), ("anthropic", "claude-opus-5")),
        (CLAUDE, ("openrouter", "anthropic/claude-opus-5"), ("openrouter", "google/gemini-3-pro")),
        (CLAUDE, ("anthropic", "claude-opus-5"), ("bedrock", "anthropic.claude-opus-5")),
        (CLAUDE, ("anthropic", "claude-fable-5-1"), ("anthropic", "claude-opus-5-5")),
        (CLAUDE, ("anthropic", "claude-fable-5-2"), ("anthropic", "claude-fable-5-1")),
        (GEMINI, ("gemini", "gemini-3-pro"), ("openrouter", "google/gemini-3-pro")),
        (GEMINI, ("gemini", "gemini-3-pro"), ("anthropic", "claude-opus-5")),
        (OPENAI, ("openai", "gpt-5.1"), ("openai", "gpt-5.2")),
        (OPENAI, ("openai", "gpt-5.1"), ("openrouter", "openai/gpt-5.1")),
        (XAI, ("xai-responses", "grok-4.5"), ("openai", "gpt-5.1")),
        (OPENAI, ("openai", "gpt-5.1"), ("xai-responses", "grok-4.5")),
        ("bedrock-v1", ("bedrock", "anthropic.claude-opus-4-5"), ("anthropic", "claude-opus-4-5")),
        ("content_list", ("mistral", "magistral-medium"), ("zai", "glm-5")),
    ],
)
def test_state_goes_nowhere_else_and_the_row_says_why(form: str, made: tuple[str, str], read: tuple[str, str]) -> None:
    assert RULES.refusal(form, origin(*made), reader(*read)) != ""


@pytest.mark.parametrize(
    ("form", "preset", "model"),
    [
        (CLAUDE, "anthropic", "claude-sonnet-5-5"),
        (CLAUDE, "anthropic", "claude-sonnet-4-5"),
        (CLAUDE, "anthropic", "claude-fable-5-2"),
        (CLAUDE, "openrouter", "anthropic/claude-opus-5"),
        (GEMINI, "gemini", "gemini-3-pro"),
        (GEMINI, "vertex", "gemini-3-pro"),
        (OPENAI, "openai", "gpt-5.1"),
        (OPENAI, "azure", "gpt-5.1"),
        (XAI, "xai", "grok-4.5"),
        ("bedrock-v1", "bedrock", "anthropic.claude-opus-4-5"),
        ("content_list", "mistral", "magistral-medium"),
    ],
)
def test_state_goes_only_to_the_account_that_made_it(form: str, preset: str, model: str) -> None:
    made = origin(preset, model, "work", "a1")
    assert RULES.refusal(form, made, reader(preset, model, "work", "a1")) == ""
    assert RULES.refusal(form, made, reader(preset, model, "other entry of it", "a1")) == ""
    assert "account" in RULES.refusal(form, made, reader(preset, model, "work", "a2"))


def test_state_that_was_kept_before_accounts_were_goes_to_the_entry_that_made_it() -> None:
    made = origin("openai", "gpt-5.1", "work")
    assert RULES.refusal(OPENAI, made, reader("openai", "gpt-5.1", "work", "a1")) == ""
    assert "account" in RULES.refusal(OPENAI, made, reader("openai", "gpt-5.1", "other", "a1"))


@pytest.mark.parametrize(
    ("form", "made", "read"),
    [
        (OPENAI, ("openai", "gpt-5.1"), ("azure", "gpt-5.1")),
        (OPENAI, ("azure", "gpt-5.1"), ("openai", "gpt-5.1")),
        (CLAUDE, ("anthropic", "claude-opus-5"), ("vertex-anthropic", "claude-opus-5")),
        (CLAUDE, ("vertex-anthropic", "claude-sonnet-5-5"), ("anthropic", "claude-sonnet-5-5")),
        (CLAUDE, ("anthropic", "claude-fable-5-2"), ("azure-anthropic", "claude-fable-5-2")),
        (CLAUDE, ("azure-anthropic", "claude-opus-5"), ("bedrock-mantle-anthropic", "claude-opus-5")),
        (GEMINI, ("gemini", "gemini-3-pro"), ("vertex", "gemini-3-pro")),
        (GEMINI, ("vertex", "gemini-3-pro"), ("gemini", "gemini-3-pro")),
    ],
)
def test_clouds_that_sell_the_same_models_do_not_read_each_others_state(
    form: str, made: tuple[str, str], read: tuple[str, str]
) -> None:
    assert RULES.refusal(form, origin(*made), reader(*read)) != ""
    assert RULES.refusal(form, origin(*made, account="a"), reader(*read, account="a")) != ""


@pytest.mark.parametrize(
    "preset", ["anthropic", "vertex-anthropic", "azure-anthropic", "bedrock-mantle-anthropic", "claude-google-cloud"]
)
def test_what_is_true_of_claude_is_true_at_every_cloud(preset: str) -> None:
    own = RULES.of(reader(preset, "claude-opus-5-5"))
    assert own.signed
    assert own.expects_thinking
    assert own.binding is not None


@pytest.mark.parametrize(
    ("words", "code", "lacks"),
    [
        ("The encrypted content gAAA...DQ== could not be verified.", "", False),
        ("The encrypted content for item cmp_34....b7bd could not be verified.", "", False),
        ("Encrypted content organization_id did not match the target organization.", "", False),
        ("something new", "invalid_encrypted_content", False),
        ("Could not decrypt the provided encrypted_content. Ensure the value is unmodified.", "", False),
        ("Item 'rs_123' of type 'reasoning' was provided without its required following item.", "", False),
        ("Item with id 'rs_68af' not found. Items are not persisted when `store` is set to false.", "", False),
        ("messages.1.content.0: Invalid `signature` in `thinking` block", "", False),
        ("messages.7.content.2: Invalid signature in thinking block (Service: BedrockRuntime)", "", False),
        ("messages.1.content.0: Invalid `data` in `redacted_thinking` block", "", False),
        ("The model returned the following errors: messages.3.content.0.thinking.signature: Field required", "", False),
        (
            "messages.1.content.0: When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`.",
            "",
            False,
        ),
        ("Corrupted thought signature.", "", False),
        ("Unable to submit request because Thought signature is not valid.. Learn more", "", False),
        ("Invalid thought signature.", "", False),
        ("messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`.", "", True),
    ],
)
def test_a_refusal_of_earlier_state_is_known_by_its_words_or_its_code(words: str, code: str, lacks: bool) -> None:
    found = RULES.refusal_of_state(words, code)
    assert found is not None
    assert found.lacks == lacks
    assert found.source


@pytest.mark.parametrize(
    "words",
    [
        "Invalid value for temperature",
        "messages.1.content.0.text: Field required",
        "Function call is missing a thought_signature in functionCall parts.",
        "thinking.budget_tokens: Input should be greater than or equal to 1024",
        "The encrypted content of the file could not be read",
    ],
)
def test_other_refusals_are_none_of_earlier_state(words: str) -> None:
    assert RULES.refusal_of_state(words) is None


def test_state_of_unknown_origin_goes_to_its_own_vendor_only() -> None:
    assert RULES.refusal(CLAUDE, None, reader("anthropic", "claude-opus-5")) == ""
    assert RULES.refusal(CLAUDE, None, reader("openrouter", "anthropic/claude-opus-5")) == ""
    assert RULES.refusal(CLAUDE, None, reader("openrouter", "google/gemini-3-pro")) != ""
    assert RULES.refusal(GEMINI, None, reader("openrouter", "anthropic/claude-opus-5")) != ""


def test_servers_known_by_their_dialect_alone_are_platforms_of_their_own() -> None:
    made = origin("responses-compatible", "m", "one")
    assert RULES.refusal("openai-responses-v1", made, reader("responses-compatible", "m", "one")) == ""
    assert RULES.refusal("openai-responses-v1", made, reader("responses-compatible", "m", "other")) != ""


@pytest.mark.parametrize(
    "model",
    [
        "claude-fable-5-1",
        "claude-fable-5.1-20260901",
        "claude-opus-5-5",
        "claude-mythos-5-2",
        "claude-opus-6",
        "claude-opus-5-7",
    ],
)
def test_models_of_preserved_thinking_are_bound_to_the_prefix(model: str) -> None:
    assert RULES.of(reader("anthropic", model)).binding is not None


@pytest.mark.parametrize(
    ("preset", "model"),
    [
        ("anthropic", "claude-opus-5"),
        ("anthropic", "claude-opus-5-20260601"),
        ("anthropic", "claude-fable-5"),
        ("openrouter", "anthropic/claude-opus-5-5"),
    ],
)
def test_others_are_not(preset: str, model: str) -> None:
    assert RULES.of(reader(preset, model)).binding is None


@pytest.mark.parametrize("preset", ["deepseek", "moonshot"])
def test_hosts_that_insist_on_reasoning_have_something_to_fill_in(preset: str) -> None:
    rule = RULES.of(reader(preset, "m")).text
    assert rule.required == "tool_calls"
    assert rule.fill


def test_every_platform_names_provider_rows_that_exist() -> None:
    for rule in RULES.texts:
        for name in rule.providers:
            assert name == "*" or builtin().provider(name) is not None


def test_a_wrong_row_is_named() -> None:
    with pytest.raises(ConfigError, match=r"replay\.toml"):
        read_replay({"state": [{"form": "x"}]})
