"""Batches in OpenAI's form, as its own library makes them, over every simulated batch API."""

from __future__ import annotations

import json
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import openai
import pytest

from support.any_model import Simulator
from support.batches import batch_house, chat_line, jsonl, wait_for
from support.gateway import SECRET
from support.patience import PATIENCE

MODELS = {
    "openai_chat": "openai_chat/gpt-5-mini",
    "groq": "groq/openai/gpt-oss-120b",
    "anthropic": "anthropic/claude-sonnet-5",
    "gemini": "gemini/gemini-2.5-flash",
    "mistral": "mistral/mistral-large-latest",
}


def run_batch(
    client: openai.OpenAI, lines: list[dict[str, Any]], endpoint: Any = "/v1/chat/completions"
) -> openai.types.Batch:
    """Upload lines, make a batch of them, and return it at its end."""
    file = client.files.create(file=("requests.jsonl", jsonl(lines)), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint=endpoint, completion_window="24h")
    assert batch.status == "validating"
    return wait_for(
        lambda: client.batches.retrieve(batch.id),
        lambda one: one.status in ("completed", "failed", "expired", "cancelled"),
    )


def results_of(client: openai.OpenAI, file_id: str | None) -> dict[str, Any]:
    """Return the lines of a file by their custom ids."""
    assert file_id
    lines = [json.loads(line) for line in client.files.content(file_id).text.splitlines()]
    found = {line["custom_id"]: line for line in lines}
    assert len(found) == len(lines), "each item has one result"
    return found


@pytest.mark.parametrize("provider", MODELS)
def test_every_batch_api_answers_openai_clients(provider: str, tmp_path: Path) -> None:
    simulator = Simulator(provider)
    with batch_house(tmp_path, [simulator]) as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        batch = run_batch(client, [chat_line(f"item {n}", MODELS[provider], f"question {n}") for n in range(5)])
        assert batch.status == "completed", batch
        assert batch.request_counts is not None
        counts = (batch.request_counts.total, batch.request_counts.completed, batch.request_counts.failed)
        assert counts == (5, 5, 0), results_of(client, batch.error_file_id)
        results = results_of(client, batch.output_file_id)
        assert sorted(results) == [f"item {n}" for n in range(5)]
        for n in range(5):
            response = results[f"item {n}"]["response"]
            assert response["status_code"] == 200
            completion = openai.types.chat.ChatCompletion.construct(**response["body"])
            assert completion.choices[0].message.content
            assert completion.model == MODELS[provider]
            told = results[f"item {n}"]["bardo"]
            assert told["provider"] == provider
            assert told["request_id"] == response["request_id"]
        rows = house.rows()
        assert len(rows) == 5
        assert all("batch" in row.tags and row.outcome == "ok" and row.provider == provider for row in rows)
        assert len(house.batches(provider).jobs) == 1


def test_a_batch_of_responses_embeddings_and_completions(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("openai_chat")]) as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        vectors = {"model": "openai_chat/text-embedding-3-small", "input": "words"}
        line = {"custom_id": "one", "method": "POST", "url": "/v1/embeddings", "body": vectors}
        batch = run_batch(client, [line], "/v1/embeddings")
        made = results_of(client, batch.output_file_id)["one"]["response"]["body"]
        assert made["object"] == "list"
        assert len(made["data"][0]["embedding"]) > 1
        for endpoint, body, kind in (
            ("/v1/responses", {"input": "hi"}, "response"),
            ("/v1/completions", {"prompt": "hi"}, "text_completion"),
        ):
            line = {
                "custom_id": "one",
                "method": "POST",
                "url": endpoint,
                "body": {"model": MODELS["openai_chat"], **body},
            }
            batch = run_batch(client, [line], endpoint)
            assert results_of(client, batch.output_file_id)["one"]["response"]["body"]["object"] == kind
        assert {row.operation for row in house.rows()} == {"embed", "generate", "complete"}


