"""What the keys of `[routing]` and `[workloads.NAME]` mean, for the pages."""

from __future__ import annotations

ROUTING_MEANINGS = {
    "routing.strategy": "who is asked first of those that can do what a call needs: by the `order` of the providers in the file, "
    "by `score`, or by what was `learned` of earlier calls",
    "routing.private_providers": "ids of providers that keep nothing of a call, besides those of which the catalog or their table says so",
    "routing.embedding": "a folder with `model.onnx` and `tokenizer.json`, by which learned routing knows requests (needs `bardo[onnx]`); "
    "by default the table that ships with bardo",
    "routing.learned": "how the strategy `learned` explores and forgets: the keys below",
    "routing.learned.file": "where it keeps what it knows; by default `routing.json` in the data folder",
    "routing.learned.half_life_days": "after how many days an outcome counts half",
    "routing.learned.regret": "what exploring may lose on average, in success from 0 to 1; 0: nothing but the expected best is tried",
    "routing.learned.comparison_share": "the share of a route's calls that ask the best single model, by which `bardo routing report` says "
    "whether routing pays",
    "workloads.model": "of `[workloads.NAME]`, which clients ask for as `bardo/NAME` or `NAME`: a model, a list of models that are "
    "asked in order, or another workload, whose keys hold where this one has none; left out: any model that does what is needed",
    "workloads.fallbacks": 'models that are asked in order where `model` does not answer; `model = ["…", "…"]` says both',
    "workloads.require": "features that the model must have, as long as anybody has them",
    "workloads.prefer": "features that it should have; what is lacking is reported",
    "workloads.quality": "`minimum`, `low`, `medium`, `high` or `maximum`: how good the model must be where none is named",
    "workloads.max_latency_ms": "the time within which nine of ten calls shall be answered",
    "workloads.cost_sensitivity": "from 0 (the price does not matter) to 1 (it matters most)",
    "workloads.diem_available": "whether calls to a provider that is paid by staked DIEM cost nothing",
    "workloads.profile": "how it is answered: a table of parameters, which the caller's own go before",
    "workloads.locked": "whether the profile goes before the caller's own parameters",
    "workloads.private": "whether only providers that keep nothing of a call are asked",
    "workloads.escalate": "models that are asked in order where an answer is not good enough",
    "workloads.pipeline": "the [pipeline profile](../how-to/use-pipeline-profiles.md) whose layers work on its calls",
    "workloads.verify": "a second model that is asked whether it agrees with the answer",
    "workloads.route": "steps by which models are looked for where none is named: `[{ models = […], providers = […], lost = […] }]`; "
    "`variant` asks for the models of a step in a variant of theirs, as OpenRouter's `floor`",
    "workloads.tier": "the tier that decides whether a model is asked at all",
    "workloads.about": "a sentence for people",
}
