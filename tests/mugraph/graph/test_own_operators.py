"""Operators of somebody's own: registered, tested by what they compute, searched by their parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.mugraph.graph import operators
from relational_tensat.mugraph.graph.arithmetic import Arithmetic, Labelled, contract, elementwise
from relational_tensat.mugraph.graph.dims import Dims
from relational_tensat.mugraph.graph.mu_operator import MuOperator, names
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Kernel, MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import load_mugraph, save_mugraph
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.kernels.emission import emit
from relational_tensat.mugraph.programs import ProgramBuilder
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.random_tests import first_difference
from relational_tensat.tensor.types import Attrs


class AddedProduct(MuOperator):
    """X·W + B, linear in each of them."""

    name = "added_product"
    arity = 3
    attrs = ("over",)
    levels = ("kernel", "block")
    last = "add"

    def infer(self, operands: Sequence[Dims], attrs: Attrs) -> Dims:
        return operators.MATMUL.infer(operands[:2], attrs)

    def evaluate(
        self, arithmetic: Arithmetic, operands: Sequence[Labelled], attrs: Attrs
    ) -> Labelled:
        x, w, b = operands
        return elementwise(arithmetic.add, contract(arithmetic, x, w, names(attrs, "over")), b)

    def parts(self, step: Operation) -> Sequence[Operation]:
        x, w, b = step.operands
        product = Operation("matmul", (x, w), f"{step.output} product", step.attrs)
        return product, Operation(self.last, (product.output, b), step.output)


@pytest.fixture
def own() -> Iterator[AddedProduct]:
    operator = AddedProduct()
    operators.register(operator)
    yield operator
    del operators.OPERATORS[operator.name]


def relu_of_it() -> MuGraph:
    b = ProgramBuilder("layer", X="m=4 k=8", W="k=8 n=4", B="m=4 n=4")
    return b.build(b.apply("relu", b.apply("added_product", "X", "W", "B", over=("k",))))


def test_a_kernel_is_found_and_tested_against_what_it_computes_itself(
    own: AddedProduct, tmp_path: Path
) -> None:
    program = relu_of_it()
    save_mugraph(program, tmp_path / "program.json")
    assert load_mugraph(tmp_path / "program.json") == program
    best = find_kernels(program, SearchOptions(max_kernels=1, max_operators=4)).best
    assert best is not None
    assert first_difference(program, best.graph, seed=1) is None
    (kernel,) = best.graph.kernels
    assert "matmul" in str(kernel)


def test_parts_that_compute_something_else_are_refused(
    own: AddedProduct, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "last", "mul")
    with pytest.raises(InputError, match=r"parts of its operators compute something else: \w+\["):
        find_kernels(relu_of_it())


def test_code_is_made_of_its_parts(own: AddedProduct) -> None:
    program = relu_of_it()
    best = find_kernels(program, SearchOptions(max_kernels=1, max_operators=4)).best
    assert best is not None
    (kernel,) = best.graph.kernels
    block = kernel.block
    tile_of = {iterator.tensor: iterator.output for iterator in block.iterators}
    operands = tuple(tile_of[name] for name in program.inputs)
    steps = (
        Operation("added_product", operands, "p", {"over": ("k",)}),
        Operation("relu", ("p",), block.savers[0].tile),
    )
    kernel = Kernel("k1", BlockGraph(block.grid, 1, block.iterators, steps, block.savers))
    graph = MuGraph("own", program.inputs, (kernel,), best.graph.outputs)
    assert first_difference(program, graph, seed=1) is None
    assert "__global__" in emit(graph, "cuda")[0].source


def test_a_name_is_taken_once(own: AddedProduct) -> None:
    operators.register(own)
    with pytest.raises(UsageError, match="'added_product' already"):
        operators.register(AddedProduct())
