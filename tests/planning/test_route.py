"""Which providers a model name leads to."""

from __future__ import annotations

import pytest

from bardo.catalog.load import builtin
from bardo.planning.route import Provider, names_of_listed, resolve
from bardo.values.errors import UnknownModel

pytestmark = pytest.mark.each_python


def provider(id: str, preset: str = "", *models: str, configured: bool = False) -> Provider:  # noqa: A002
    row = builtin().provider(preset or id)
    assert row is not None
    return Provider(id=id, row=row, base_url="http://x", models=models, configured_models=configured)


OPENAI = provider("openai")
ANTHROPIC = provider("anthropic")
GEMINI = provider("gemini")
OPENROUTER = provider("openrouter", "openrouter", "openrouter/auto", "anthropic/claude-opus-4.5")
LAB = provider("lab", "vllm", "deepseek-r1", "Qwen/Qwen3-32B", configured=True)
CLOSET = provider("closet", "vllm", "deepseek-r1", configured=True)
EVERYONE = [OPENAI, ANTHROPIC, GEMINI, OPENROUTER, LAB, CLOSET]


def ways(model: str, providers: list[Provider] = EVERYONE) -> list[str]:
    return [f"{target.provider.id}: {target.model}" for target in resolve(model, providers)]


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        # a bare name: by the catalog's globs, or by what is listed, in the order of the configuration
        ("gpt-5", ["openai: gpt-5"]),
        ("claude-opus-4-8", ["anthropic: claude-opus-4-8"]),
        ("Claude-Opus-4-8", ["anthropic: Claude-Opus-4-8"]),
        ("gemini-2.5-flash", ["gemini: gemini-2.5-flash"]),
        ("deepseek-r1", ["lab: deepseek-r1", "closet: deepseek-r1"]),
        # a bare name that holds a slash
        ("Qwen/Qwen3-32B", ["lab: Qwen/Qwen3-32B", "openrouter: Qwen/Qwen3-32B"]),
        ("meta-llama/llama-4", ["openrouter: meta-llama/llama-4"]),
        # provider/model: the provider's own id, or what its catalog row is called
        ("lab/deepseek-r1", ["lab: deepseek-r1"]),
        ("closet/deepseek-r1", ["closet: deepseek-r1"]),
        ("lab/anything", ["lab: anything"]),
        # what a provider lists goes before another provider's prefix
        ("anthropic/claude-opus-4.5", ["openrouter: anthropic/claude-opus-4.5"]),
        ("anthropic/claude-opus-4-8", ["anthropic: claude-opus-4-8"]),
        ("openrouter/anthropic/claude-opus-4.5", ["openrouter: anthropic/claude-opus-4.5"]),
        ("google/gemini-2.5-flash", ["gemini: gemini-2.5-flash"]),
        ("vllm/deepseek-r1", ["lab: deepseek-r1"]),
        ("openai-responses/gpt-5", ["openai: gpt-5"]),
        # a model whose own name begins like its provider
        ("openrouter/auto", ["openrouter: openrouter/auto"]),
        ("openrouter/openrouter/auto", ["openrouter: openrouter/auto"]),
    ],
)
def test_a_name_leads_to(model: str, expected: list[str]) -> None:
    assert ways(model) == expected


def test_who_lists_a_model_goes_before_who_may_serve_it() -> None:
    reseller = provider("reseller", "openai-compatible", "gpt-5", configured=True)
    assert ways("gpt-5", [OPENAI, reseller]) == ["reseller: gpt-5", "openai: gpt-5"]


def test_a_provider_with_configured_models_serves_no_others() -> None:
    narrow = provider("openai", "openai", "gpt-5", configured=True)
    with pytest.raises(UnknownModel, match="did you mean gpt-5"):
        resolve("gpt-5.1", [narrow])
    assert ways("openai/gpt-5.1", [narrow]) == ["openai: gpt-5.1"]


def test_a_providers_id_goes_before_what_another_is_called() -> None:
    other = provider("work", "openai")
    named = provider("openai-responses", "deepseek")
    assert ways("openai-responses/m", [other, named]) == ["openai-responses: m"]


@pytest.mark.parametrize("model", ["", "/", "lab/", "/deepseek-r1", "deepseek", "nothing-like-it"])
def test_a_name_that_leads_nowhere_is_an_error(model: str) -> None:
    with pytest.raises(UnknownModel):
        resolve(model, [LAB, CLOSET])


@pytest.mark.parametrize("model", ["DEEPSEEK-R1", "DeepSeek-R1 ", "DEEPSEEK-V1", "CLOSET/DEEPSEEK-R1"])
def test_names_are_near_however_their_letters_are_written(model: str) -> None:
    with pytest.raises(UnknownModel, match="did you mean deepseek-r1"):
        resolve(model, [LAB])


