"""A folder of kernels: for each its μGraph and its code, and a list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import write_aside
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.graph.mugraph_json import save_mugraph
from relational_tensat.mugraph.kernels.emission import SUFFIXES, TARGETS, emit
from relational_tensat.mugraph.kernels.emit_cuda import headers
from relational_tensat.mugraph.kernels.statements import identifier
from relational_tensat.tensor import Graph, Node, TensorType

#: The list of kernels in a folder.
INDEX = "kernels.json"
FORMAT = "relational_tensat kernels 3"
#: Files that make them PyTorch's operators and modules, and tests of these.
TORCH_MODULE, TORCH_TEST = "torch_operators.py", "test_torch_operators.py"
_TORCH_TEXT = '''"""This folder's kernels as PyTorch's operators, and as modules with named operands.

    from torch_operators import {first}
    module = {first}()
    {results} = module({operands})

A module takes tensors of the shapes and the element type that its kernel was made for. On a GPU it runs
Triton, on a CPU C or NumPy. It has no gradients. ``pytest {test}`` compares each with what it means.
"""

from pathlib import Path

import torch

from relational_tensat.torch_kernels import register

#: relational_tensat::fused_KEY, by key.
OPERATORS = register(Path(__file__).parent)
'''
_CLASS_TEXT = '''

class {name}(torch.nn.Module):
    """{operands} -> {results}, of {dtype}."""

    def forward(self, {names}):
        """Return what the kernel computes."""
        return OPERATORS["{key}"]({names})
'''
_TEST_TEXT = '''"""Each module of this folder computes what its kernel means, in NumPy."""

from pathlib import Path

import numpy as np
import pytest
import torch
import torch_operators

from relational_tensat import kernels

FOLDER = Path(__file__).parent
MODULES = {{{modules}}}


@pytest.mark.parametrize("key", MODULES)
def test_a_module_computes_what_its_kernel_means(key):
    entry, draw = kernels.entries(FOLDER)[key], np.random.default_rng(0)
    arrays = [
        draw.random(shape) < 0.5
        if name in entry.graph.conditions
        else draw.standard_normal(shape).astype(entry.dtype)
        for name, shape in zip(entry.graph.inputs, entry.operands)
    ]
    expected = kernels.load(FOLDER, "numpy")[key](*arrays)
    found = getattr(torch_operators, MODULES[key])()(*map(torch.from_numpy, arrays))
    several = isinstance(found, tuple)
    for one, other in zip(found if several else [found], expected if several else [expected]):
        np.testing.assert_allclose(one.numpy(), other, rtol=1e-3, atol=1e-4)
'''


def write_kernels(
    kernels: Iterable[OwnKernel], chosen: Graph, folder: Path, *, has_torch: bool = False
) -> int:
    """Write the kernels that a graph has, all or none; return how many there are.

    A kernel was made for one part, and may stand for others, whose values have other shapes in the model:
    the folder has those of the first place in the graph.

    Args:
        kernels: those that there are for the model.
        chosen: the graph, with nodes ``fused``.
        folder: is made if it is not there.
        has_torch: write modules of PyTorch, too, and their test.

    Raises:
        InputError: nothing can be written there.
    """
    places: dict[str, Node] = {}
    for node in chosen.nodes:
        if node.op == "fused":
            places.setdefault(str(node.attrs["mugraph"]), node)
    used = [
        replace(
            kernel,
            operands=tuple(_shape(chosen, name) for name in places[kernel.key].inputs),
            results=tuple(_shape(chosen, name) for name in places[kernel.key].outputs),
        )
        for kernel in sorted(kernels, key=lambda kernel: kernel.key)
        if kernel.key in places
    ]
    write_folder(used, folder, has_torch=has_torch)
    return len(used)


def _shape(graph: Graph, name: str) -> tuple[int, ...]:
    kind = graph.types[name]
    assert isinstance(kind, TensorType)
    return kind.shape


def write_folder(used: Sequence[OwnKernel], folder: Path, *, has_torch: bool) -> None:
    """Write kernels into a folder, all or none.

    Args:
        has_torch: write modules of PyTorch, too.

    Raises:
        InputError: nothing can be written there.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    with write_aside(folder / INDEX) as aside:
        entries = {kernel.key: _write(kernel, aside) for kernel in used}
        for name, text in headers().items() if entries else ():
            (aside / name).write_text(text, encoding="utf-8")
        if has_torch and used:
            for name, text in _torch_files(used).items():
                (aside / name).write_text(text, encoding="utf-8")
        index = json.dumps({"format": FORMAT, "kernels": entries}, indent=1)
        (aside / INDEX).write_text(index + "\n", encoding="utf-8")


def _torch_files(used: Sequence[OwnKernel]) -> dict[str, str]:
    """Return the text of the modules of kernels, and of their test."""
    operands = [", ".join(map(identifier, kernel.graph.inputs)) for kernel in used]
    module = _TORCH_TEXT.format(
        first=_module_name(used[0]), operands=operands[0], test=TORCH_TEST,
        results=", ".join(map(identifier, used[0].graph.outputs)),
    )  # fmt: skip
    for kernel, names in zip(used, operands, strict=True):
        module += _CLASS_TEXT.format(
            name=_module_name(kernel), key=kernel.key, dtype=kernel.dtype, names=names,
            operands=", ".join(
                f"{name} {list(shape)}"
                for name, shape in zip(names.split(", "), kernel.operands, strict=True)
            ),
            results=", ".join(str(list(shape)) for shape in kernel.results),
        )  # fmt: skip
    modules = ", ".join(f'"{kernel.key}": "{_module_name(kernel)}"' for kernel in used)
    return {TORCH_MODULE: module, TORCH_TEST: _TEST_TEXT.format(modules=modules)}


def _module_name(kernel: OwnKernel) -> str:
    return f"Fused{kernel.key.capitalize()}"


def _write(kernel: OwnKernel, folder: Path) -> dict[str, Any]:
    save_mugraph(kernel.graph, folder / f"{kernel.key}.json")
    targets = []
    for target, source in _sources(kernel):
        (folder / f"{kernel.key}{SUFFIXES[target]}").write_text(source, encoding="utf-8")
        targets.append(target)
    return {
        "dtype": kernel.dtype,
        "operands": kernel.operands,
        "results": kernel.results,
        "targets": targets,
    }


def _sources(kernel: OwnKernel) -> Iterator[tuple[str, str]]:
    """Yield the targets that can say a kernel, with its code: products are left to GPUs, for example."""
    for target in TARGETS:
        if target == "c" and kernel.dtype != "float32":
            continue
        try:
            emitted = emit(kernel.graph, target, kernel.dtype)
        except InputError:
            continue
        yield target, "\n".join(one.source for one in emitted)
