"""Facts about models are rows of the catalog: no string in code names a model or a family of models, outside docstrings.

Simulators play certain providers, and examples in help texts name models that people know.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

import pytest

from bardo.dialects import DIALECTS
from support.offenders import offenders
from support.source import trees

FAMILIES = (
    "claude", "opus", "sonnet", "haiku", "gpt", "chatgpt", "o1", "o3", "o4", "gemini", "gemma", "qwen", "qwq", "llama", "nova", "titan",
    "deepseek", "mistral", "mixtral", "magistral", "codestral", "ministral", "devstral", "grok", "kimi", "glm", "minimax", "nemotron",
    "granite", "phi", "command-a", "command-r", "hunyuan", "ernie", "text-embedding", "exaone", "olmo", "falcon", "jamba", "sonar",
    "smollm",
)  # fmt: skip
"""Words that ids of models begin with, behind the vendor's name."""
_FAMILY = "|".join(sorted(FAMILIES, key=len, reverse=True))
IDS = re.compile(
    # With a version or a variant behind it (`claude-3`, `gpt-oss-*`, `qwen3`), or with a vendor or a wildcard before it.
    rf"(?<![a-z0-9])(?:(?:{_FAMILY})(?:[-.:@]?[a-z]?[0-9*\[]|-[a-z0-9]+[-.0-9*])|(?:\*|[a-z]+[./])(?:{_FAMILY})(?![a-z_]))"
)
ALONE = re.compile(rf"(?:{_FAMILY})[-*]?")
MAY_NAME: Mapping[str, str] = {
    "bardo.catalog.rows": "Titan's shape of a request for vectors, which a row of an endpoint names",
    "bardo.dialects.anthropic_messages.wire": "a value of the field `format` of reasoning details",
    "bardo.dialects.bedrock_invoke": "Titan's shape of a request for vectors, and a value of the field `format` of reasoning details",
    "bardo.dialects.gemini.wire": "a value of the field `format` of reasoning details",
    "bardo.dialects.openai_chat.wire": "values of the field `format` of reasoning details",
    "bardo.adapters.config.pipeline": "the default of a setting, as the documents write it",
    "bardo.surfaces.cli.ask": "an example in a help text",
    "bardo.surfaces.cli.catalog": "examples in help texts",
    "bardo.surfaces.cli.explain": "examples in help texts",
    "bardo.surfaces.cli.probe": "an example in a help text",
    "bardo.surfaces.cli.serve": "the example that a gateway over simulated providers prints",
    "bardo.tools.grammar": "how values are quoted in a text format, which a row of the format names",
    "bardo.tools.jsontext": "how values are quoted in a text format, which a row of the format names",
    "bardo.tools.scanner": "how values are quoted in a text format, which a row of the format names",
}
"""The modules that name a model, each with the reason."""
# Names of dialects and of providers' rows, which have tests of their own.
NOT_MODELS = frozenset({*DIALECTS, "mistral"})


def literals(tree: ast.Module) -> Iterator[str]:
    """Yield the strings of a module, the fixed parts of f-strings among them, that do not stand alone as docstrings do."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            yield node.value


def names_a_model(text: str) -> bool:
    lower = text.lower()
    if lower in NOT_MODELS:
        return False
    return IDS.search(lower) is not None or ALONE.fullmatch(lower) is not None


def models_named_in(module: str) -> list[str]:
    return [text for text in literals(trees()[module]) if names_a_model(text)]


def test_no_module_names_a_model() -> None:
    found = {module: models_named_in(module) for module in trees() if not module.startswith("bardo.simulators")}
    offenders(
        [f"{module}: {', '.join(models)}" for module, models in found.items() if models and module not in MAY_NAME],
        "modules name models: make each fact a row of the catalog, or give the reason in MAY_NAME",
    )
    offenders(
        [module for module in MAY_NAME if not found.get(module)],
        "modules of MAY_NAME name no model: take them out of it",
    )


@pytest.mark.parametrize(
    "text",
    [
        "claude-3-*", "claude-", "claude-opus-4", "*anthropic.claude*", "*amazon.nova-2*", "*minimax.*", "gpt-4o", "gpt-oss-120b", "o3*",
        "openai/gpt-5", "qwen3:8b", "Qwen/Qwen3-32B", "*qwen*", "*meta.llama*", "llama", "deepseek.r1", "Gemini-3-pro",
        "model is gpt-4.1 here", "*mistral.mixtral*",
    ],
)  # fmt: skip
def test_an_id_or_glob_of_models_is_found(text: str) -> None:
    assert names_a_model(text)


@pytest.mark.parametrize("text", ["gemini", "llama-server", "Mistral", "sampling.seed", "step", "tool_use", "nowhere"])
def test_other_words_are_no_models(text: str) -> None:
    assert not names_a_model(text)
