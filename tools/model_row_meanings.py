"""What the keys of `[[models]]` mean, for the page of all keys."""

from __future__ import annotations

MODEL_MEANINGS = {
    "control": "the ways in which the model is told how to think: `adaptive`, `effort`, `level`, `budget`, `toggle`, `fixed`, `none`",
    "efforts": "its levels, as they are spelled in requests",
    "aliases": 'levels that act as another one: `{ minimal = "low" }`',
    "default_effort": "its level where none is sent",
    "omit": "whether it thinks where nothing is sent: `on` or `off`",
    "off": "whether its thinking can be turned off",
    "off_up_to": "the highest level beside which its thinking can be turned off",
    "nearest_off": "which part of the wire form is sent instead of off, where it cannot be turned off",
    "budget": "the budgets in tokens that it takes: `{ min = 1024, max = 32000, dynamic = -1 }`; `dynamic` is the word for `auto`",
    "form": "the wire form in which it is told; the forms are those of the [control reference](../reference/reasoning-control.md)",
    "switch": "the variable of its chat template that turns thinking on and off, where it is not `enable_thinking`",
    "output_limit": "the longest reply in tokens",
    "shutdown": "the first day on which it may not answer any more",
    "provider": "the provider, by its `id` or preset",
    "match": "ids of models, or globs of them; dots and dashes are the same",
    "assumed": "whether the row is a guess",
    "like": "a model that it is like in what the row leaves open",
    "goes_first": "whether its globs go before longer ones of other rows",
    "hosted": "whether only this provider serves the models under these ids",
    "open_weights": "whether the weights are published, so that rules of the maker's API hold only there",
    "default_display": "how its thinking is shown where nothing is asked: `summarized` or `omitted`",
    "rules": "names of rows of `parameters.toml`: which sampling parameters it takes",
    "forced_tool": "whether a tool may be forced: `yes`, `named`, `named_not_thinking`, `not_thinking`, `not_budgeted`, `never`",
    "tools_in": "the only dialect in which it calls tools while it thinks",
    "signed_calls": "whether the calls of the current turn must have their signatures",
    "source": "who says so",
    "date": "as of when",
    "note": "whatever else is worth knowing",
}
