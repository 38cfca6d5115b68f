"""The benchmark of `affinity` compares policies on simulated pods: the layer reads more from caches than conversations alone do."""

from __future__ import annotations

import pytest
from benchmarks.affinity import SCENARIOS, compared
from benchmarks.affinity_pods import Pod, Session


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_layer_reads_nearly_all_that_can_be_read(name: str) -> None:
    found, best = compared(*SCENARIOS[name], share=0.1)
    assert found["affinity"].hit_rate > found["session"].hit_rate > found["round robin"].hit_rate
    assert found["affinity"].hit_rate > 0.75 * best
    assert found["affinity"].wait(0.95) < found["round robin"].wait(0.95)
    assert found["affinity"].most_used < 0.25


def test_a_pod_reads_what_it_had_and_forgets_the_least_used() -> None:
    pod = Pod(capacity=4)
    talk, other = Session("talk", 1, 128, 1, 256), Session("other", 2, 0, 1, 192)
    assert [pod.read(talk), pod.read(talk)] == [0, 256]
    assert pod.read(other) == 0
    assert pod.read(talk) == 64