def test_items_that_fail_stand_in_the_error_file(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("openai_chat")]) as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        lines = [
            chat_line("good", MODELS["openai_chat"]),
            chat_line("streamed", MODELS["openai_chat"], stream=True),
            chat_line("unknown", "nobody/model-of-nobody"),
            chat_line("failing", f"{MODELS['openai_chat']}+fault:status=429"),
        ]
        batch = run_batch(client, lines)
        assert batch.request_counts is not None
        assert (batch.request_counts.completed, batch.request_counts.failed) == (1, 3)
        errors = results_of(client, batch.error_file_id)
        statuses = {name: line["response"]["status_code"] for name, line in errors.items()}
        assert statuses == {"streamed": 400, "unknown": 404, "failing": 429}
        assert all(line["response"]["body"]["error"]["message"] for line in errors.values())
        assert len(house.rows()) == 4


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ([chat_line("a", "m"), chat_line("a", "m")], "duplicate_custom_id"),
        ([{**chat_line("a", "m"), "url": "/v1/embeddings"}], "mismatched_url"),
        ([{**chat_line("a", "m"), "method": "GET"}], "invalid_method"),
        ([{**chat_line("a", "m"), "custom_id": None}], "missing_required_parameter"),
        ([{**chat_line("a", "m"), "body": []}], "invalid_request"),
    ],
    ids=lambda given: given if isinstance(given, str) else "lines",
)
def test_a_file_with_a_wrong_line_fails_with_its_number(lines: list[dict[str, Any]], code: str, tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("openai_chat")]) as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        batch = run_batch(client, [chat_line("first", MODELS["openai_chat"]), *lines])
        assert batch.status == "failed"
        assert batch.errors is not None
        assert batch.errors.data is not None
        assert [one.code for one in batch.errors.data] == [code]
        assert batch.errors.data[0].line == 1 + len(lines)
        assert not house.batches("openai_chat").jobs


def test_other_keys_see_no_files_and_no_batches(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("openai_chat")]) as house:
        mine = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        other = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-two", max_retries=0)
        batch = run_batch(mine, [chat_line("one", MODELS["openai_chat"])])
        assert batch.output_file_id
        for look in (
            lambda: other.batches.retrieve(batch.id),
            lambda: other.batches.cancel(batch.id),
            lambda: other.files.content(batch.output_file_id or ""),
            lambda: other.files.delete(batch.input_file_id),
        ):
            with pytest.raises(openai.NotFoundError):
                look()
        with pytest.raises(openai.BadRequestError):
            other.batches.create(
                input_file_id=batch.input_file_id, endpoint="/v1/chat/completions", completion_window="24h"
            )
        assert list(other.files.list()) == []
        assert list(other.batches.list()) == []
        assert {file.purpose for file in mine.files.list()} == {"batch", "batch_output"}
        mine.files.delete(batch.input_file_id)
        with pytest.raises(openai.NotFoundError):
            mine.files.retrieve(batch.input_file_id)


def test_lists_come_in_pages(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("openai_chat")]) as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        made = [run_batch(client, [chat_line("one", MODELS["openai_chat"])]).id for _ in range(5)]
        assert [one.id for one in client.batches.list(limit=2)] == made[::-1]
        names = [one.id for one in client.files.list(purpose="batch", limit=2, order="asc")]
        assert len(names) == 5


def test_a_batch_that_is_canceled_keeps_what_was_done(tmp_path: Path) -> None:
    simulator = Simulator("openai_chat")
    with batch_house(tmp_path, [simulator]) as house:
        house.batches("openai_chat").holds = True
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        file = client.files.create(
            file=("r.jsonl", jsonl([chat_line(f"i{n}", MODELS["openai_chat"]) for n in range(4)])), purpose="batch"
        )
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"a": "b"}
        )
        wait_for(lambda: len(house.batches("openai_chat").jobs), bool)
        assert client.batches.cancel(batch.id).status == "cancelling"
        ended = wait_for(lambda: client.batches.retrieve(batch.id), lambda one: one.status == "cancelled")
        assert ended.metadata == {"a": "b"}
        assert len(results_of(client, ended.output_file_id)) == 2
        codes = {line["error"]["code"] for line in results_of(client, ended.error_file_id).values()}
        assert codes == {"batch_cancelled"}
        with pytest.raises(openai.BadRequestError):
            client.batches.cancel(batch.id)


def test_items_that_expire_or_get_no_result_are_told(tmp_path: Path) -> None:
    simulator = Simulator("openai_chat")
    with batch_house(tmp_path, [simulator]) as house:
        house.batches("openai_chat").expired = {1}
        house.batches("openai_chat").lost = {2}
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        batch = run_batch(client, [chat_line(f"i{n}", MODELS["openai_chat"]) for n in range(3)])
        assert batch.status == "expired"
        assert list(results_of(client, batch.output_file_id)) == ["i0"]
        errors = results_of(client, batch.error_file_id)
        assert errors["i1"]["error"]["code"] == "batch_expired"
        assert errors["i2"]["error"]["code"] in ("batch_expired", "batch_result_missing")


