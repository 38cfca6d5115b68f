"""A provider makes vectors for layers: in parts, each text once, and this machine where it does not."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.embedding.embeddings import Embeddings
from bardo.context.effects import Embed, TextVectors
from bardo.embedding.static_embedding import wide_embedding
from bardo.services.pipeline.effects import Effects
from bardo.services.pipeline.embeddings import REST_SECONDS, ProviderEmbeddings, perform_embed
from bardo.values.errors import InvalidRequest, UpstreamTimeout
from bardo.values.operations import EmbedRequest
from support.patience import PATIENCE

Vectors = Callable[[tuple[Any, ...]], list[Any]]


class Provider:
    """Answers calls for vectors by a function of the texts, and keeps what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, vectors: Vectors) -> None:
        self.vectors = vectors
        self.asked: list[tuple[Any, ...]] = []
        self.requests: list[EmbedRequest] = []
        self.now = 0.0

    async def embed(self, request: EmbedRequest) -> Any:
        self.requests.append(request)
        self.asked.append(request.inputs)
        return SimpleNamespace(vectors=tuple(self.vectors(request.inputs)))

    def embeddings(self, *, seconds: float = 60.0, masked: bool = False) -> ProviderEmbeddings:
        host: Any = SimpleNamespace(watch=lambda: self.now, embed=self.embed)
        return ProviderEmbeddings(host, "venice/m", Embeddings(), seconds=seconds, masked=masked)


def performed(embeddings: ProviderEmbeddings, *texts: str) -> TextVectors:
    return asyncio.run(embeddings.perform(Embed(texts)))


def raising(problem: Exception) -> Vectors:
    def vectors(texts: tuple[Any, ...]) -> list[Any]:
        raise problem

    return vectors


def test_vectors_have_length_1_in_the_order_of_the_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [[3.0, 4.0 * len(text)] for text in texts])
    made = performed(provider.embeddings(), "b", "a", "b")
    assert provider.asked == [("b", "a")]
    assert [list(one) for one in made.vectors] == [pytest.approx([0.6, 0.8])] * 3
    assert (made.fingerprint, made.tier) == ("venice/m-2", "provider")


def test_many_texts_are_asked_for_in_parts_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [[1.0, float(text)] for text in texts])
    embeddings, texts = provider.embeddings(), [str(number) for number in range(130)]
    assert performed(embeddings, *texts) == performed(embeddings, *texts)
    assert [len(asked) for asked in provider.asked] == [64, 64, 2]


def test_a_text_of_nothing_is_not_sent_and_has_a_vector_of_zeros(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [[1.0, 0.0] for _ in texts])
    made = performed(provider.embeddings(), " \n", "a", "")
    assert provider.asked == [("a",)]
    assert made.vectors == ((0.0, 0.0), (1.0, 0.0), (0.0, 0.0))


@pytest.mark.parametrize(
    "vectors",
    [
        raising(UpstreamTimeout("down", provider="venice")),
        lambda texts: [[1.0], [1.0, 2.0]],
        lambda texts: [[], []],
        lambda texts: [[math.nan, 1.0], [1.0, 2.0]],
        lambda texts: ["!", "!"],
        lambda texts: [[math.inf], [1.0]],
    ],
    ids=["an error", "two lengths", "no numbers", "not a number", "no base64", "infinity"],
)
def test_what_makes_no_vectors_rests_while_this_machine_makes_them(
    monkeypatch: pytest.MonkeyPatch, vectors: Vectors
) -> None:
    provider = Provider(monkeypatch, vectors)
    embeddings, texts = provider.embeddings(), ("a red house", "a blue door")
    expected = tuple(wide_embedding().embed(text) for text in texts)
    assert performed(embeddings, *texts).vectors == expected
    assert performed(embeddings, *texts).fingerprint == wide_embedding().fingerprint
    assert len(provider.asked) == 1
    provider.now = REST_SECONDS
    provider.vectors = lambda texts: [[1.0] for _ in texts]
    assert performed(embeddings, *texts).tier == "provider"