def test_the_error_helps() -> None:
    with pytest.raises(UnknownModel, match="did you mean deepseek-r1"):
        resolve("deepseek-r2", [LAB])
    with pytest.raises(UnknownModel, match="use provider/model with one of lab, closet"):
        resolve("zzz", [LAB, CLOSET])
    with pytest.raises(UnknownModel, match="no provider is configured"):
        resolve("gpt-5", [])


@pytest.mark.parametrize(
    ("base_url", "path", "url"),
    [
        ("http://x/v1", "chat/completions", "http://x/v1/chat/completions"),
        ("http://x/v1/", "chat/completions", "http://x/v1/chat/completions"),
        ("http://x/v1?api-version=1", "chat/completions", "http://x/v1/chat/completions?api-version=1"),
        ("http://x/v1?api-version=1", "models/m:stream?alt=sse", "http://x/v1/models/m:stream?alt=sse&api-version=1"),
        ("http://x/v2", "/v1/models?limit=9", "http://x/v1/models?limit=9"),
        ("http://x/v1?a=1", "../props", "http://x/props?a=1"),
        ("http://x/v2?a=1", "/v1/models?limit=9", "http://x/v1/models?limit=9&a=1"),
    ],
)
def test_a_path_is_joined_to_a_base_url(base_url: str, path: str, url: str) -> None:
    row = builtin().provider("vllm")
    assert row is not None
    assert Provider(id="x", row=row, base_url=base_url).url(path) == url


OLLAMA = provider("ollama", "ollama", "my-own:latest", "my-own:27b", configured=True)


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("my-own:latest", ["ollama: my-own:latest"]),
        ("my-own", ["ollama: my-own:latest"]),
        ("my-own:27b", ["ollama: my-own:27b"]),
        ("claude-opus-4-8:latest", ["anthropic: claude-opus-4-8"]),
        ("anthropic/claude-opus-4-8:latest", ["anthropic: claude-opus-4-8"]),
    ],
)
def test_a_name_without_a_tag_is_the_one_with_ollamas_latest(model: str, expected: list[str]) -> None:
    assert ways(model, [*EVERYONE, OLLAMA]) == expected


def test_every_listed_model_of_all_presets_has_a_name_of_its_own_that_leads_to_it() -> None:
    rows = builtin().providers
    # What providers list: bare names that others list too, names that begin with another provider, and with their own.
    makers = [row.id for row in rows]
    everybody = [
        Provider(
            id=row.id,
            row=row,
            base_url="http://x",
            models=(
                "gpt-5",
                "m1",
                f"m-{row.id}",
                *(f"{maker}/m1" for maker in makers if maker != row.id),
                f"{row.id}/only",
                "a/b/c",
            ),
        )
        for row in rows
    ]
    for providers in (everybody, everybody[::-1]):
        named = names_of_listed(providers)
        assert len({name for name, _ in named}) == len(named)
        reached = {(target.provider.id, target.model) for _, target in named}
        assert reached >= {(one.id, model) for one in everybody for model in ("gpt-5", "m1", f"m-{one.id}")}
        for name, target in named:
            first = resolve(name, providers)[0]
            assert (first.provider.id, first.model) == (target.provider.id, target.model), name


def test_an_exact_name_goes_before_a_prefix_and_the_prefixed_model_has_another_name() -> None:
    openai, groq = (
        provider("openai", "openai", "gpt-5", "gpt-oss"),
        provider("groq", "groq", "openai/gpt-oss", "gpt-oss"),
    )
    assert ways("openai/gpt-oss", [openai, groq]) == ["groq: openai/gpt-oss"]
    assert ways("openai/gpt-5", [openai, groq]) == ["openai: gpt-5"]
    assert [(name, one.provider.id) for name, one in names_of_listed([groq, openai])] == [
        ("openai/gpt-oss", "groq"),
        ("gpt-oss", "groq"),
        ("gpt-5", "openai"),
        ("openai/openai/gpt-oss", "openai"),
    ]
    assert ways("openai/openai/gpt-oss", [groq, openai]) == ["openai: gpt-oss"]


@pytest.mark.parametrize("model", ["", "x" * 300, "a\x00b", "a\nb"])
def test_a_listed_name_that_nobody_can_ask_for_is_not_shown(model: str) -> None:
    assert [name for name, _ in names_of_listed([provider("lab", "vllm", "good", model)])] == ["good"]


@pytest.mark.parametrize(
    ("model", "hint"),
    [
        (
            "antropic/x",
            "did you mean anthropic/x? no provider is configured: set ANTHROPIC_API_KEY (the key of anthropic)",
        ),
        ("anthropic/x", "no provider is configured: set ANTHROPIC_API_KEY (the key of anthropic)"),
        ("zzz/x", "no provider is configured: set a provider's key"),
        ("claude-x", "no provider is configured: set a provider's key"),
    ],
)
def test_without_providers_it_is_said_which_one_was_meant_and_what_its_key_is_called(model: str, hint: str) -> None:
    with pytest.raises(UnknownModel) as told:
        resolve(model, [])
    assert told.value.hint.startswith(f"{hint} ")
