"""Theorem 1 of the paper: no prefix of a right μGraph is pruned. Right ones that others have found."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from relational_tensat.mugraph.graph.dims import count, size_of
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mu_operator import names
from relational_tensat.mugraph.graph.mugraph import Accumulate, Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.validity import BlockTensors, block_tensors, kernel_tensors
from relational_tensat.mugraph.programs import program
from relational_tensat.mugraph.search.abstract_egraph import function_name, saturated
from tests.mugraph.mirage_graphs import saved
from tests.mugraph.mugraphs import flash_attention

_VIEWS = ("rename", "split", "merge", "repeat")


class Lookup:
    """The classes of a graph's tensors, by looking its abstract expressions up in a program's e-graph."""

    def __init__(self, original: MuGraph, graph: MuGraph) -> None:
        abstract = saturated(original)
        rows = abstract.database.execute("SELECT op, name, size, a, b, class FROM abstract")
        self.nodes = {(op, name, size, a, b): klass for op, name, size, a, b, klass in rows}
        given = (abstract.classes[name] for name in original.inputs)
        self.classes = dict(zip(graph.inputs, given, strict=True))
        self.outputs = abstract.outputs
        self.graph = graph

    def walk(self) -> None:
        """Look up every tensor of the graph; a missing one is a pruned prefix."""
        device = kernel_tensors(self.graph)
        for step in self.graph.steps:
            if isinstance(step, Operation):
                self.operation(step, lambda name: device[name])
                continue
            tensors = block_tensors(step, device)
            for iterator in step.block.iterators:
                self.classes[iterator.output] = self.classes[iterator.tensor]
            self.block(step, tensors)
            for saver in step.block.savers:
                self.classes[saver.output] = self.classes[saver.tile]

    def block(self, kernel: Kernel, tensors: BlockTensors) -> None:
        for step in kernel.block.steps:
            if isinstance(step, Operation):
                self.operation(step, lambda name: tensors.dims[name])
            elif isinstance(step, Accumulate) and step.kind == "sum":
                operand = self.classes[step.operand]
                self.classes[step.output] = self.sum(operand, kernel.block.loop)
            elif isinstance(step, Accumulate):
                sizes = [size_of(tensors.dims[step.operand], name) for name in step.along]
                self.rms(step.operand, step.output, sizes[0] * kernel.block.loop)
            else:
                for operation in step.steps:  # type: ignore[union-attr]
                    self.operation(operation, lambda name: tensors.dims[name])

    def operation(self, step: Operation, dims: Callable[[str], tuple]) -> None:
        operands = [self.classes[name] for name in step.operands]
        if step.op in _VIEWS:
            self.classes[step.output] = operands[0]
        elif step.op in ("add", "mul", "div"):
            self.classes[step.output] = self.nodes[step.op, "", 0, operands[0], operands[1]]
        elif step.op in ("matmul", "sum"):
            over = [d for d in dims(step.operands[0]) if d.variable in names(step.attrs, "over")]
            product = operands[0]
            if step.op == "matmul":
                product = self.nodes["mul", "", 0, operands[0], operands[1]]
            self.classes[step.output] = self.sum(product, count(tuple(over)))
        elif step.op == "rms":
            over = [d for d in dims(step.operands[0]) if d.variable in names(step.attrs, "over")]
            self.rms(step.operands[0], step.output, count(tuple(over)))
        elif step.op == "exp":
            self.classes[step.output] = self.nodes["exp", "", 0, operands[0], 0]
        else:
            self.classes[step.output] = self.nodes[step.op, step.op, 0, operands[0], 0]

    def sum(self, operand: int, size: int) -> int:
        return operand if size == 1 else self.nodes["sum", "", size, operand, 0]

    def rms(self, operand: str, output: str, elements: int) -> None:
        name = function_name("rms", {"epsilon": 0.0}, elements)
        self.classes[output] = self.nodes["rms", name, elements, self.classes[operand], 0]


def check(original: MuGraph, graph: MuGraph) -> None:
    lookup = Lookup(original, graph)
    lookup.walk()
    assert tuple(lookup.classes[name] for name in graph.outputs) == lookup.outputs


@pytest.mark.parametrize(
    ("file", "name", "sizes"),
    [
        ("gqa_bs1", "attention", {}),
        ("rmsnorm_bs1", "rmsnorm_linear", {}),
        ("lora", "lora", {}),
        ("ntrans_bs1", "ntrans", {}),
    ],
)
def test_prefixes_of_mirages_graphs_are_kept(file: str, name: str, sizes: dict[str, int]) -> None:
    for document in saved(file)[:1]:
        check(program(name, **sizes), from_mirage(document, name))


def test_prefixes_of_flash_attention_are_kept() -> None:
    check(program("attention", h=2, q=4, d=4, k=8, e=2), flash_attention())


def test_a_wrong_graph_has_a_prefix_that_is_pruned() -> None:
    with pytest.raises(KeyError):
        check(program("mlp", m=2, k=4, r=2, n=2), program("gated_mlp", m=2, k=4, n=2))
