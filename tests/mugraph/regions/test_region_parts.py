"""Slices, splits, gathers and concatenations of models: windows of inputs, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from operator import mul

import numpy as np
import pytest

from relational_tensat.base.errors import InputError, RelationalTensatError, ShapeError
from relational_tensat.mugraph.fusion.chains import row_kernel
from relational_tensat.mugraph.graph.arithmetic import Labelled
from relational_tensat.mugraph.graph.dims import Dim, Window
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded
from relational_tensat.mugraph.graph.rewrites import core, core_like, has_windows, with_windows
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernel_finder import find_kernels
from relational_tensat.mugraph.regions.node_programs import lowered
from relational_tensat.mugraph.regions.regions import find_regions
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.verify.verification import verify_mugraph
from relational_tensat.tensor import Graph, Node, TensorType, Weight, build_graph
from relational_tensat.tensor.types import AttrValue
from tests.mugraph.parts import (
    cut,
    joined_product,
    joined_products,
    joint_attention,
    of_floats,
    rotary,
)
from tests.mugraph.regions.test_regions import compare


def _windows(model: Graph) -> list[Window]:
    program = lowered(model, model.nodes, "region").program
    return [Window.of(step.attrs) for step in program.steps if step.outputs[0][0] == "w"]


@pytest.mark.parametrize("kind", ["split", "slice", "gather"])
def test_queries_keys_and_values_are_windows_of_one_tensor(kind: str) -> None:
    model = joint_attention(kind)
    compare(model, list(model.nodes))
    region = lowered(model, model.nodes, "region")
    assert region.inputs == ("x",)
    program = region.program
    assert [step.op for step in program.operators] == ["matmul", "exp", "sum", "div", "matmul"]
    assert len(core(program).inputs) == 3 and not has_windows(core(program))
    ((found, *_), _) = find_regions(model)
    assert found.nodes == len(model.nodes)


def test_halves_that_change_places_are_two_windows_with_zeros_beside_them() -> None:
    model = rotary()
    compare(model, list(model.nodes))
    assert {(w.offset, w.first, w.last) for w in _windows(model)} == {(8, 0, 8), (-8, 8, 16)}


def test_a_product_of_joined_operands_is_a_sum_of_products() -> None:
    model = joined_product()
    compare(model, list(model.nodes))
    program = lowered(model, model.nodes, "region").program
    assert [step.op for step in program.operators] == ["matmul", "matmul", "add"]
    assert not any(window.is_bounded for window in _windows(model))


def _product_of_joined(columns: tuple[int, ...], rows: tuple[int, ...]) -> Graph:
    """A product of columns that are joined and rows that are."""
    kinds = {f"a{n}": of_floats(4, size) for n, size in enumerate(columns)}
    kinds |= {f"b{n}": of_floats(size, 6) for n, size in enumerate(rows)}
    nodes = [
        Node("concat", tuple(n for n in kinds if n[0] == "a"), ("a",), {"axis": 1}),
        Node("concat", tuple(n for n in kinds if n[0] == "b"), ("b",), {"axis": 0}),
        Node("matmul", ("a", "b"), ("y",)),
    ]
    return build_graph("joined", kinds, {}, nodes, ["y"])


def test_a_product_of_two_joined_operands_is_a_sum_of_products() -> None:
    """[A B]·[C; D] = A·C + B·D, as the paper's operator for LoRA has it."""
    model = _product_of_joined((8, 24), (8, 24))
    compare(model, list(model.nodes))
    program = lowered(model, model.nodes, "region").program
    assert [step.op for step in program.steps] == ["matmul", "matmul", "add"]
    other = _product_of_joined((8, 24), (16, 16))  # no piece of one meets one of the other
    compare(other, list(other.nodes))
    assert _windows(other)


@pytest.mark.parametrize("axis", [0, 1])
def test_joined_products_of_one_factor_are_its_product_with_the_others_joined(axis: int) -> None:
    model = joined_products(axis)
    compare(model, list(model.nodes))
    ((region, *_), _) = find_regions(model)
    assert (region.outputs, region.nodes) == (("y",), len(model.nodes))
    assert [step.op for step in region.program.operators] == ["add", "matmul"]


