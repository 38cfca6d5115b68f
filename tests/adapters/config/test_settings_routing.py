"""`[routing]` and `[workloads.NAME]`: what is read of them, and how each mistake is answered."""

from __future__ import annotations

import pytest

from bardo.adapters.config.settings import parse_settings
from bardo.routing.workloads import WorkloadRow
from bardo.values.errors import ConfigError
from bardo.values.profile import InferenceProfile


def test_rows_are_read() -> None:
    settings = parse_settings(
        """
        [routing]
        strategy = "score"
        private_providers = ["lab"]
        [workloads.review]
        model = ["lab/a", "lab/b"]
        require = ["vision"]
        quality = "high"
        cost_sensitivity = 0
        profile = { temperature = 0.2, reasoning_effort = "none" }
        [aliases]
        "claude-haiku-*" = "bardo/review"
        [[providers]]
        id = "lab"
        preset = "vllm"
        base_url = "http://127.0.0.1:1/v1"
        """
    )
    assert (settings.routing.strategy, settings.routing.private_providers) == ("score", ("lab",))
    assert settings.workloads["review"] == WorkloadRow(
        model="lab/a",
        fallbacks=("lab/b",),
        require=("vision",),
        quality="high",
        cost_sensitivity=0.0,
        profile=InferenceProfile(temperature=0.2, reasoning_effort="none"),
    )


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[workloads.a]\nmodel = "b"\n[workloads.b]\nmodel = "bardo/a"', 2, "leads to itself: a -> b -> a"),
        ('[workloads.a]\nmodel = "bardo/chep"', 2, "did you mean bardo/cheap?"),
        ("[workloads.a]\ncost_sensitivity = nan", 2, "cost_sensitivity must be at least 0"),
        ("[workloads.a]\ncost_sensitivity = -0.1", 2, "cost_sensitivity must be at least 0"),
        ("[workloads.a]\ncost_sensitivity = 1.5", 2, "cost_sensitivity must be at most 1"),
        ("[workloads.a]\nmax_latency_ms = 0", 2, "max_latency_ms must be at least 1"),
        ('[workloads.a]\nquality = "huge"', 2, '"maximum"'),
        ('[workloads.a]\nqualty = "high"', 2, "did you mean 'quality'?"),
        ('[workloads.a]\nrequire = "vision"', 2, "write a list"),
        ("[workloads.a.profile]\ntemprature = 1", 2, "did you mean 'temperature'?"),
        ('[workloads.a]\nprofile = { reasoning_effort = "much" }', 2, '"minimal"'),
        ('[aliases]\nx = "bardo/a"\n[workloads.a]\nmodel = "x"', 4, "name the workload itself"),
        ('[aliases]\na = "m"\n[workloads.a]', 3, "is an alias and a workload"),
        ('[aliases]\na = ["m", "bardo/cheap"]', 2, "lists a workload among its models"),
        ('[aliases]\na = "bardo/cheep"', 2, "did you mean bardo/cheap?"),
        ('[routing]\nprivate_providers = ["venise"]', 2, "did you mean 'venice'?"),
        (
            '[[providers]]\nid = "lab"\npreset = "vllm"\nprivate = false\n[routing]\nprivate_providers = ["lab"]',
            6,
            "its table says private = false",
        ),
        ('[routing]\nstrategy = "best"', 2, '"order", "score", "learned"'),
        ('[routing]\nstrategie = "order"', 2, "did you mean 'strategy'?"),
        ('[workloads]\ncheap = "m"', 2, "[workloads.cheap]"),
        ("workloads = 3", 1, "[workloads.NAME]"),
        ('[workloads.a]\nrequire = ["visoin"]', 2, "did you mean vision"),
        ('[workloads.a]\nprefer = ["zzz"]', 2, "features are"),
        (
            '[[providers]]\nid = "deepseek"\n[workloads.a]\nmodel = "deepseek/deepseek-chat"\nrequire = ["privacy"]',
            4,
            'private_providers = ["deepseek"]',
        ),
        (
            '[[providers]]\nid = "deepseek"\n[workloads.a]\nrequire = ["privacy"]\nescalate = ["deepseek/deepseek-chat"]',
            5,
            "which has 'deepseek/deepseek-chat', is not",
        ),
        (
            '[[providers]]\nid = "deepseek"\n[aliases]\nx = "deepseek/m"\n[workloads.a]\nrequire = ["privacy"]\nescalate = ["x"]',
            7,
            "which has 'deepseek/m', is not",
        ),
        (
            '[[providers]]\nid = "deepseek"\n[workloads.a]\nrequire = ["privacy"]\nverify = "deepseek/m"',
            5,
            "which has 'deepseek/m', is not",
        ),
        ('[workloads."a/b"]', 1, "cannot name a workload"),
        ('[router]\nstrategy = "order"', 1, "write [routing]"),
    ],
)
def test_a_mistake_is_answered_with_its_line_and_the_fix(text: str, line: int, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_settings(text)
    assert f"line {line}:" in str(caught.value)
    assert said in str(caught.value)
