"""What models at providers can do, by the rows and by what other rows say of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import bardo
from bardo.adapters.config.settings import parse_settings, provider_of
from bardo.catalog.features import features
from bardo.catalog.load import builtin
from bardo.catalog.matching import matches_any
from bardo.catalog.models import model_qualities
from bardo.catalog.routing_rows import routing_rows
from bardo.catalog.rows import ProviderTraits
from bardo.planning.knowledge import BUILTIN, TargetFacts, candidate_of, chat_models
from bardo.planning.route import Provider, Target
from bardo.routing.candidates import Candidate
from bardo.services.facts.price_book import PriceBook


def candidate(preset: str, model: str, base_url: str = "") -> Candidate:
    row = builtin().provider(preset)
    assert row is not None
    provider = Provider(id=preset, row=row, base_url=base_url or row.base_url)
    price = PriceBook().price(provider, model, datetime(2026, 11, 23, tzinfo=UTC).timestamp())
    return candidate_of(Target(provider=provider, model=model), price=price)


# Where each fact is from stands beside its row in features.toml; these are the makers' own words for one model of each kind.
HAS = [
    (
        "anthropic",
        "claude-opus-4-6",
        "citations interleaved_thinking compaction adaptive_thinking structured_outputs vision tool_calling",
    ),
    ("blockrun", "anthropic/claude-opus-4.6", "citations interleaved_thinking compaction"),
    ("anthropic", "claude-3-7-sonnet-20250219", "visible_thinking low_effort"),
    ("deepseek", "deepseek-reasoner", "visible_thinking"),
    ("venice", "deepseek-r1-671b", "visible_thinking privacy web_search"),
    ("venice", "e2ee-glm-5", "tee privacy"),
    ("openai", "gpt-4.1-mini", "predicted_outputs structured_outputs vision tool_calling"),
    ("openai", "gpt-5.4", "interleaved_thinking web_search compaction low_effort"),
    ("groq", "openai/gpt-oss-120b", "visible_thinking interleaved_thinking low_effort"),
    ("gemini", "gemini-3-flash-preview", "web_search vision low_effort structured_outputs"),
    ("cohere", "command-a-03-2025", "citations tool_calling"),
    ("perplexity", "sonar-pro", "citations web_search"),
    ("ollama", "qwen3:8b", "privacy visible_thinking tool_calling"),
]
LACKS = [
    ("anthropic", "claude-opus-4-6", "visible_thinking privacy predicted_outputs"),
    ("openai", "gpt-5.4", "visible_thinking predicted_outputs privacy"),
    ("gemini", "gemini-3-flash-preview", "visible_thinking"),
    ("blockrun", "deepseek/deepseek-r1", "privacy citations"),
    ("venice", "openai-gpt-54", "privacy"),
    ("venice", "claude-opus-4-6", "privacy"),
    ("venice", "llama-3.3-70b", "thinking visible_thinking"),
    ("openai", "gpt-4o", "thinking interleaved_thinking"),
    ("perplexity", "sonar-pro", "tool_calling"),
    # Nothing is known of the model, and its kind of server says nothing of thinking.
    ("openai-compatible", "mystery", "thinking tool_calling vision"),
]


@pytest.mark.parametrize(("preset", "model", "names"), HAS, ids=[f"{one[0]}-{one[1]}" for one in HAS])
def test_a_model_has_a_feature(preset: str, model: str, names: str) -> None:
    assert {*names.split()} <= candidate(preset, model).features


@pytest.mark.parametrize(("preset", "model", "names"), LACKS, ids=[f"{one[0]}-{one[1]}" for one in LACKS])
def test_a_model_does_not_have_a_feature(preset: str, model: str, names: str) -> None:
    assert not {*names.split()} & candidate(preset, model).features


def test_models_that_answer_no_conversation_are_no_candidates() -> None:
    row = builtin().provider("openai")
    assert row is not None
    listed = (
        "text-embedding-3-small",
        "dall-e-3",
        "gpt-4.1",
        "whisper-1",
        "gpt-realtime",
        "tts-1-hd",
        "gpt-5.4",
        "babbage-002",
    )
    provider = Provider(id="openai", row=row, base_url=row.base_url, models=(*listed, "azure/bge-m3", "gpt-oss-120b"))
    assert chat_models(provider) == ["gpt-4.1", "gpt-5.4", "gpt-oss-120b"]


def test_every_feature_of_the_issue_is_a_row() -> None:
    named = (
        "interleaved_thinking visible_thinking citations structured_outputs predicted_outputs compaction privacy "
        "low_effort tool_calling vision web_search"
    )
    assert {*named.split()} <= {*features().names}
    assert len({*features().names}) == len(features().names)
    assert all(re.fullmatch(r"[a-z_]+", name) for name in features().names)


def test_rows_name_providers_that_there_are() -> None:
    known = [row.id for row in builtin().providers]
    globs = [glob for row in features().feature for place in (*row.at, *row.not_at) for glob in place.providers]
    assert all(any(matches_any(name, (glob,)) for name in known) for glob in globs)


def test_what_the_server_or_the_operator_says_goes_before_the_rows() -> None:
    row = builtin().provider("vllm")
    assert row is not None
    target = Target(provider=Provider(id="lab", row=row, base_url="http://lab.test/v1"), model="mystery")
    assert not {"vision", "privacy", "tool_calling"} & candidate_of(target).features
    said = TargetFacts(known=BUILTIN.of(target).known, features={"vision": True, "structured_outputs": False})
    found = candidate_of(target, said, private=True).features
    assert {"vision", "privacy"} <= found
    assert "structured_outputs" not in found


def test_a_server_on_this_machine_is_private_and_free() -> None:
    local = candidate("vllm", "qwen3-8b")
    assert local.prices is not None
    assert (local.prices.input, local.prices.output) == (0, 0)
    assert "privacy" in local.features
    elsewhere = candidate("vllm", "qwen3-8b", "https://gpu.test/v1")
    assert elsewhere.prices is None
    assert "privacy" not in elsewhere.features


HERE = [
    "http://127.0.0.1:9/v1",
    "http://localhost:9/v1",
    "http://[::1]:9/v1",
    "http://127.9.9.9:9",
    "http://a.localhost",
]


@pytest.mark.parametrize("base_url", HERE)
def test_only_a_server_that_people_run_themselves_is_private_by_its_address(base_url: str) -> None:
    private = {row.id for row in builtin().providers if "privacy" in candidate(row.id, "mystery", base_url).features}
    hosted = {row.id for row in builtin().providers if row.base_url and not row.at_users_address}
    assert private & hosted == {"venice"}
    assert {"vllm", "ollama", "llama-server", "lmstudio", "openai-compatible"} <= private
    assert not private & {"litellm", "bardo-gateway", "watsonx"}


def test_an_address_of_this_machine_makes_no_price() -> None:
    unpriced = {row.id for row in builtin().providers if candidate(row.id, "mystery", HERE[0]).prices is None}
    assert {"openai", "anthropic", "blockrun", "litellm", "bardo-gateway", "openai-compatible", "watsonx"} <= unpriced
    assert not unpriced & {"vllm", "sglang", "ollama"}


@pytest.mark.parametrize("model", ["gpt-oss:120b-cloud", "glm-4.6:cloud"])
def test_what_a_local_ollama_hands_on_to_its_cloud_is_neither_private_nor_free(model: str) -> None:
    found = candidate("ollama", model)
    assert (found.prices, "privacy" in found.features) == (None, False)


def test_a_provider_with_a_server_elsewhere_is_not_on_this_machine() -> None:
    row = builtin().provider("vllm")
    assert row is not None
    both = ("http://127.0.0.1:8000/v1", "https://gpu.test/v1")
    provider = Provider(id="lab", row=row, base_url=both[0], addresses=both)
    found = candidate_of(Target(provider=provider, model="qwen3-8b"))
    assert (found.prices, "privacy" in found.features) == (None, False)


@pytest.mark.parametrize(("said", "private"), [("", True), ("private = false", False), ("private = true", True)])
@pytest.mark.parametrize("preset", ["vllm", "openai-compatible", "ollama"])
def test_what_the_operator_says_goes_before_what_an_address_suggests(preset: str, said: str, private: bool) -> None:
    text = f'[[providers]]\nid = "lab"\npreset = "{preset}"\nbase_url = "http://127.0.0.1:9/v1"\n{said}'
    provider = provider_of(parse_settings(text).providers[0])
    assert ("privacy" in candidate_of(Target(provider=provider, model="m")).features) is private
    kept = TargetFacts(known=BUILTIN.of(Target(provider=provider, model="m")).known, features={"privacy": True})
    assert ("privacy" in candidate_of(Target(provider=provider, model="m"), kept).features) is (private or not said)


def test_the_operator_may_call_a_private_preset_not_private_and_a_hosted_one_private() -> None:
    for preset, said in (("venice", "false"), ("deepseek", "true")):
        text = f'[[providers]]\nid = "{preset}"\nprivate = {said}'
        provider = provider_of(parse_settings(text).providers[0])
        found = candidate_of(Target(provider=provider, model="deepseek-r1"))
        assert ("privacy" in found.features) is (said == "true")


def test_prices_are_those_that_the_document_names() -> None:
    # "Concrete routing: BlockRun only": gemini-3-flash $0.50/M input, claude-opus-4-6 $5/M, deepseek-r1 $0.55/M, claude-sonnet-4-6 $3/M,
    # and gpt-oss-120b is free.
    found = {
        model: candidate("blockrun", model).prices
        for model in ("gemini-3-flash", "claude-opus-4-6", "deepseek-r1", "claude-sonnet-4-6", "nvidia/gpt-oss-120b")
    }
    assert [None if one is None else one.input for one in found.values()] == [0.5, 5.0, 0.55, 3.0, 0.0]
    assert candidate("venice", "deepseek-r1-671b").prices is None
    assert candidate("anthropic", "claude-unheard-of").prices is None
    assert candidate("openai", "gpt-5.4").prices != candidate("openai", "gpt-5.4-pro").prices


def test_every_rating_is_a_class_of_quality() -> None:
    rows = routing_rows()
    assert sorted(rows.quality.values()) == [
        rows.quality[name] for name in ("minimum", "low", "medium", "high", "maximum")
    ]
    assert [rows.class_of(value) for value in (0.0, 0.2, 0.5, 0.6, 1.0)] == [
        "minimum",
        "minimum",
        "low",
        "medium",
        "maximum",
    ]
    assert model_qualities().find("claude-opus-4-6") == "maximum"


def test_features_lean_on_rows_and_not_on_names_in_code() -> None:
    source = Path(bardo.__file__).parent / "planning" / "knowledge.py"
    assert not any(f'"{row.id}"' in source.read_text(encoding="utf-8") for row in builtin().providers)


def test_the_documents_providers_have_their_traits() -> None:
    # The reference document on model routing, "ProviderTraits" and "PaymentMode".
    rows = {name: builtin().provider(name) for name in ("blockrun", "openrouter", "venice", "bankr", "anthropic")}
    traits = {name: row.traits for name, row in rows.items() if row is not None}
    assert [name for name, one in traits.items() if one.private] == ["venice"]
    assert [name for name, one in traits.items() if one.self_funding] == ["bankr"]
    assert {name: one.payment[0] for name, one in traits.items()} == {
        "blockrun": "x402",
        "openrouter": "prepaid",
        "venice": "diem",
        "bankr": "wallet",
        "anthropic": "api_key",
    }
    assert all(one.context_engineering for one in traits.values())


def test_a_table_says_otherwise_of_its_provider_and_routing_listens() -> None:
    text = """
        [[providers]]
        id = "lab"
        preset = "openai-compatible"
        base_url = "https://lab.example/v1"
        private = true
        payment = ["wallet"]
        [[providers]]
        id = "relay"
        preset = "venice"
        base_url = "https://relay.example/v1"
        private = false
        """
    lab, relay = map(provider_of, parse_settings(text).providers)
    assert lab.row.traits == ProviderTraits(private=True, payment=("wallet",))
    assert relay.row.traits == ProviderTraits(payment=("diem", "api_key"))
    assert "privacy" in candidate_of(Target(provider=lab, model="m")).features
    assert "privacy" not in candidate_of(Target(provider=relay, model="llama-3.3-70b")).features
    assert candidate_of(Target(provider=lab, model="m")).payments == ("wallet",)
