"""Write the scripted model as a Hugging Face folder: weights, tokenizer and chat template, with nothing but the standard library.

Sources: the safetensors format (github.com/huggingface/safetensors, README) and the `tokenizer.json` of byte-level BPE models, 2026-11-20.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from servers.scripted_model import CONTEXT, END, WIDTH, ScriptedModel, scripted_model, spelled

_FEED_FORWARD = 32
# How Qwen's tokenizers cut text before they look for tokens.
_CUT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


def write_hugging_face(folder: Path, template: str) -> None:
    """Write the model with a chat template into an empty folder."""
    model = scripted_model()
    end = model.tokens.index(END)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", _config(len(model.tokens), end))
    _write(folder / "generation_config.json", {"eos_token_id": end, "do_sample": False})
    _write(folder / "tokenizer.json", _tokenizer(model))
    settings = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": "<|endoftext|>"}
    _write(folder / "tokenizer_config.json", {**settings, "model_max_length": CONTEXT, "chat_template": template})
    _write_safetensors(folder / "model.safetensors", _tensors(model))


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def _config(vocabulary: int, end: int) -> dict[str, Any]:
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "torch_dtype": "float32",
        "vocab_size": vocabulary,
        "hidden_size": WIDTH,
        "head_dim": WIDTH,
        "intermediate_size": _FEED_FORWARD,
        "num_hidden_layers": 1,
        "num_attention_heads": 1,
        "num_key_value_heads": 1,
        "max_position_embeddings": CONTEXT,
        "rms_norm_eps": 1e-6,
        "rope_theta": 1e9,
        "tie_word_embeddings": False,
        "bos_token_id": None,
        "eos_token_id": end,
        "pad_token_id": None,
    }


def _tokenizer(model: ScriptedModel) -> dict[str, Any]:
    added = [
        {"id": number, "content": token, "special": model.special[token], "normalized": False}
        | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
        for number, token in enumerate(model.tokens)
        if token in model.special
    ]
    vocabulary = {token: number for number, token in enumerate(model.tokens) if token not in model.special}
    newline = spelled("\n")
    bytes_ = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
    cut = {"type": "Split", "pattern": {"Regex": _CUT}, "behavior": "Isolated", "invert": False}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [cut, bytes_]},
        "post_processor": None,
        "decoder": bytes_,
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [[newline, newline]], "byte_fallback": False},
    }


def _tensors(model: ScriptedModel) -> dict[str, Sequence[Sequence[float]] | Sequence[float]]:
    ones = [1.0] * WIDTH
    identity = [[float(row == column) for column in range(WIDTH)] for row in range(WIDTH)]
    none = [[0.0] * WIDTH for _ in range(_FEED_FORWARD)]
    layer = "model.layers.0"
    return {
        "model.embed_tokens.weight": model.embedding,
        "model.norm.weight": ones,
        "lm_head.weight": model.output,
        f"{layer}.input_layernorm.weight": ones,
        f"{layer}.self_attn.q_proj.weight": model.query,
        f"{layer}.self_attn.k_proj.weight": model.key,
        f"{layer}.self_attn.v_proj.weight": model.value,
        f"{layer}.self_attn.o_proj.weight": identity,
        f"{layer}.post_attention_layernorm.weight": ones,
        f"{layer}.mlp.gate_proj.weight": none,
        f"{layer}.mlp.up_proj.weight": none,
        f"{layer}.mlp.down_proj.weight": [[0.0] * _FEED_FORWARD for _ in range(WIDTH)],
    }


def _write_safetensors(path: Path, tensors: dict[str, Sequence[Sequence[float]] | Sequence[float]]) -> None:
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, tensor in tensors.items():
        matrix = isinstance(tensor[0], Sequence)
        rows: Any = tensor if matrix else [tensor]
        shape = [len(tensor), len(rows[0])] if matrix else [len(tensor)]
        begin = len(data)
        for row in rows:
            data += array("f", row).tobytes()
        head[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, len(data)]}
    described = json.dumps(head).encode()
    described += b" " * (-len(described) % 8)
    path.write_bytes(struct.pack("<Q", len(described)) + described + bytes(data))