def test_gemini_results_without_our_ids_are_told_by_their_order(tmp_path: Path) -> None:
    simulator = Simulator("gemini")
    with batch_house(tmp_path, [simulator]) as house:
        house.batches("gemini").keeps_metadata = False  # type: ignore[attr-defined]
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        batch = run_batch(client, [chat_line(f"i{n}", MODELS["gemini"], f"say {n}") for n in range(3)])
        assert batch.request_counts is not None
        assert batch.request_counts.completed == 3


def test_a_provider_without_a_batch_api_is_refused_with_those_that_have_one(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("deepseek"), Simulator("groq")]) as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        with pytest.raises(openai.BadRequestError, match="groq can") as refused:
            run_batch(client, [chat_line("one", "deepseek/deepseek-chat")])
        assert "run_without_api" in str(refused.value)


def test_a_provider_without_a_batch_api_is_asked_one_by_one_where_that_is_allowed(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("deepseek")], batches="run_without_api = true") as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        lines = [chat_line(f"i{n}", "deepseek/deepseek-chat") for n in range(5)]
        batch = run_batch(client, [*lines, chat_line("bad", "deepseek/deepseek-chat+fault:status=400")])
        assert sorted(results_of(client, batch.output_file_id)) == [f"i{n}" for n in range(5)]
        assert list(results_of(client, batch.error_file_id)) == ["bad"]
        assert wait_for(lambda: len(house.rows()), lambda count: count == 6)
        assert {row.session for row in house.rows()} == {f"batch {batch.id}"}


def test_uploads_are_bounded_and_only_for_batches(tmp_path: Path) -> None:
    with batch_house(tmp_path, [Simulator("openai_chat")], batches="max_file_bytes = 300_000") as house:
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        with pytest.raises(openai.APIStatusError) as refused:
            client.files.create(file=("r.jsonl", b"x" * 400_000), purpose="batch")
        assert refused.value.status_code == 413
        with pytest.raises(openai.BadRequestError):
            client.files.create(file=("r.jsonl", b"{}"), purpose="fine-tune")
        assert list(client.files.list()) == []
        content = b'{"a": 1}\n' * 30_000
        file = client.files.create(file=("r.jsonl", content), purpose="batch")
        assert file.bytes == len(content)
        assert client.files.content(file.id).content == content


def test_uploads_at_once_keep_no_more_of_a_key_than_it_may(tmp_path: Path) -> None:
    limit = "max_bytes_per_tenant = 500_000"
    with batch_house(tmp_path, [Simulator("openai_chat")], batches=limit) as house, ExitStack() as stack:
        host, port = house.address.removeprefix("http://").split(":")
        content = b"x" * 300_000
        uploads = []
        for _ in range(2):
            upload = HTTPConnection(host, int(port), timeout=PATIENCE)
            stack.callback(upload.close)
            parts = [
                b'--cut\r\ncontent-disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
                b'--cut\r\ncontent-disposition: form-data; name="file"; filename="r.jsonl"\r\n\r\n',
                content,
                b"\r\n--cut--\r\n",
            ]
            upload.putrequest("POST", "/v1/files")
            upload.putheader("authorization", "Bearer sk-one")
            upload.putheader("content-type", "multipart/form-data; boundary=cut")
            upload.putheader("content-length", str(sum(map(len, parts))))
            upload.endheaders()
            upload.send(parts[0])
            uploads.append((upload, parts))
        # Both have begun, and nothing of either is kept.
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        assert list(client.files.list()) == []
        answers = []
        for upload, parts in uploads:
            upload.send(parts[1] + parts[2])
        for upload, _ in uploads:
            answer = upload.getresponse()
            answers.append((answer.status, json.loads(answer.read())))
        assert sorted(status for status, _ in answers) == [200, 413]
        assert [file.bytes for file in client.files.list()] == [len(content)]
        refused = next(body for status, body in answers if status == 413)
        assert "over 500000 bytes together" in refused["error"]["message"]


def test_a_provider_that_quotes_its_key_in_a_refusal_gives_it_away_to_nobody(tmp_path: Path) -> None:
    simulator = Simulator("openai_chat")
    with batch_house(tmp_path, [simulator]) as house:
        house.batches("openai_chat").refused = f"the key {SECRET} may make no batches"
        client = openai.OpenAI(base_url=f"{house.address}/v1", api_key="sk-one", max_retries=0)
        batch = run_batch(client, [chat_line("one", MODELS["openai_chat"])])
        errors = client.files.content(batch.error_file_id or "").text
        assert "may make no batches" in errors
        assert SECRET not in errors
        assert not any(SECRET in str(row) for row in house.rows())
