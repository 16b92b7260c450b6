"""Which kernels, of what types, an operator costs what they do for."""

from __future__ import annotations

import pytest

from relational_tensat.cost import open_source
from relational_tensat.cost.key import configuration_of
from relational_tensat.rules.backends.backend import load_backend
from relational_tensat.rules.backends.onnxruntime.kernel_choice import kernels_of, more_work_of
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.tensor import TensorType, tensors_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.operators.work_steps import SCATTERED
from tests.cost.fakes import configuration
from tests.graphs import f32

load_backend("onnxruntime")


def test_halves_cost_what_floats_do() -> None:
    half = TensorType("float16", (1, 32, 64))
    (gelu,) = kernels_of(configuration("gelu", half))
    assert gelu == configuration("gelu", f32(1, 32, 64))
    cast = configuration("cast", half, dtype="float32")
    assert kernels_of(cast) == [cast]
    assert kernels_of(configuration("gelu", half), tells_computed=True) == [
        configuration("gelu", half)
    ]


def test_what_moves_halves_moves_them_as_such_and_has_them_cast() -> None:
    half = TensorType("float16", (1, 32, 64))
    kernels = kernels_of(configuration("transpose", half, perm=(0, 2, 1)))
    assert [kernel.op for kernel in kernels] == ["transpose", "cast"]
    assert kernels[1].inputs[0] == TensorType("float16", (1, 64, 32))
    assert kernels[1].output == f32(1, 64, 32)
    floats = configuration("transpose", f32(1, 32, 64), perm=(0, 2, 1))
    assert [kernel.op for kernel in kernels_of(floats)] == ["transpose"]


def test_softmax_of_halves_is_spelled_out() -> None:
    half = TensorType("float16", (1, 32, 64))
    kernels = kernels_of(configuration("softmax", half, axis=2))
    assert [kernel.op for kernel in kernels] == ["reduce_max", "sub", "exp", "reduce_sum", "div"]
    assert kernels[0].output == f32(1, 32, 1) and kernels[-1].output == f32(1, 32, 64)
    floats = configuration("softmax", f32(1, 32, 64), axis=2)
    assert kernels_of(floats) == [floats]


def test_blocks_are_full() -> None:
    attrs = {"stride": (1, 1), "pad": "same"}
    own = configuration("conv", f32(1, 40, 8, 8), f32(40, 40, 3, 3), **attrs)
    kernels = {kernel.op: kernel for kernel in kernels_of(own)}
    assert kernels["ort_blocked_conv"].inputs == (f32(1, 48, 8, 8), f32(48, 48, 3, 3))
    assert kernels["ort_to_blocks"].inputs == (f32(1, 48, 8, 8),)


@pytest.mark.parametrize("cost", ["analytic:cpu", "analytic:cpu:threads=2"])
@pytest.mark.parametrize("groups", [1, 1280])
def test_computed_filters_cost_no_less_in_blocks_where_there_is_no_such_kernel(
    cost: str, groups: int
) -> None:
    """Else an e-graph would choose what is run, out of blocks, by a product for each group."""
    backend = load_backend("onnxruntime")
    source = BackendCosts(open_source(cost), backend, backend.rules(has_fixed_shapes=True))
    x, window = f32(1, 1280, 4, 4), {"stride": (1, 1), "pad": "valid", "dilation": ()}
    filters = f32(1280, 1280 // groups, 1, 1)
    plain, blocked = (
        configuration_of(op, (x, filters), x, {**window, "act": "none"}, computed=(1,))
        for op in ("conv", "ort_blocked_conv")
    )
    answers = source.ask([plain, blocked])
    assert answers[blocked].cost_us >= answers[plain].cost_us


def test_transpositions_that_move_one_axis_count_twice() -> None:
    def more(*perm: int) -> int:
        x = f32(1, 5, 4, 3, 8)
        return len(more_work_of(configuration("transpose", x, perm=perm)))

    assert more(0, 2, 1, 3, 4) == more(0, 2, 3, 1, 4) == 1
    assert more(0, 3, 2, 1, 4) == 0  # two axes
    assert more(0, 1, 2, 4, 3) == 0  # elements
    assert more(0, 1, 2, 3, 4) == 0


def test_transpositions_of_several_axes_and_the_last_copy_each_element() -> None:
    def scattered(x: TensorType, *perm: int) -> int:
        kernel = configuration("transpose", x, perm=perm)
        works = get_operator("transpose").works(kernel.inputs, kernel.output, dict(kernel.attrs))
        return dict(works).get(SCATTERED, 0)

    x = f32(1, 785, 8, 19)
    assert scattered(x, 0, 3, 2, 1) == x.size
    for perm in [(0, 3, 1, 2), (0, 2, 3, 1), (3, 0, 1, 2), (0, 1, 3, 2)]:  # one axis moves
        assert scattered(x, *perm) == 0
    # An axis of one element is not left out: to onnxruntime two move here.
    assert scattered(f32(1, 5, 1, 19), 0, 3, 2, 1) == 95


def test_softmax_along_another_axis_than_the_last_is_transposed_there_and_back() -> None:
    x = f32(1, 785, 8, 19)
    there, back = more_work_of(configuration("softmax", x, axis=1))
    turned = f32(1, 19, 8, 785)
    assert (there.op, there.output, back.output) == ("transpose", turned, x)
    assert len(more_work_of(configuration("softmax", x, axis=2))) == 2  # one axis moves
    assert more_work_of(configuration("softmax", x, axis=3)) == []


def test_the_gelu_of_a_sum_goes_through_it_twice() -> None:
    x, v = f32(32, 64), f32(64)
    kernel = configuration("ort_bias_gelu", x, v)
    assert more_work_of(kernel) == [configuration("add", x, v)]


def test_groups_out_of_blocks_are_products_of_their_patches() -> None:
    attrs = {"stride": (1, 1), "pad": "same", "act": "none"}
    own = configuration_of("conv", (f32(1, 40, 8, 8), f32(40, 8, 3, 3)), f32(1, 40, 8, 8), attrs)
    (conv,) = kernels_of(own)
    assert conv.op == "conv"
    beginning, patches = more_work_of(own)
    assert beginning.inputs == (f32(10, 1, 1), f32(10, 1, 1))
    assert tensors_of(patches.inputs[0])[0].size == 360 * 64
    wide = configuration_of(
        "conv", (f32(1, 40, 80, 80), f32(40, 8, 3, 3)), f32(1, 40, 80, 80), attrs
    )
    _, *pieces = more_work_of(wide)  # what does not fit into a cache is copied in pieces that do
    sizes = [tensors_of(piece.inputs[0])[0].size for piece in pieces]
    assert len(sizes) > 1 and 0 <= sum(sizes) - 360 * 6400 < 2 * len(sizes)
