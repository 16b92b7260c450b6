"""Kernels are called as their sources declare them."""

from __future__ import annotations

import re

import pytest

from relational_tensat.base.errors import UsageError
from relational_tensat.gpu.catalogue import (
    HEADERS,
    KERNEL_DIR,
    UNITS,
    Parameter,
    instances,
    read_source,
    signature_of,
    signatures,
)
from tests.gpu.numpy_kernels import KERNELS


def test_every_kernel_of_every_file_is_listed() -> None:
    assert {file.name for file in KERNEL_DIR.iterdir()} == {*UNITS, *HEADERS}
    for unit, kernels in UNITS.items():
        assert read_source(unit).count("__global__") == len(kernels), unit
    listed = {name: unit for unit, kernels in UNITS.items() for name in kernels}
    assert {name: signature.unit for name, signature in signatures().items()} == listed


def test_the_double_has_every_kernel() -> None:
    assert set(KERNELS) == set(signatures())


def test_parameters_are_read_off_the_source() -> None:
    parameters = signature_of("binary<float>").parameters
    assert parameters[:4] == (
        Parameter("dst", "Q", None),
        Parameter("a", "Q", None),
        Parameter("b", "Q", None),
        Parameter("op", "q", None),
    )
    assert parameters[-1] == Parameter("b_strides", "q", 5)
    assert signature_of("unary<f16>").format == "QQqqdd" + "q" * 10
    assert signature_of("concat<u8>").format == "Q" * 9 + "q" * 12


def test_templates_are_compiled_for_types_and_others_once() -> None:
    for unit in UNITS:
        source = read_source(unit)
        for kernel in instances(unit):
            name = kernel.partition("<")[0]
            declared = re.search(
                rf"template <class \w>\s*__global__ void (__launch_bounds__\(\d+\)\s*)?{name}\(",
                source,
            )
            assert bool(declared) == ("<" in kernel), kernel


def test_an_unknown_kernel_is_refused_with_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"no kernel 'unary<f64>'; did you mean 'unary<f16>'"):
        signature_of("unary<f64>")