def test_parts_of_computed_values_are_computed_of_parts() -> None:
    """A slice of a product takes columns of its factor; steps, and slices of slices, are one window."""
    nodes = [
        Node("matmul", ("x", "w"), ("p",)),
        Node("add", ("p", "b"), ("s",)),
        cut("s", "some", 1, 3, 24, 2),
        cut("some", "fewer", 1, 1, 9, 4),
        Node("exp", ("fewer",), ("y",)),
    ]
    kinds = {"x": of_floats(4, 8), "w": of_floats(8, 24), "b": of_floats(24)}
    model = build_graph("columns", kinds, {}, nodes, ["y"])
    compare(model, list(model.nodes))
    assert {(w.offset, w.step, w.size) for w in _windows(model)} == {(5, 8, 2)}


def test_a_matrix_times_its_own_transpose_reads_it_by_two_rows() -> None:
    nodes = [
        Node("transpose", ("x",), ("t",), {"perm": (1, 0)}),
        Node("matmul", ("x", "t"), ("y",)),
    ]
    model = build_graph("gram", {"x": of_floats(4, 8)}, {}, nodes, ["y"])
    compare(model, list(model.nodes))
    assert len(core(lowered(model, model.nodes, "region").program).inputs) == 2


def test_cubes_are_products() -> None:
    number = Weight(of_floats(), np.asarray(3.0, "float32"))
    model = build_graph(
        "cube", {"x": of_floats(4, 8)}, {"n": number}, [Node("pow", ("x", "n"), ("y",))], ["y"]
    )
    compare(model, list(model.nodes))
    steps = lowered(model, model.nodes, "region").program.operators
    assert [step.op for step in steps] == ["square", "mul"]


def test_what_has_no_such_form_says_so() -> None:
    kinds = {"a": of_floats(4, 8), "b": of_floats(4, 8)}
    joined = Node("concat", ("e", "b"), ("j",), {"axis": 1})
    product, exponential = Node("mul", ("a", "b"), ("e",)), Node("exp", ("a",), ("e",))
    model = build_graph("joined", kinds, {}, [product, joined, Node("tanh", ("j",), ("y",))], ["y"])
    compare(model, list(model.nodes))
    model = build_graph("joined", kinds, {}, [exponential, joined], ["j"])
    with pytest.raises(ShapeError, match="gives no zeros for zeros"):
        lowered(model, model.nodes, "region")
    kinds |= {"v": of_floats(8, 6), "w": of_floats(8, 6)}
    products = [Node("matmul", (a, w), (a * 2,)) for a, w in ("av", "bw")]
    joined = Node("concat", ("aa", "bb"), ("j",), {"axis": 1})
    model = build_graph("joined", kinds, {}, [*products, joined], ["j"])
    with pytest.raises(ShapeError, match="of matmul, which gives no zeros for zeros"):
        lowered(
            model, model.nodes, "region"
        )  # of two factors: one product each, half of it of zeros
    half = {"h": Weight(of_floats(1, 1), np.full((1, 1), 0.5, np.float32))}
    reshaped = Node("reshape", ("h",), ("y",), {"shape": (1,)})
    model = build_graph("number", kinds, half, [reshaped, Node("mul", ("a", "y"), ("z",))], ["z"])
    with pytest.raises(ShapeError, match="a number by another shape"):
        lowered(model, model.nodes[:1], "region")
    compare(model, list(model.nodes))
    ids = {**kinds, "i": replace(of_floats(3), dtype="int64")}
    model = build_graph("rows", ids, {}, [Node("gather", ("a", "i"), ("y",), {"axis": 0})], ["y"])
    with pytest.raises(ShapeError, match="gather by an input"):
        lowered(model, model.nodes, "region")


def _kernels(model: Graph) -> tuple[MuGraph, MuGraph]:
    """Return a model's program, and a kernel for it."""
    program = lowered(model, model.nodes, model.name).program
    if not any(step.op == "matmul" for step in program.operators):
        return program, with_windows(row_kernel(core(program)), program)
    best = find_kernels(program, SearchOptions(max_kernels=1, max_operators=6)).best
    assert best is not None
    return program, best.graph


def _moved(graph: MuGraph, place: int, by: int) -> MuGraph:
    """Return a μGraph whose load loads its window from another element on."""
    (kernel,) = graph.kernels
    iterators = list(kernel.block.iterators)
    (*others, last) = iterators[place].windows
    windows = (*others, replace(last, offset=last.offset + by))
    iterators[place] = replace(iterators[place], windows=windows)
    block = replace(kernel.block, iterators=tuple(iterators))
    return replace(graph, steps=(replace(kernel, block=block),))


