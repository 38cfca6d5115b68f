"""Layers get vectors of texts by one effect: at once by the table for short texts, in a thread for long ones and for models."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.adapters.embedding.embeddings import MOST_WAITING, Embeddings
from bardo.context.effects import Embed, TextVectors
from bardo.context.layer import EffectFailed
from bardo.embedding.static_embedding import wide_embedding
from bardo.values.errors import ConfigError
from support.onnx_model import write_model
from support.own_threads import own_threads

pytestmark = pytest.mark.each_python


async def performed(embeddings: Embeddings, *texts: str) -> TextVectors:
    try:
        return await embeddings.perform(Embed(texts))
    finally:
        await embeddings.close()


@pytest.mark.parametrize("longest", [10, 50_000], ids=["at once", "in a thread"])
def test_the_table_gives_the_same_vectors_wherever_it_works(longest: int) -> None:
    texts = ("a" * longest, "where is my order?", "")
    found = asyncio.run(performed(Embeddings(), *texts))
    table = wide_embedding()
    assert found.vectors == tuple(table.embed(text) for text in texts)
    assert (found.tier, found.fingerprint, table.dimensions) == ("static", table.fingerprint, 384)


def test_short_texts_need_no_thread() -> None:
    before = own_threads()
    embeddings = Embeddings()
    asyncio.run(embeddings.perform(Embed(("hello",))))
    assert own_threads() <= before


def test_a_model_of_the_operator_makes_the_vectors(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("tokenizers", reason="the extra onnx is not installed")
    found = asyncio.run(performed(Embeddings(str(write_model(tmp_path))), "write python", "king"))
    assert found.tier == "onnx"
    assert found.fingerprint.startswith("onnx-")
    assert [len(vector) for vector in found.vectors] == [3, 3]


def test_where_many_calls_wait_further_ones_do_without_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = threading.Event()
    embeddings = Embeddings()
    made = embeddings.embedded
    monkeypatch.setattr(embeddings, "embedded", lambda *given: opened.wait() and made(*given))

    async def overloaded() -> list[TextVectors | BaseException]:
        long = Embed(("word " * 1_000,))
        calls = [asyncio.create_task(embeddings.perform(long)) for _ in range(MOST_WAITING)]
        await asyncio.sleep(0)
        with pytest.raises(EffectFailed):
            await embeddings.perform(long)
        opened.set()
        found = await asyncio.gather(*calls)
        await embeddings.perform(long)
        await embeddings.close()
        return list(found)

    assert len(asyncio.run(overloaded())) == MOST_WAITING


def test_a_folder_without_a_model_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 2: embedding: .* has no model.onnx") as caught:
        parse_settings(f'[inference.pipeline]\nembedding = "{tmp_path}"\n')
    assert "model.onnx" in caught.value.hint
