"""What providers tell of their batch jobs is read without trusting it: no number and no time ends the reading."""

from __future__ import annotations

import json
from typing import Any

import pytest

from bardo.dialects.batches import batch_form

NO_NUMBERS: list[Any] = ["²", "9" * 5000, "-1", "1e3", True, None, [], {}, 1.5]
NO_TIMES: list[Any] = ["0001-01-01T00:00:00+23:59", "0001-01-01", "9999-12-31T23:59:59-23:59", "soon", "", 7]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_what_is_no_number_of_requests_is_not_known(value: Any) -> None:
    metadata = {"state": "BATCH_STATE_RUNNING", "batchStats": {"requestCount": value}}
    job = batch_form("inline_operations").decode_job(json.dumps({"name": "batches/1", "metadata": metadata}).encode())
    assert job.count is None


@pytest.mark.parametrize("value", ["3", 3])
def test_a_number_may_be_a_text(value: Any) -> None:
    metadata = {"state": "BATCH_STATE_RUNNING", "batchStats": {"requestCount": value}}
    job = batch_form("inline_operations").decode_job(json.dumps({"name": "batches/1", "metadata": metadata}).encode())
    assert job.count == 3


@pytest.mark.parametrize("value", NO_TIMES)
@pytest.mark.parametrize("form", ["inline_operations", "message_batches"])
def test_no_time_breaks_the_reading_of_a_job(form: Any, value: Any) -> None:
    fields = {
        "name": "batches/1",
        "id": "msgbatch_1",
        "processing_status": "in_progress",
        "created_at": value,
        "metadata": {"createTime": value},
    }
    assert batch_form(form).decode_job(json.dumps(fields).encode()).state == "running"