@pytest.mark.parametrize("make", [lambda: joint_attention("split"), rotary, joined_product])
def test_kernels_pass_and_wrong_offsets_do_not(make: Callable[[], Graph]) -> None:
    program, graph = _kernels(make())
    passed = verify_mugraph(program, graph, 7)
    assert passed.passed and passed.full_tests and core_like(graph, program) is not None
    places = [n for n, it in enumerate(graph.kernels[0].block.iterators) if it.windows]
    refused = 0
    for place in places:
        for by in (-16, -1, 1, 16):
            try:
                difference = verify_mugraph(program, _moved(graph, place, by), 7).difference
            except RelationalTensatError:  # it would load what is outside
                continue
            assert difference is not None, (place, by)
            refused += 1
    assert refused > 1


def test_a_kernel_of_parts_is_one_of_the_core_too() -> None:
    """The core is what is searched."""
    ((region, *_), _) = find_regions(joined_product())
    best = find_kernels(region.program, SearchOptions(max_kernels=1, max_operators=6)).best
    assert best is not None and has_windows(best.graph)
    own = core_like(best.graph, region.program)
    assert own is not None and not has_windows(own)
    assert with_windows(own, region.program) == best.graph


def test_windows_take_what_loops_take() -> None:
    random = np.random.default_rng(0)
    x = random.standard_normal((3, 4, 6))
    for window in (
        Window(("c",), ("c",), (3,), 1, 2, 0, 3),
        Window(("b", "c"), ("d", "e"), (4, 5), 2, 1, 0, 20),
        Window(("a",), ("a",), (8,), -2, 1, 2, 5),
        Window(("c",), ("f",), (4,), 5, -1, 0, 4),
        Window((), ("g",), (3,), -1, 1, 1, 2),
        Window(("b",), ("h", "k"), (2, 3), -1, 1, 1, 5, (2, 1)),
        Window(("b", "c"), ("h", "k"), (5, 4), -3, 1, 3, 25, (2, 7)),
    ):
        dims = (Dim("a", 3), Dim("b", 4), Dim("c", 6))
        made = window.taken(Labelled(("a", "b", "c"), x))
        kept = [dim for dim in dims if dim.variable not in window.variables]
        moved = np.moveaxis(
            x, [("a", "b", "c").index(d.variable) for d in kept], range(len(kept))
        ).reshape(*(d.size for d in kept), -1)
        flat = made.data.reshape(*(d.size for d in kept), -1)
        for number, index in enumerate(np.ndindex(*window.sizes)):
            place = sum(map(mul, window.strides, index)) if window.strides else number
            source = window.offset + window.step * place
            is_there = window.first <= place < window.last
            expected = moved[..., source] if is_there else np.zeros(moved.shape[:-1])
            assert np.array_equal(flat[..., number], expected)
        assert {d.variable: d.size for d in window.dims(dims)} == dict(
            zip(made.labels, made.data.shape, strict=True)
        )


def test_a_load_beyond_its_tensor_is_malformed() -> None:
    _, graph = _kernels(rotary())
    place = next(n for n, it in enumerate(graph.kernels[0].block.iterators) if it.windows)
    with pytest.raises(InputError, match="window: elements"):
        verify_mugraph(*(_moved(graph, place, 1000),) * 2)


def _gathered(*indices: int) -> Graph:
    number = TensorType("int64", (len(indices),))
    weights = {"i": Weight(number, np.array(indices))}
    nodes = [Node("gather", ("a", "i"), ("b",), {"axis": 1}), Node("exp", ("b",), ("y",))]
    return build_graph("gathered", {"a": of_floats(4, 12)}, weights, nodes, ["y"])


@pytest.mark.parametrize(
    ("indices", "window"), [((3, 4, 5), (3, 1)), ((1, 4, 7, 10), (1, 3)), ((-4, -2), (8, 2))]
)
def test_indices_at_one_distance_are_a_window(
    indices: tuple[int, ...], window: tuple[int, int]
) -> None:
    model = _gathered(*indices)
    compare(model, list(model.nodes))
    assert [(found.offset, found.step) for found in _windows(model)] == [window]


@pytest.mark.parametrize("indices", [(0, 1, 3), (2, 1, 0), (5, 5)])
def test_other_indices_end_a_region_and_a_row_says_why(indices: tuple[int, ...]) -> None:
    model = _gathered(*indices)
    with pytest.raises(ShapeError, match="gather by indices at several distances, or backwards"):
        lowered(model, model.nodes, "region")
    assert any(
        "gather by indices at several distances" in row.reason for row in find_regions(model)[1]
    )


