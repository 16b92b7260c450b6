"""Which dimensions are dynamic, and what sizes they are given."""

from __future__ import annotations

from relational_tensat.base.option import SizeRange
from relational_tensat.formats.dynamic.dimensions import DynamicDimensions
from tests.formats.onnx_tools import tensor


def test_symbols_are_names_or_places() -> None:
    dims = DynamicDimensions.of([tensor("x", ["batch", 4, None]), tensor("z", ["batch", 3])])
    assert dims.symbols == ("batch", "x:2")
    assert dims.at({"batch": 2, "x:2": 5}) == {"batch": 2, "x:2": 5}
    assert not DynamicDimensions.of([tensor("x", [2, 3])])


def test_arithmetic_over_names_follows_from_them() -> None:
    inputs = [tensor("x", ["batch", "seq"]), tensor("mask", ["batch", "past + 2*seq"])]
    dims = DynamicDimensions.of(inputs)
    assert dims.symbols == ("batch", "seq", "past") and list(dims.derived) == ["past + 2*seq"]
    assert dims.at({"batch": 2, "seq": 5, "past": 7})["past + 2*seq"] == 17


def test_names_that_are_no_arithmetic_are_symbols() -> None:
    for name in ("a b", "f(a)", "a + 0.5", "a ** b", "a.b", "-a"):
        assert DynamicDimensions.of([tensor("x", [name])]).symbols == (name,)


def test_defaults_are_none_of_the_models_own_sizes() -> None:
    dims = DynamicDimensions.of([tensor("x", ["batch", "seq", "width"])])
    assert dims.base({"seq": 128}, fixed={3, 61}) == {"batch": 5, "seq": 128, "width": 67}
    assert dims.base({"x:0": 2}, set())["batch"] == 2
    image = DynamicDimensions.of([tensor("x", ["n", 3, "h", "w"])])
    assert image.base({}, set()) == {"n": 3, "h": 224, "w": 192}
    cache = DynamicDimensions.of([tensor("keys", ["n", 4, "past", 64])])
    assert cache.base({}, set()) == {"n": 3, "past": 61}


def test_few_tokens_come_to_a_cache() -> None:
    inputs = [tensor("ids", ["n", "seq"]), tensor("keys", ["n", 4, "past", 64])]
    assert DynamicDimensions.of(inputs).base({}, set()) == {"n": 3, "seq": 61, "past": 67}
    mask = tensor("mask", ["n", "past + seq"])
    assert DynamicDimensions.of([*inputs, mask]).base({}, set()) == {"n": 3, "seq": 7, "past": 61}


def test_other_sizes_differ_from_the_base_and_from_each_other() -> None:
    dims = DynamicDimensions.of([tensor("x", ["batch", "seq"])])
    base = {"batch": 1, "seq": 128}
    others = list(dims.others(base, 6))
    assert len({tuple(sizes.values()) for sizes in others}) == 6
    for sizes in others:
        assert all(size > 1 and size != base[symbol] for symbol, size in sizes.items())
    assert any(sizes["seq"] % 32 == 0 for sizes in others)
    assert list(dims.ones({"batch": 5, "seq": 7})) == [
        {"batch": 1, "seq": 7},
        {"batch": 5, "seq": 1},
        {"batch": 1, "seq": 1},
    ]


def test_the_smallest_sizes_are_none_of_the_models_own() -> None:
    dims = DynamicDimensions.of([tensor("x", ["n", "seq"]), tensor("y", ["n", "past + seq"])])
    assert dims.smallest({3}) == {"n": 2, "seq": 5, "past": 7}


def test_sizes_that_are_promised_are_all_that_are_looked_at() -> None:
    dims = DynamicDimensions.of([tensor("x", ["batch", "seq"])])
    dims = dims.promising({"batch": SizeRange.of(4, 64), "seq": 9})
    base = dims.base({"batch": SizeRange.of(4, 64), "seq": 9}, set())
    assert base == {"batch": 16, "seq": 9}
    assert [sizes["batch"] for sizes in dims.ends(base)] == [4, 64]
    looked_at = [*dims.others(base, 12), dims.larger(base), *dims.ones(base)]
    assert all(4 <= sizes["batch"] <= 64 for sizes in looked_at)
    assert len({sizes["batch"] for sizes in looked_at}) > 6 and looked_at[-1]["batch"] == 4
