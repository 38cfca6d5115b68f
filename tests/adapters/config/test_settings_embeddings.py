"""`[inference.embeddings]` of bardo.toml: who makes vectors of texts (003, "Profile configuration")."""

from __future__ import annotations

import pytest

from bardo.adapters.config.settings import may_mask, model_of_vectors, parse_settings
from bardo.values.errors import ConfigError

TABLE = "[inference.embeddings]\n"
OTHERS = (
    '[[providers]]\nid = "venice"\n[[providers]]\nid = "anthropic"\n[[providers]]\nid = "mine"\npreset = "openai"\n'
)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("", None),
        # The documents' own table, word by word.
        ('provider = "local"   # "local" or "venice"\nvenice_model = "text-embedding-bge-m3"\n', None),
        ('provider = "venice"\n', "venice/text-embedding-bge-m3"),
        ('provider = "venice"\nvenice_model = "text-embedding-other"\n', "venice/text-embedding-other"),
        ('provider = "venice"\nmodel = "text-embedding-third"\n', "venice/text-embedding-third"),
        ('provider = "openai"\nmodel = "text-embedding-3-small"\n', "openai/text-embedding-3-small"),
    ],
)
def test_the_table_names_who_makes_vectors(text: str, model: str | None) -> None:
    assert model_of_vectors(parse_settings(TABLE + text)) == model


def test_a_provider_of_the_file_is_named_by_its_own_id() -> None:
    text = f'{TABLE}provider = "mine"\nmodel = "text-embedding-3-small"\n{OTHERS}'
    assert model_of_vectors(parse_settings(text)) == "mine/text-embedding-3-small"


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ('provider = "venise"\n', "line 2: no provider is called 'venise'", "did you mean 'venice'?"),
        (f'provider = "openai"\nmodel = "text-embedding-3-small"\n{OTHERS}', "no provider is called 'openai'", "[[providers]]"),
        ('provider = "anthropic"\nmodel = "m"\n', "line 2: anthropic makes no vectors", 'provider = "venice"'),
        ('provider = "openai"\n', "openai needs a model that makes vectors", "text-embedding-*"),
        ('provider = "openai"\nmodel = "gpt-5"\n', "line 3: openai makes no vectors with 'gpt-5'", "text-embedding-*"),
        ('provider = "venice"\nvenice_model = ""\n', "venice needs a venice_model", "model ="),
        ('model = "text-embedding-bge-m3"\n', 'line 2: provider = "local" asks no model', 'provider = "venice"'),
        ('provider = "venice"\n[inference.pipeline]\nembedding = "/"\n', "a model of this machine", "leave one of them out"),
        ('provider = "venice"\nseconds = 0\n', "seconds", ""),
        ('provider = "venice"\nvenice_modell = "x"\n', "venice_modell", "venice_model"),
    ],
)  # fmt: skip
def test_what_makes_no_vectors_is_refused_with_its_line(text: str, said: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(TABLE + text)
    assert said in str(caught.value)
    assert hint in f"{caught.value} {caught.value.hint}"


@pytest.mark.parametrize(
    ("text", "masks"),
    [
        ("", False),
        ('[inference.pipeline]\nprofile = "minimal"\n', False),
        ('[inference.pipeline]\nprofile = "own"\nprofiles.own.layers = ["tools", "privacy"]\n', True),
        ('[inference.pipeline]\nprofiles.own.layers = ["tools", "privacy"]\n', False),
        ('[gateway]\nclient_pipelines = ["*"]\n[inference.pipeline]\nprofiles.own.layers = ["privacy"]\n', True),
        ('[gateway]\nclient_pipelines = ["minimal"]\n[inference.pipeline]\nprofiles.own.layers = ["privacy"]\n', False),
    ],
)
def test_texts_are_masked_where_a_call_may_be(text: str, masks: bool) -> None:
    assert may_mask(parse_settings(text)) is masks
