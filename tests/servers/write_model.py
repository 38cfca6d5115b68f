"""Write the scripted model as a file that servers load: GGUF for llama.cpp.

python -m servers.write_model OUT.gguf
"""

from __future__ import annotations

import sys
from pathlib import Path

from servers.gguf import Value, write_gguf
from servers.scripted_model import CONTEXT, END, WIDTH, ScriptedModel, scripted_model, spelled

_NORMAL, _CONTROL, _USER_DEFINED = 1, 3, 4


def write_llama_cpp(path: Path) -> None:
    """Write the model as GGUF, whole or not at all."""
    model = scripted_model()
    beside = path.with_name(f"{path.name}.{id(model)}.part")
    write_gguf(beside, _fields(model), _tensors(model))
    beside.replace(path)


def _fields(model: ScriptedModel) -> dict[str, Value]:
    ids = {token: number for number, token in enumerate(model.tokens)}
    kinds = [_kind(model, token) for token in model.tokens]
    newline = spelled("\n")
    return {
        "general.architecture": "llama",
        "general.name": "scripted",
        "general.file_type": 0,
        "llama.vocab_size": len(model.tokens),
        "llama.context_length": CONTEXT,
        "llama.embedding_length": WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": 32,
        "llama.attention.head_count": 1,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-6,
        "llama.rope.dimension_count": WIDTH,
        "llama.rope.freq_base": 1e9,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": list(model.tokens),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.merges": [f"{newline} {newline}"],
        "tokenizer.ggml.bos_token_id": ids["<|endoftext|>"],
        "tokenizer.ggml.eos_token_id": ids[END],
        "tokenizer.ggml.padding_token_id": ids["<|endoftext|>"],
        "tokenizer.ggml.add_bos_token": False,
    }


def _kind(model: ScriptedModel, token: str) -> int:
    if token not in model.special:
        return _NORMAL
    return _CONTROL if model.special[token] else _USER_DEFINED


def _tensors(model: ScriptedModel) -> dict[str, list[list[float]] | list[float]]:
    ones = [1.0] * WIDTH
    identity = [[float(row == column) for column in range(WIDTH)] for row in range(WIDTH)]
    # ggml pairs neighbours for its rotation, Hugging Face the two halves: dimension 2i is their dimension i.
    return {
        "token_embd.weight": [list(row) for row in model.embedding],
        "output_norm.weight": ones,
        "output.weight": [list(row) for row in model.output],
        "blk.0.attn_norm.weight": ones,
        "blk.0.attn_q.weight": _interleaved(model.query),
        "blk.0.attn_k.weight": _interleaved(model.key),
        "blk.0.attn_v.weight": [list(row) for row in model.value],
        "blk.0.attn_output.weight": identity,
        "blk.0.ffn_norm.weight": ones,
        "blk.0.ffn_gate.weight": [[0.0] * WIDTH for _ in range(32)],
        "blk.0.ffn_up.weight": [[0.0] * WIDTH for _ in range(32)],
        "blk.0.ffn_down.weight": [[0.0] * 32 for _ in range(WIDTH)],
    }


def _interleaved(rows: object) -> list[list[float]]:
    matrix = [list(row) for row in rows]  # type: ignore[attr-defined]
    half = WIDTH // 2
    return [matrix[place // 2 + (place % 2) * half] for place in range(WIDTH)]


if __name__ == "__main__":
    write_llama_cpp(Path(sys.argv[1]))
