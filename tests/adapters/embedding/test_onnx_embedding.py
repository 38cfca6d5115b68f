"""Learned routing by a model in ONNX that the user has: what it gives, what is refused, and what is fitted and chosen with it."""

from __future__ import annotations

import asyncio
import math
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from bardo.adapters.config.settings import Settings, parse_settings
from bardo.adapters.embedding.onnx_embedding import OnnxEmbedding
from bardo.embedding.static_embedding import shipped_embedding
from bardo.routing.learned.clusters import Embedding, fit_clusters
from bardo.routing.learned.router import LearnedState
from bardo.services.facts.learned_routing import LearnedRouting, embedding_of, load_state, open_router, store_state
from bardo.surfaces.cli.routing import fit_outcomes
from bardo.values.blocks import TextBlock
from bardo.values.errors import ConfigError
from bardo.values.request import Message, Request
from support.onnx_model import write_model

CODE = [f"write python code {n}" for n in range(40)]
KINGS = [f"king of france, history {n}" for n in range(40)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    pytest.importorskip("onnxruntime", reason="the extra onnx is not installed")
    pytest.importorskip("tokenizers", reason="the extra onnx is not installed")
    return tmp_path / "model"


def settings(folder: Path | str) -> Settings:
    file = Path(folder).parent / "learned.json"
    return parse_settings(f'[routing]\nembedding = "{folder}"\n[routing.learned]\nfile = "{file}"\n')


def test_a_text_is_the_mean_of_the_vectors_of_its_tokens(folder: Path) -> None:
    embedding = OnnxEmbedding(write_model(folder))
    code, more, king = (embedding.embed(text) for text in ("python code", "Write code", "king of France"))
    assert embedding.dimensions == 3
    assert all(math.isclose(sum(value * value for value in one), 1, rel_tol=1e-5) for one in (code, more, king))
    assert sum(map(float.__mul__, code, more)) > 0.9 > 0.3 > sum(map(float.__mul__, code, king))


def test_a_text_without_tokens_has_no_direction(folder: Path) -> None:
    assert OnnxEmbedding(write_model(folder)).embed("") == (0.0, 0.0, 0.0)


def test_of_a_long_text_the_tokens_count_that_the_tokenizer_allows(folder: Path) -> None:
    embedding = OnnxEmbedding(write_model(folder, longest=2))
    assert embedding.embed("write python king king king") == embedding.embed("write python")


def test_its_name_changes_with_its_files(folder: Path) -> None:
    first, same, other = (OnnxEmbedding(write_model(folder, longest=n)).fingerprint for n in (None, None, 9))
    assert first == same != other


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (lambda folder: None, "there is no folder"),
    "no model": (lambda folder: (write_model(folder) / "model.onnx").unlink(), "has no model.onnx"),
    "no tokenizer": (lambda folder: (write_model(folder) / "tokenizer.json").unlink(), "has no tokenizer.json"),
    "a file that is no model": (
        lambda folder: (write_model(folder) / "model.onnx").write_bytes(b"GIF89a"),
        "no model that can be run",
    ),
    "a file that is no tokenizer": (
        lambda folder: (write_model(folder) / "tokenizer.json").write_text("{}"),
        "is no tokenizer",
    ),
    "an output without vectors": (lambda folder: write_model(folder, "Shape"), "an output of shape (2,)"),
    "a vector as long as the text": (lambda folder: write_model(folder, "Identity"), "components"),
    "a model of something else": (lambda folder: write_model(folder, token="pixels"), "takes the input 'pixels'"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_cannot_embed_texts_is_refused(name: str, folder: Path) -> None:
    make, message = WRONG[name]
    make(folder)
    with pytest.raises(ConfigError) as caught:
        embedding_of(settings(folder))
    assert message in str(caught.value)
    assert caught.value.hint


def test_without_the_extra_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ConfigError) as caught:
        embedding_of(settings(write_model(tmp_path / "model")))
    assert "'.[onnx]'" in (caught.value.hint or "")


def test_a_state_of_another_embedding_is_refused(folder: Path) -> None:
    of = settings(write_model(folder))
    store_state(
        LearnedState(clusters=fit_clusters(CODE, shipped_embedding(), Random(0))), Path(of.routing.learned.file)
    )
    with pytest.raises(ConfigError, match="another embedding") as caught:
        open_router(of)
    assert "bardo routing fit" in (caught.value.hint or "")


def test_a_model_to_which_nothing_was_fitted_is_refused(folder: Path) -> None:
    with pytest.raises(ConfigError, match="no clusters were fitted") as caught:
        open_router(settings(write_model(folder)))
    assert "bardo routing fit" in (caught.value.hint or "")


def test_outcomes_that_were_fitted_with_the_model_decide_by_it(folder: Path, tmp_path: Path) -> None:
    of = settings(write_model(folder))
    lines = [f'{{"prompt": "{p}", "model": "a/coder", "success": {int(p in CODE)}}}' for p in CODE + KINGS]
    lines += [f'{{"prompt": "{p}", "model": "b/scholar", "success": {int(p in KINGS)}}}' for p in CODE + KINGS]
    outcomes = tmp_path / "outcomes.jsonl"
    outcomes.write_text("\n".join(lines))
    embedding = embedding_of(of)
    store_state(fit_outcomes(outcomes, embedding), Path(of.routing.learned.file))
    assert load_state(Path(of.routing.learned.file), embedding) is not None
    learned = LearnedRouting.of(of)
    for text, better in (("write some python", "a/coder"), ("history of the king", "b/scholar")):
        request = Request(dialect="openai_chat", model="", messages=(Message("user", (TextBlock(text),)),))
        call = asyncio.run(learned.call(request, "r", 0, ""))
        assert call.shares
        pending = call.router.choose("", {"a/coder": None, "b/scholar": None}, request_id="r", at=0, shares=call.shares)
        estimates = pending.choice.estimates
        assert max(estimates, key=lambda name: estimates[name].success) == better
    learned.close()


def test_a_slow_embedding_runs_beside_the_event_loop(tmp_path: Path) -> None:
    class Slow:
        fingerprint, slow = shipped_embedding().fingerprint, True

        def embed(self, text: str) -> tuple[float, ...]:
            threads.append(threading.current_thread())
            return shipped_embedding().embed(text)

    threads: list[threading.Thread] = []
    slow: Embedding = Slow()
    learned = LearnedRouting(type(open_router(parse_settings("")))(slow), tmp_path / "learned.json")
    request = Request(dialect="openai_chat", model="", messages=(Message("user", (TextBlock("Hello"),)),))
    call = asyncio.run(learned.call(request, "r", 0, ""))
    learned.close()
    assert call.shares == open_router(parse_settings("")).shares("Hello")
    assert threads
    assert threading.current_thread() not in threads
