"""What the keys of `[[prices]]` mean, for the generated page."""

_TOKENS = {
    "input": "dollars per million tokens of input that no other key prices; without it the price is not known",
    "cached_input": "of input read from the prompt cache; left out: as `input`",
    "cache_write": "of input written to the prompt cache; left out: as `input`",
    "cache_write_1h": "of input written to a cache of an hour; left out: as `cache_write`",
    "output": "of output",
    "reasoning": "of thinking; left out: as `output`",
    "audio_input": "of sound in the input; left out: as `input`",
    "cached_audio": "of sound read from the prompt cache; left out: as `cached_input`",
    "audio_output": "of sound in the output; left out: as `output`",
    "image_input": "of pictures in the input; left out: as `input`",
    "image_output": "of pictures in the output; left out: as `output`",
    "thinking_mode_output": "of all output of a call that thought; left out: as `output` and `reasoning`",
}
PRICE_MEANINGS = {
    **_TOKENS,
    "match": "the models: an id, a glob, or a list of them. The most specific glob decides",
    "provider": "the providers by their ids or presets: a glob, or a list of them; left out: all",
    "from": "the day from which the price holds (UTC); the latest row that holds decides",
    "source": "where the price is from, for people",
    "request_fee": "dollars for each call",
    "search_fee": "dollars for each search that the provider makes during a call",
    "search_fee_once": "whether all searches of a call together cost one such fee",
    "batch_factor": "the share of these prices that calls of a batch cost, like `0.5`; left out: not known",
    "service_tiers": "the share of these prices that calls of a service tier cost: `{ flex = 0.5, priority = 2 }`",
    "tiers": "prices of longer requests, for all of their tokens: `[{ above = 200000, input = 6, output = 22.5 }]`; what is left out is "
    "as below",
}
