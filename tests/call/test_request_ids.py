"""Ids of calls: unlike each other, and of one beginning where they are of one second."""

from __future__ import annotations

import re

from bardo.call.call import new_request_id


def test_ids_are_unlike_each_other_and_of_one_length() -> None:
    ids = {new_request_id(1_800_000_000.5) for _ in range(1000)}
    assert len(ids) == 1000
    assert all(re.fullmatch(r"req_[0-9a-f]{24}", one) for one in ids)


def test_calls_of_one_second_have_ids_that_stand_side_by_side() -> None:
    seconds = range(1_800_000_000, 1_800_000_100)
    beginnings = [{new_request_id(second + part / 4)[:8] for part in range(4)} for second in seconds]
    assert all(len(found) == 1 for found in beginnings)
    assert len(set.union(*beginnings)) == len(seconds)