def _convolution(
    sizes: tuple[int, ...],
    taps: tuple[int, ...],
    pad: AttrValue,
    stride: int = 1,
    dilation: int = 1,
) -> Graph:
    """Tokens as an image, a convolution of each channel with its bias, tokens again, and their sum."""
    image, rank = (2, 6, *sizes), len(sizes)
    kinds = {"x": of_floats(2, math.prod(sizes), 6), "w": of_floats(6, 1, *taps), "b": of_floats(6)}
    attrs = {"stride": (stride,) * rank, "pad": pad, "dilation": (dilation,) * rank, "act": "relu"}
    nodes = [
        Node("transpose", ("x",), ("t",), {"perm": (0, 2, 1)}),
        Node("reshape", ("t",), ("i",), {"shape": image}),
        Node("conv", ("i", "w", "b"), ("c",), attrs),
        Node("smul", ("c",), ("s",), {"value": 0.5}),
    ]
    end = "s"
    graph = build_graph("image", kinds, {}, nodes, [end])
    shape = graph.types[end]
    assert isinstance(shape, TensorType)
    if shape.shape == image:
        nodes.append(Node("add", ("s", "i"), ("y",)))
        end = "y"
    return build_graph("image", kinds, {}, nodes, [end])


@pytest.mark.parametrize(
    "model",
    [
        _convolution((5, 7), (3, 3), (1, 1, 1, 1)),
        _convolution((6, 5), (3, 2), (0, 2, 1, 0), stride=2),
        _convolution((9, 8), (5, 3), "same", dilation=2),
        _convolution((4, 3), (2, 3), "valid"),
        _convolution((1, 1), (3, 3), "same"),  # one element
        _convolution((2, 3), (7, 7), (3, 3, 3, 3)),  # windows larger than the image
        _convolution((5, 1), (1, 3), (0, 1, 0, 1)),
        _convolution((4, 4), (1, 1), "valid", stride=2),
        _convolution((11,), (4,), (1, 3), stride=3),
        _convolution((3, 4, 5), (3, 2, 3), (1, 0, 1, 1, 1, 1)),
    ],
)
def test_a_convolution_of_each_channel_is_a_sum_over_windows_that_slide(model: Graph) -> None:
    compare(model, list(model.nodes))
    program = lowered(model, model.nodes, "region").program
    assert all(window.strides for window in _windows(model))
    graph = with_windows(row_kernel(core(program)), program)
    assert verify_mugraph(program, graph).passed
    assert decoded(encoded(graph), "window") == graph


@pytest.mark.parametrize(
    ("filters", "of", "why"),
    [((6, 2, 3, 3), "x", "sums channels"), ((12, 1, 3, 3), "x", "several filters of one"),
     ((6, 1, 3, 3), "e", "slide over what is computed")],
)  # fmt: skip
def test_other_convolutions_are_no_regions(filters: tuple[int, ...], of: str, why: str) -> None:
    attrs = {"stride": (1, 1), "pad": "same", "dilation": (), "act": "none"}
    nodes = [Node("exp", ("x",), ("e",)), Node("conv", (of, "w"), ("y",), attrs)]
    kinds = {"x": of_floats(1, 6, 4, 4), "w": of_floats(*filters)}
    model = build_graph("other", kinds, {}, nodes, ["y"])
    with pytest.raises(ShapeError, match=why):
        lowered(model, model.nodes, "region")
    assert not find_regions(model)[0]  # those of GPUs have none at all


@pytest.mark.parametrize(
    ("strides", "why"),
    [
        ((1,), "strides"),
        ((0, 1), "strides"),
        ((1.5, 1), "whole numbers"),
    ],
)
def test_malformed_strides_of_windows_are_refused(strides: tuple[float, ...], why: str) -> None:
    model = _convolution((5, 7), (3, 3), (1, 1, 1, 1))
    program = lowered(model, model.nodes, "region").program
    content = encoded(with_windows(row_kernel(core(program)), program))
    (iterator,) = (it for it in content["steps"][0]["iterators"] if "windows" in it)
    iterator["windows"][0]["strides"] = list(strides)
    with pytest.raises((InputError, ShapeError), match=why):
        kernel_tensors(decoded(content, "window"))
