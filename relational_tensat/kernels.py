"""Kernels of a folder that a run has written, as functions of NumPy's arrays.

Kernels without products are compiled by the system's C compiler, operators of libraries beside them run by
NumPy. Those with products are for GPUs, and in
the folder as Triton and CUDA; where NumPy is asked for, it computes what their μGraphs say.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from relational_tensat.base.errors import InputError, check_choice
from relational_tensat.base.files import whole_content
from relational_tensat.base.folders import check_own, temporary_folder
from relational_tensat.mugraph.fusion.kernel_files import FORMAT, INDEX
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import Dims, count
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mugraph import MuGraph, Operation
from relational_tensat.mugraph.graph.mugraph_json import load_mugraph
from relational_tensat.mugraph.graph.validity import kernel_tensors
from relational_tensat.mugraph.kernels.emit_c import compiled_kernels

#: A kernel: its operands, of the shapes and the element type that it was made for, give its result, or a
#: tuple of several.
KernelFunction = Callable[..., Any]
_Tensors = Mapping[str, NDArray[Any]]
_Run = Callable[[_Tensors], _Tensors]
#: The runners of kernels: the system's C compiler, or NumPy, which is slow and has all of them.
RUNNERS = ("c", "numpy")


@dataclass(frozen=True, eq=False)
class KernelEntry:
    """A kernel in the list of a folder.

    Attributes:
        key: its hash.
        path: of its μGraph; its code is beside it, with other suffixes.
        operands, results: shapes, as the model has them.
        targets: the languages that it is in the folder in.
    """

    key: str
    path: Path
    dtype: str
    operands: tuple[tuple[int, ...], ...]
    results: tuple[tuple[int, ...], ...]
    targets: tuple[str, ...]

    @cached_property
    def graph(self) -> MuGraph:
        """Its μGraph.

        Raises:
            InputError: it cannot be read, or is malformed.
        """
        return load_mugraph(self.path)


def load(folder: str | Path, runner: str = "c") -> dict[str, KernelFunction]:
    """Return the kernels of a folder, by their hashes, which ONNX's local functions are named for.

    Args:
        folder: that ``run --fuse --kernels`` has written.
        runner: ``c``, which leaves out kernels that there is no C of; or ``numpy``, for checks.

    Raises:
        InputError: the folder has no kernels, or one is malformed.
        UsageError: no runner has that name.
        MissingDependencyError: there is no C compiler.
    """
    check_choice("runner", runner, RUNNERS)
    return {
        key: function_of(entry, runner)
        for key, entry in entries(folder).items()
        if runner == "numpy" or runner in entry.targets
    }


def entries(folder: str | Path) -> dict[str, KernelEntry]:
    """Return the list of a folder's kernels, by their hashes.

    Raises:
        InputError: the folder has none, or others may have written it.
    """
    path = Path(folder) / INDEX
    check_own(Path(folder))
    check_own(path)
    try:
        content = json.loads(whole_content(path))
        if content["format"] != FORMAT:
            raise ValueError(f"format {content['format']!r}, expected {FORMAT!r}")
        return {
            str(key): KernelEntry(
                str(key),
                Path(folder) / f"{key}.json",
                str(entry["dtype"]),
                tuple(tuple(map(int, shape)) for shape in entry["operands"]),
                tuple(tuple(map(int, shape)) for shape in entry["results"]),
                tuple(map(str, entry["targets"])),
            )
            for key, entry in content["kernels"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path}: no list of kernels: {error}") from error


def function_of(entry: KernelEntry, runner: str) -> KernelFunction:
    """Return one kernel as a function; see ``load``."""
    graph = entry.graph
    run = _compiled(graph) if runner == "c" else _evaluated(graph, entry.dtype)
    shapes = [tuple(dim.size for dim in dims) for dims in graph.inputs.values()]

    def call(*operands: NDArray[Any]) -> Any:
        if len(operands) != len(shapes):
            raise InputError(f"{entry.key}: {len(operands)} operands, expected {len(shapes)}")
        operands = tuple(map(np.asarray, operands))
        for operand, own, shape in zip(operands, entry.operands, shapes, strict=True):
            if not _groups(operand.shape, shape):
                raise InputError(f"{entry.key}: an operand of {operand.shape}, expected {own}")
        for name, operand in zip(graph.inputs, operands, strict=True):
            is_condition = name in graph.conditions
            if operand.dtype.name != ("bool" if is_condition else entry.dtype):
                kind = "bools" if is_condition else entry.dtype
                raise InputError(f"{entry.key}: an operand of {operand.dtype}, expected {kind}")
        given = [
            np.ascontiguousarray(operand).reshape(shape)
            for operand, shape in zip(operands, shapes, strict=True)
        ]
        computed = run(dict(zip(graph.inputs, given, strict=True)))
        results = tuple(
            computed[name].reshape(shape)
            for name, shape in zip(graph.outputs, entry.results, strict=True)
        )
        return results[0] if len(results) == 1 else results

    return call


def _groups(shape: tuple[int, ...], dims: tuple[int, ...]) -> bool:
    """Whether each dim of a shape is some of the kernel's, one after the other; a dim of 1 is not."""
    own = {math.prod(dims[place:]) for place in range(len(dims) + 1)}
    return math.prod(shape) == math.prod(dims) and all(
        math.prod(shape[place:]) in own for place in range(len(shape))
    )


def _compiled(graph: MuGraph) -> _Run:
    device = kernel_tensors(graph)
    with temporary_folder() as folder:
        functions = compiled_kernels(graph, folder)

    def run(given: _Tensors) -> _Tensors:
        tensors = dict(given)
        for step in graph.steps:
            if isinstance(step, Operation):
                tensors |= _by_numpy(step, tensors, device)
                continue
            made = {name: np.empty(count(device[name]), np.float32) for name in step.outputs}
            functions[step.name]([tensors[name] for name in step.operands], list(made.values()))
            tensors |= made
        return tensors

    return run


def _by_numpy(step: Operation, tensors: _Tensors, device: Mapping[str, Dims]) -> _Tensors:
    """Return what an operator of a library gives: NumPy is the library."""
    inputs = {name: device[name] for name in step.operands}
    values = {
        name: _as_numbers(tensors[name], "float32").reshape([dim.size for dim in dims])
        for name, dims in inputs.items()
    }
    alone = MuGraph(step.op, inputs, (step,), step.outputs)
    made = evaluate(alone, values, Numbers("float32"))
    return {name: np.ascontiguousarray(value, np.float32) for name, value in made.items()}


def _evaluated(graph: MuGraph, dtype: str) -> _Run:
    def run(given: _Tensors) -> _Tensors:
        values = {name: _as_numbers(value, dtype) for name, value in given.items()}
        return evaluate(graph, values, Numbers(dtype))

    return run


def _as_numbers(value: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Return bools as 1 and 0; others as they are."""
    return value.astype(dtype) if value.dtype == bool else value
