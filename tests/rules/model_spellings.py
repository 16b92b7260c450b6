"""Small ONNX models written operator by operator, as exporters do, and what the rules make of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import helper

from relational_tensat.cost import Profile, load_profile
from relational_tensat.egraph import EGraph
from relational_tensat.explore import Exploration, ExplorationOptions, explore
from relational_tensat.extract import extract
from relational_tensat.extract.tables import choose, chosen_graph, extraction_problem
from relational_tensat.formats import from_onnx_model
from relational_tensat.rules.library import load_rules
from relational_tensat.rules.model import Rule
from relational_tensat.tensor import Graph
from relational_tensat.tensor.uses import count_inference_ops
from relational_tensat.verify import verify
from relational_tensat.verify.fold import fold_weights
from tests.formats.onnx_tools import constant, model, tensor


class Spelling:
    """An ONNX model that grows by one node a call.

    Operands are names, or numbers and arrays, which become float32 (or integer) initializers.
    """

    def __init__(self, **inputs: Sequence[int]) -> None:
        self._inputs = [tensor(name, shape) for name, shape in inputs.items()]
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def __call__(self, op: str, *operands: Any, outputs: int = 1, **attrs: Any) -> Any:
        """Add a node; return the name of its result, a list of names for several."""
        names = [
            operand if isinstance(operand, str) else self._constant(operand) for operand in operands
        ]
        results = [f"t{len(self._nodes)}_{k}" for k in range(outputs)]
        self._nodes.append(helper.make_node(op, names, results, **attrs))
        return results[0] if outputs == 1 else results

    def weight(self, *shape: int) -> str:
        """Add a weight of random numbers."""
        seed = len(self._constants)
        return self._constant(np.random.default_rng(seed).normal(size=shape).astype(np.float32))

    def graph(self, *outputs: str, opset: int = 17) -> Graph:
        """Return the graph as it is read."""
        return from_onnx_model(self.model(*outputs, opset=opset))

    def model(self, *outputs: str, opset: int = 17, **types: str) -> onnx.ModelProto:
        """Return the model; inputs of other element types than float32 have these by name."""
        for info in self._inputs:
            if info.name in types:
                elem_type = onnx.TensorProto.DataType.Value(types[info.name])
                info.type.tensor_type.elem_type = elem_type
        open_types = [onnx.ValueInfoProto(name=name) for name in outputs]
        untyped = model(self._nodes, self._inputs, open_types, self._constants, opset=opset)
        return onnx.shape_inference.infer_shapes(untyped, data_prop=True)

    def _constant(self, value: Any) -> str:
        name = f"c{len(self._constants)}"
        array = np.asarray(value)
        is_float = array.dtype.kind == "f"
        self._constants.append(constant(name, array, np.float32 if is_float else np.int64))
        return name


class Optimized(NamedTuple):
    """What became of a graph: itself, its operators at inference, and how the search ended."""

    graph: Graph
    ops: dict[str, int]
    exploration: Exploration


@cache
def shipped_rules(families: tuple[str, ...] = ()) -> tuple[Rule, ...]:
    """Return the rules that ship; only those of some files, if any are named."""
    return tuple(rule for rule in load_rules() if not families or Path(rule.file).stem in families)


def optimized(
    graph: Graph,
    families: tuple[str, ...] = (),
    *,
    cost: Profile | None = None,
    multi_iterations: int = 1,
) -> Optimized:
    """Optimize a graph and check the result.

    Args:
        families: the rule files that are used; all, if none is named.
        cost: an NVIDIA T4, by default.
    """
    egraph = EGraph.create(graph)
    limits = ExplorationOptions(multi_iterations=multi_iterations)
    exploration = explore(egraph, shipped_rules(families), limits)
    table = extraction_problem(egraph, cost or load_profile("t4"))
    choose(egraph, table, extract(table.problem).choice)
    best = chosen_graph(egraph)
    egraph.close()
    checked = verify(graph, best, folded=fold_weights(best), runs=1)
    assert not checked.failure(), checked.failure()
    assert checked.runs
    return Optimized(best, count_inference_ops(best), exploration)
