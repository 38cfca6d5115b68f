"""Batches in Anthropic's form, as its own library makes them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anthropic
import pytest

from support.any_model import Simulator
from support.batches import batch_house, wait_for
from surfaces.gateway.test_batches import MODELS


def asked(custom_id: str, model: str, **fields: Any) -> Any:
    params = {"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}], **fields}
    return {"custom_id": custom_id, "params": params}


@pytest.mark.parametrize("provider", MODELS)
def test_every_batch_api_answers_anthropic_clients(provider: str, tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator(provider)]) as house:
        client = anthropic.Anthropic(base_url=house.address, api_key="sk-one", max_retries=0)
        items = [asked(f"item-{n}", MODELS[provider]) for n in range(4)]
        batch = client.messages.batches.create(requests=[*items, asked("bad", MODELS[provider], stream=True)])
        assert batch.processing_status == "in_progress"
        assert batch.request_counts.processing == 5
        ended = wait_for(
            lambda: client.messages.batches.retrieve(batch.id), lambda one: one.processing_status == "ended"
        )
        assert (ended.request_counts.succeeded, ended.request_counts.errored) == (4, 1)
        results = {one.custom_id: one.result for one in client.messages.batches.results(batch.id)}
        assert sorted(results) == ["bad", *[f"item-{n}" for n in range(4)]]
        for n in range(4):
            result = results[f"item-{n}"]
            assert result.type == "succeeded"
            assert any(block.type == "text" and block.text for block in result.message.content)
            assert result.message.model == MODELS[provider]
        failed = results["bad"]
        assert failed.type == "errored"
        assert failed.error.error.type == "invalid_request_error"
        assert [one.id for one in client.messages.batches.list(limit=1)] == [batch.id]
        assert client.messages.batches.delete(batch.id).type == "message_batch_deleted"
        with pytest.raises(anthropic.NotFoundError):
            client.messages.batches.retrieve(batch.id)


def test_what_is_no_batch_is_refused_in_anthropics_words(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("anthropic"), Simulator("deepseek")]) as house:
        client = anthropic.Anthropic(base_url=house.address, api_key="sk-one", max_retries=0)
        good = asked("a", MODELS["anthropic"])
        for requests in ([good, good], [], [asked("a b", "m")], [{"custom_id": "a"}], [{**good, "more": 1}]):
            with pytest.raises(anthropic.BadRequestError) as refused:
                client.messages.batches.create(requests=requests)  # type: ignore[arg-type]
            assert refused.value.body["error"]["type"] == "invalid_request_error"  # type: ignore[index]
        with pytest.raises(anthropic.BadRequestError, match="anthropic can"):
            client.messages.batches.create(requests=[asked("a", "deepseek/deepseek-chat")])
        with pytest.raises(anthropic.NotFoundError):
            client.messages.batches.retrieve("msgbatch_nothing")


def test_a_canceled_batch_ends_with_what_was_done(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("anthropic")]) as house:
        house.batches("anthropic").holds = True
        client = anthropic.Anthropic(base_url=house.address, api_key="sk-one", max_retries=0)
        batch = client.messages.batches.create(requests=[asked(f"i{n}", MODELS["anthropic"]) for n in range(4)])
        wait_for(lambda: len(house.batches("anthropic").jobs), bool)
        assert client.messages.batches.cancel(batch.id).processing_status == "canceling"
        ended = wait_for(
            lambda: client.messages.batches.retrieve(batch.id), lambda one: one.processing_status == "ended"
        )
        assert (ended.request_counts.succeeded, ended.request_counts.canceled) == (2, 2)
        kinds = [one.result.type for one in client.messages.batches.results(batch.id)]
        assert sorted(kinds) == ["canceled", "canceled", "succeeded", "succeeded"]
