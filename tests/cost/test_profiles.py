"""Profiles: the ones that ship, and files of one's own, good and bad."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.base.errors import InputError, UsageError
from relational_tensat.cost import load_profile, profile_names
from relational_tensat.cost.key import graph_configurations
from relational_tensat.gpu.plan import plan_graph
from relational_tensat.tensor import Graph, TensorType
from relational_tensat.tensor.operators import operators
from tests.gpu.runs import check, one_node
from tests.graphs import f32

GOOD = """
peak_flops_per_s = 1e12
bandwidth_bytes_per_s = 1e11
launch_us = 2.0
free = ["reshape"]
"""


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "mine.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_profiles_that_ship() -> None:
    assert profile_names() == ("a100", "cpu", "cpu-avx2", "h100", "h200", "t4", "tensat_t4")
    for name in profile_names():
        profile = load_profile(name)
        assert profile.name == name
        assert profile.free <= set(operators())


def test_the_peers_profile_is_the_peers() -> None:
    profile = load_profile("tensat_t4")
    assert profile.peak_for("float32") == 8.1e12
    assert profile.bandwidth_bytes_per_s == 320e9
    assert profile.launch_us == 5.0
    named = {
        "input",
        "weight",
        "merge",
        "split",
        "reshape",
        "transpose",
        "dropout",
        "noop",
        "enlarge",
    }
    assert named <= profile.free
    assert "concat" not in profile.free


@pytest.mark.parametrize("name", ["t4", "a100", "h100", "h200", "cpu"])
def test_other_profiles_charge_for_copies(name: str) -> None:
    profile = load_profile(name)
    assert not profile.free & {"split", "slice", "transpose", "concat", "pad"}
    assert "reshape" in profile.free


def test_only_parts_may_be_views(tmp_path: Path) -> None:
    assert load_profile(write(tmp_path, GOOD + 'views = ["slice"]\n')).views == {"slice"}
    with pytest.raises(InputError, match=r"views = \['concat'\], expected some of slice, split"):
        load_profile(write(tmp_path, GOOD + 'views = ["concat"]\n'))


@st.composite
def _movements(draw: st.DrawFn) -> Graph:
    """Draw a split, slice or transpose."""
    shape = tuple(draw(st.lists(st.sampled_from((1, 2, 3, 4, 8)), min_size=1, max_size=4)))
    x, axis = f32(*shape), draw(st.integers(0, len(shape) - 1))
    op = draw(st.sampled_from(("split", "slice", "transpose")))
    if op == "transpose":
        return one_node(op, x, perm=tuple(draw(st.permutations(range(len(shape))))))
    start = draw(st.integers(0, shape[axis] - 1))
    if op == "split":
        sizes = tuple(size for size in (start, shape[axis] - start) if size)
        return one_node(op, x, axis=axis, sizes=sizes)
    step = draw(st.integers(1, 3))
    return one_node(op, x, axes=(axis,), starts=(start,), ends=(shape[axis],), steps=(step,))


@given(_movements())
def test_what_the_executor_leaves_where_it_is_costs_nothing(graph: Graph) -> None:
    check(graph)
    (configuration,) = graph_configurations(graph)
    attrs = dict(configuration.attrs)
    for name in ("t4", "a100", "h100", "h200"):
        us = load_profile(name).cost_us(
            configuration.op, configuration.inputs, configuration.output, attrs
        )
        assert (us == 0) == (not plan_graph(graph).steps)


def test_element_types_have_their_own_peak() -> None:
    t4 = load_profile("t4")
    assert t4.peak_for("float16") == 65e12
    assert t4.peak_for("bfloat16") == t4.peak_for("float32")  # Turing has no bfloat16 units
    assert t4.peak_for("int32") == 8.1e12  # the default of its file
    assert load_profile("a100").peak_for("float32") == 19.5e12  # not TF32


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, GOOD))
    assert profile.name == "mine"
    assert profile.free == {"reshape"}
    assert load_profile(str(write(tmp_path, GOOD))) == profile


def test_activations_in_a_cache_move_faster_and_weights_do_not(tmp_path: Path) -> None:
    cached = "cache_bytes = 4096\ncache_bandwidth_bytes_per_s = 1e12\n"
    profile = load_profile(write(tmp_path, GOOD.replace("1e12", "1e15") + cached))
    small, large = f32(16, 16), f32(64, 64)
    for kind in (small, large):
        cached = min(2 * kind.nbytes, 4096)
        move_s = cached / 1e12 + (2 * kind.nbytes - cached) / 1e11
        assert profile.cost_us("relu", (kind,), kind, {}) == pytest.approx(2.0 + move_s * 1e6)
    product_us = profile.cost_us("matmul", (small, small), small, {})
    assert product_us == pytest.approx(2.0 + small.nbytes * (1 / 1e11 + 2 / 1e12) * 1e6)
    with pytest.raises(InputError, match="go together"):
        load_profile(write(tmp_path, GOOD + "cache_bytes = 4096\n"))


def test_weights_may_come_before_they_are_worked_on(tmp_path: Path) -> None:
    text = (
        GOOD
        + "weight_bandwidth_bytes_per_s = 1e10\ncache_bytes = 65536\ncache_bandwidth_bytes_per_s = 1e12\n"
    )
    profile = load_profile(write(tmp_path, text))
    small, large = f32(16, 64), f32(64, 64)
    flops_s = 2 * 16 * 64 * 64 / 1e12
    product_us = profile.cost_us("matmul", (small, large), small, {})
    assert product_us == pytest.approx(2.0 + (large.nbytes / 1e10 + flops_s) * 1e6)
    batched = f32(1, 64, 64)
    assert profile.cost_us("matmul", (f32(1, 16, 64), batched), f32(1, 16, 64), {}) < product_us
    huge = f32(512, 512)  # what the cache has no room for comes before, too
    far_s = (2 * huge.nbytes - 65536) / 1e11
    relu_us = profile.cost_us("relu", (huge,), huge, {})
    assert relu_us == pytest.approx(2.0 + (far_s + max(512 * 512 / 1e12, 65536 / 1e12)) * 1e6)


def test_what_is_read_once_more_for_each_row_is_moved(tmp_path: Path) -> None:
    rates = "elements_per_s = { reread = 1e9, reread_stretch = 1e8 }\n"
    profile = load_profile(write(tmp_path, GOOD + rates))
    rows, bias = f32(16, 256), f32(256)
    moved_us = (2 * rows.nbytes + bias.nbytes) / 1e11 * 1e6
    reread_us = 15 * 256 / 1e9 * 1e6 + 16 / 1e8 * 1e6
    sum_us = profile.cost_us("add", (rows, bias), rows, {})
    assert sum_us == pytest.approx(2.0 + moved_us + reread_us)
    assert profile.cost_us("add", (rows, rows), rows, {}) == pytest.approx(
        2.0 + 3 * rows.nbytes / 1e11 * 1e6
    )


def test_weights_from_a_cache_come_meanwhile(tmp_path: Path) -> None:
    text = GOOD + "weight_bandwidth_bytes_per_s = 1e10\n"
    cached = "weight_cache_us = 50\nweight_cache_bandwidth_bytes_per_s = 1e11\n"
    rates = "elements_per_s = { packed = 1e9 }\n"
    profile = load_profile(write(tmp_path, text + cached + rates))
    rows, row, matrix = f32(16, 256), f32(1, 256), f32(256, 256)
    flops_us = 2 * 16 * 256 * 256 / 1e12 * 1e6
    moved_us = 2 * rows.nbytes / 1e11 * 1e6
    far_us, near_us = matrix.nbytes / 1e10 * 1e6, matrix.nbytes / 1e11 * 1e6
    packed_us = 128 * 256 / 1e9 * 1e6  # the first 128 rows come as fast as filters do
    for part in (0.0, 0.25, 1.0):
        found = replace(profile, cached=part)
        far = moved_us + (1 - part) * (far_us + packed_us)
        expected = 2.0 + far + max(flops_us, part * near_us)
        assert found.cost_us("matmul", (rows, matrix), rows, {}) == pytest.approx(expected)
    one_us = profile.cost_us(
        "matmul", (row, matrix), row, {}
    )  # a single row asks for each element once
    assert one_us == pytest.approx(2.0 + far_us + (flops_us + moved_us) / 16)
    with pytest.raises(InputError, match="go together"):
        load_profile(write(tmp_path, text + "weight_cache_us = 50\n"))
    with pytest.raises(InputError, match="weight_cache_us goes with"):
        load_profile(write(tmp_path, GOOD + cached))


def test_a_launch_costs_more_where_no_cache_has_what_is_the_kernels_own(tmp_path: Path) -> None:
    cached = "weight_cache_us = 50\nweight_cache_bandwidth_bytes_per_s = 1e11\n"
    text = GOOD + "weight_bandwidth_bytes_per_s = 1e10\n" + cached + "view_us = 0.5\n"
    plain = load_profile(write(tmp_path, text))
    profile = load_profile(write(tmp_path, text + "cold_launch_us = 2.0\ncold_weight_us = 3.0\n"))
    rows, matrix, bias = f32(16, 64), f32(64, 64), f32(64)
    for part in (0.0, 0.25, 1.0):
        without, found = replace(plain, cached=part), replace(profile, cached=part)
        for op, operands, output, weights in (
            ("relu", (rows,), rows, 0),
            ("matmul", (rows, matrix), rows, 1),
            ("matmul", (rows, matrix, bias), rows, 2),
        ):
            more_us = found.cost_us(op, operands, output, {})
            more_us -= without.cost_us(op, operands, output, {})
            assert more_us == pytest.approx((1 - part) * (2.0 + 3.0 * weights))
        view_us = found.cost_us("reshape", (f32(4, 6),), f32(24), {"shape": (24,)})
        assert view_us == 0.5 + (1 - part) * 2.0
    bare = profile.without_launches()
    assert bare.cost_us("relu", (rows,), rows, {}) == pytest.approx(
        profile.cost_us("relu", (rows,), rows, {}) - 4.0
    )


def test_a_view_may_cost_something(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, GOOD + "view_us = 0.5\n"))
    assert profile.cost_us("reshape", (f32(4, 6),), f32(24), {"shape": (24,)}) == 0.5
    assert profile.cost_us("noop", (f32(4), f32(4)), (f32(4), f32(4)), {}) == 0.0


def test_a_run_may_cost_something_beside_kernels(tmp_path: Path) -> None:
    run = "run = { us = 3, value_us = 0.5, cold_us = 20, cold_value_us = 2 }\n"
    profile = load_profile(write(tmp_path, GOOD + run))
    for part in (0.0, 0.25, 1.0):
        found = replace(profile, cached=part)
        assert found.run_us(4) == pytest.approx(3 + 4 * 0.5 + (1 - part) * (20 + 4 * 2))
    assert load_profile(write(tmp_path, GOOD)).run_us(4) == 0.0
    sizes = replace(profile, cached=0.25, run=replace(profile.run, size_us=0.5, cold_size_us=1.0))
    assert sizes.run_us(4, 8) - sizes.run_us(4) == pytest.approx(8 * (0.5 + 0.75 * 1.0))
    with pytest.raises(InputError, match=r"run: unknown key 'uss', expected .*did you mean 'us'"):
        load_profile(write(tmp_path, GOOD + "run = { uss = 3 }\n"))
    with pytest.raises(InputError, match=r"run = 3, expected a table of us"):
        load_profile(write(tmp_path, GOOD + "run = 3\n"))


def test_launches_may_cost_less_in_a_cuda_graph(tmp_path: Path) -> None:
    profile = load_profile(write(tmp_path, GOOD))
    assert profile.in_a_graph() is profile
    recorded = load_profile(write(tmp_path, GOOD + "graph_launch_us = 0.5\n"))
    assert recorded.launch_us == profile.launch_us
    assert recorded.in_a_graph().launch_us == 0.5


def test_an_unknown_name_gets_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown cost profile 'a10'.*did you mean 'a100'"):
        load_profile("a10")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("launch_us", "lunch_us"), "unknown key 'lunch_us'.*did you mean 'launch_us'"),
        (("launch_us = 2.0", ""), "'launch_us' is missing"),
        (("launch_us = 2.0", "launch_us = -1"), "launch_us = -1.*not negative"),
        (("launch_us = 2.0", "launch_us = nan"), "launch_us = nan"),
        (("launch_us = 2.0", "launch_us = true"), "launch_us = True, expected a number"),
        (("1e12", "0"), "peak_flops_per_s = 0, expected a positive number"),
        (("1e12", "inf"), "peak_flops_per_s = inf"),
        (("1e12", "'fast'"), "peak_flops_per_s = 'fast', expected a number"),
        (("1e12", "{ float32 = 1e12 }"), "has no 'default'"),
        (("1e12", "{ flot32 = 1e12, default = 1e12 }"), "did you mean 'float32'"),
        (("1e12", "{ float32 = -1, default = 1e12 }"), "peak_flops_per_s.float32 = -1"),
        (('["reshape"]', '["reshap"]'), "unknown operator 'reshap'; did you mean 'reshape'"),
        (('["reshape"]', '"reshape"'), "expected a list of operator names"),
        (('["reshape"]', "["), "not TOML"),
    ],
)
def test_bad_files_name_the_place(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    path = write(tmp_path, GOOD.replace(*change))
    with pytest.raises(InputError, match=message) as caught:
        load_profile(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_profile(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="not UTF-8 at byte 0"):
        load_profile(write(tmp_path, b"\xff\xfe"))


def test_elements_may_take_a_time_of_their_own(tmp_path: Path) -> None:
    kind = TensorType("float32", (1000,))
    plain = load_profile(write(tmp_path, GOOD))
    rated = load_profile(write(tmp_path, f"{GOOD}\n[elements_per_s]\nerf = 1e6\ntanh = 2e6\n"))
    assert rated.cost_us("relu", (kind,), kind, {}) == plain.cost_us("relu", (kind,), kind, {})
    more_us = rated.cost_us("erf", (kind,), kind, {}) - plain.launch_us
    assert more_us == pytest.approx(1000.0, rel=1e-3)
    image, filters = TensorType("float32", (1, 1, 4, 4)), TensorType("float32", (1, 1, 1, 1))
    attrs = {"stride": (1, 1), "pad": "valid", "act": "tanh"}
    took_us = rated.cost_us("conv", (image, filters), image, attrs) - plain.launch_us
    assert took_us == pytest.approx(8.0, rel=1e-2)  # the activation of 16 elements


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("elements_per_s = 3", "a table"),
        ("[elements_per_s]\nerff = 1e9", "erff"),
        ("[elements_per_s]\nerf = 0", "positive"),
    ],
)
def test_rates_are_checked(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_profile(write(tmp_path, f"{GOOD}\n{text}\n"))