def test_texts_that_are_refused_are_no_reason_to_spare_the_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, raising(InvalidRequest("no such text")))
    embeddings = provider.embeddings()
    assert performed(embeddings, "a").tier == performed(embeddings, "a").tier == "static"
    assert len(provider.asked) == 2


def test_a_provider_that_takes_too_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [])

    async def never(request: EmbedRequest) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(provider, "embed", never)
    assert performed(provider.embeddings(seconds=0.001), "a").tier == "static"


def test_a_model_that_is_another_one_now_makes_all_vectors_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [[1.0, 0.0] for _ in texts])
    embeddings = provider.embeddings()
    performed(embeddings, "a")
    provider.vectors = lambda texts: [[1.0, 0.0, 0.0] for _ in texts]
    made = performed(embeddings, "a", "b")
    assert provider.asked == [("a",), ("b",), ("a", "b")]
    assert (made.fingerprint, [len(one) for one in made.vectors]) == ("venice/m-3", [3, 3])


def test_vectors_of_two_models_are_never_given_together(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [])
    sizes, waiting = [2], list[asyncio.Future[None]]()

    async def embed(request: EmbedRequest) -> Any:
        size = sizes[-1]
        waiting.append(asyncio.get_running_loop().create_future())
        await waiting[-1]
        return SimpleNamespace(vectors=tuple([1.0] * size for _ in request.inputs))

    monkeypatch.setattr(provider, "embed", embed)
    embeddings = provider.embeddings()

    async def answered(place: int) -> None:
        for _ in range(20):
            await asyncio.sleep(0)
        waiting[place].set_result(None)

    async def run() -> list[TextVectors]:
        kept = asyncio.create_task(embeddings.perform(Embed(("a",))))
        await answered(0)
        await kept
        # One begins with a vector of the earlier model, while another call learns of the new one.
        sizes.append(3)
        mixed = asyncio.create_task(embeddings.perform(Embed(("a", "b"))))
        other = asyncio.create_task(embeddings.perform(Embed(("c",))))
        for place in (2, 1, 3):
            await answered(place)
        found = [await other, await mixed]
        return [*found, await embeddings.perform(Embed(("a", "b", "c")))]

    for made in asyncio.run(asyncio.wait_for(run(), PATIENCE)):
        assert ({len(one) for one in made.vectors}, made.fingerprint) == ({3}, "venice/m-3")


def test_a_model_whose_vectors_change_each_time_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [])
    provider.vectors = lambda texts: [[1.0] * len(provider.asked) for _ in texts]
    embeddings = provider.embeddings()
    for texts in (("a",), ("a", "b")):
        performed(embeddings, *texts)
    assert len(provider.asked) == 3


@pytest.mark.parametrize("masked", [True, False])
def test_calls_for_vectors_have_no_layers_but_the_one_that_masks(monkeypatch: pytest.MonkeyPatch, masked: bool) -> None:
    provider = Provider(monkeypatch, lambda texts: [[1.0] for _ in texts])
    performed(provider.embeddings(masked=masked), "a")
    options = provider.requests[0].options
    assert (options.pipeline, options.layers) == ("off", (("privacy", True),) if masked else ())


def test_where_nothing_is_sent_no_provider_is_asked_for_vectors_either(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider(monkeypatch, lambda texts: [[1.0] for _ in texts])
    settings = parse_settings('[inference.embeddings]\nprovider = "venice"\n')
    effects = Effects()
    host: Any = SimpleNamespace(watch=lambda: 0.0, embed=provider.embed)
    parts: Any = SimpleNamespace(
        settings=settings, pipeline=settings.inference.pipeline, host=host, effects=effects, closing=[]
    )
    perform_embed(parts)
    assert asyncio.run(effects.perform(Embed(("a",)), dry=True)).tier == "static"
    assert not provider.asked
    assert asyncio.run(effects.perform(Embed(("a",)))).tier == "provider"
    assert [request.model for request in provider.requests] == ["venice/text-embedding-bge-m3"]
