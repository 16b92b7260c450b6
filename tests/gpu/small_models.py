"""The 13 model graphs with their structure and spatial sizes, and few channels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import cast

from bench.models import MODELS
from relational_tensat.tensor import Graph, TensorType, Weight, build_graph
from relational_tensat.verify.random_values import SeededWeights

_TRANSFORMERS = ("bert", "vit_base", "vit_large", "vit_huge", "transformer_transducer")
#: By what channels are divided; those that are no multiples stay.
_DIVISORS = {"squeezenet": 8, "mobilenet_v2": 8, "nasrnn": 64, "nasnet_a": 64}

Scale = Callable[[int], int]


def small_model(name: str, seed: int = 0) -> Graph:
    """Return a model made small, with random data for its weights."""
    scale = _half_the_twos if name in _TRANSFORMERS else _divide(_DIVISORS.get(name, 16))
    graph = _scaled(MODELS[name](), scale)
    drawn = SeededWeights(graph, seed)
    weights = {key: Weight(w.type, drawn[key]) for key, w in graph.weights.items()}
    return replace(graph, weights=weights)


def _half_the_twos(size: int) -> int:
    """2^(2e) m becomes 2^e m: products of such sizes, heads times width, stay products."""
    twos = (size & -size).bit_length() - 1
    return size >> (twos - twos // 2)


def _divide(divisor: int) -> Scale:
    return lambda size: size // divisor if size % divisor == 0 else size


def _scaled(graph: Graph, scale: Scale) -> Graph:
    """Scale what are channels: all axes of matrices, the first two of what has more."""

    def kind(tensor_type: TensorType) -> TensorType:
        head = tuple(map(scale, tensor_type.shape[:2]))
        return tensor_type.with_shape((*head, *tensor_type.shape[2:]))

    nodes = []
    for node in graph.nodes:
        attrs = dict(node.attrs)
        if node.op == "reshape":
            attrs["shape"] = tuple(map(scale, cast("tuple[int, ...]", attrs["shape"])))
        nodes.append(replace(node, attrs=attrs))
    inputs = {name: kind(tensor_type) for name, tensor_type in graph.inputs.items()}
    weights = {name: Weight(kind(weight.type)) for name, weight in graph.weights.items()}
    return build_graph(graph.name, inputs, weights, nodes, graph.outputs)
