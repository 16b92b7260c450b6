"""The oracle of evaluation: block after block, iteration after iteration, with arrays as they lie."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from relational_tensat.mugraph.graph.dims import Dims, variables
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockStep,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    ThreadGraph,
)
from relational_tensat.mugraph.graph.validity import BlockStage, block_tensors, kernel_tensors

Arrays = dict[str, np.ndarray]
_OF_TWO = {"mul": np.multiply, "div": np.divide, "add": np.add, "sub": np.subtract}


def run(graph: MuGraph, values: Mapping[str, np.ndarray]) -> Arrays:
    """Return the outputs of a μGraph whose operators are those of ``formula``."""
    dims = kernel_tensors(graph)
    device = dict(values)
    for step in graph.steps:
        if isinstance(step, Operation):
            device[step.output] = formula(step, device, dims, dims[step.output])
        else:
            device.update(run_kernel(step, device, dims))
    return {name: device[name] for name in graph.outputs}


def formula(step: Operation, arrays: Arrays, dims: Mapping[str, Dims], result: Dims) -> np.ndarray:
    if step.op == "rename":
        return arrays[step.operands[0]]
    letters: dict[str, str] = {}
    for name in step.operands:
        for variable in variables(dims[name]):
            letters.setdefault(variable, chr(ord("a") + len(letters)))
    subscripts = ["".join(letters[v] for v in variables(dims[name])) for name in step.operands]
    operands = [arrays[name] for name in step.operands]
    target = "".join(letters[v] for v in variables(result))
    match step.op:
        case "matmul":
            return np.einsum(f"{','.join(subscripts)}->{target}", *operands)
        case "sum":
            return np.einsum(f"{subscripts[0]}->{target}", *operands)
        case "exp":
            return np.exp(operands[0])
        case "max":
            over = {variables(dims[step.operands[0]]).index(v) for v in step.attrs["over"]}  # type: ignore[union-attr]
            return operands[0].max(tuple(over))
        case "mul" | "div" | "add" | "sub":
            sizes = {
                v: size
                for name, x in zip(step.operands, operands, strict=True)
                for v, size in zip(variables(dims[name]), x.shape, strict=True)
            }
            ones = np.ones([sizes[dim.variable] for dim in result])  # a last tile may be smaller
            wide = [
                np.einsum(f"{s},{target}->{target}", x, ones)
                for s, x in zip(subscripts, operands, strict=True)
            ]
            return _OF_TWO[step.op](*wide)
    raise NotImplementedError(step.op)


def run_kernel(kernel: Kernel, device: Arrays, dims: Mapping[str, Dims]) -> Arrays:
    block, tensors = kernel.block, block_tensors(kernel, dims)
    results = {s.output: np.full([d.size for d in s.dims], np.nan) for s in block.savers}
    for place in itertools.product(*map(range, block.grid)):
        kept: Arrays = {}
        maxima: Arrays = {}
        for iteration in range(block.loop):
            tiles: Arrays = {}
            for it in block.iterators:
                at = []
                for dim, tile in zip(dims[it.tensor], tensors.dims[it.output], strict=True):
                    number = 0
                    for axis, variable in enumerate(it.imap):
                        if variable == dim.variable:
                            number = number * block.grid[axis] + place[axis]
                    if it.fmap == dim.variable:
                        number = number * block.loop + iteration
                    at.append(slice(number * tile.size, (number + 1) * tile.size))
                tiles[it.output] = device[it.tensor][tuple(at)]
            for step in block.steps:
                if isinstance(step, RunningMax):
                    largest = move(step, tiles[step.operand], maxima, tensors.dims)
                    tiles[step.output] = largest
                elif tensors.stages[step.outputs[0]] is not BlockStage.AFTER:
                    run_step(step, tiles, tensors.dims)
                elif isinstance(step, Accumulate):
                    if step.rescale and step.output in kept:
                        fade = Operation("mul", (step.output, f"{step.rescale} fade"), "faded")
                        own = {**tensors.dims, fade.operands[1]: tensors.dims[step.rescale]}
                        whole = tensors.dims[step.output]
                        kept[step.output] = formula(fade, {**kept, **maxima}, own, whole)
                    add(step, tiles[step.operand], kept, variables(tensors.dims[step.operand]))
        finished = {**tiles, **kept}
        for step in block.steps:
            if tensors.stages[step.outputs[0]] is BlockStage.AFTER and not isinstance(
                step, Accumulate
            ):
                run_step(step, finished, tensors.dims)
        for saver in block.savers:
            tile_dims = tensors.dims[saver.tile]
            at = []
            for dim in saver.dims:
                own = next((d.size for d in tile_dims if d.variable == dim.variable), 1)
                index = 0
                for axis, variable in enumerate(saver.omap):
                    if variable == dim.variable:
                        index = index * block.grid[axis] + place[axis]
                at.append(slice(index * own, (index + 1) * own))
            order = [
                variables(tile_dims).index(v)
                for v in variables(saver.dims)
                if v in variables(tile_dims)
            ]
            tile = finished[saver.tile].transpose(order)
            target = results[saver.output][tuple(at)]
            results[saver.output][tuple(at)] = tile.reshape(target.shape)
    return results


def move(step: RunningMax, x: np.ndarray, maxima: Arrays, dims: Mapping[str, Dims]) -> np.ndarray:
    """Return a maximum so far; note it, and by what is multiplied that was measured by the one before."""
    over = tuple(variables(dims[step.operand]).index(v) for v in step.over)
    before = maxima.get(step.output, np.array(-np.inf))
    maxima[step.output] = np.maximum(x.max(over), before)
    maxima[f"{step.output} fade"] = np.exp(before - maxima[step.output])
    return maxima[step.output]


def run_step(step: BlockStep, tiles: Arrays, dims: Mapping[str, Dims]) -> None:
    if isinstance(step, ThreadGraph):
        for operation in step.steps:
            tiles[operation.output] = formula(operation, tiles, dims, dims[operation.output])
    elif isinstance(step, Operation):
        tiles[step.output] = formula(step, tiles, dims, dims[step.output])


def add(step: Accumulate, x: np.ndarray, kept: Arrays, names: tuple[str, ...]) -> None:
    if step.kind == "sum" and step.output in kept:
        kept[step.output][tuple(map(slice, x.shape))] += x
    elif step.kind == "sum":
        kept[step.output] = np.array(x)
    elif step.kind == "max":
        kept[step.output] = np.maximum(x, kept.get(step.output, x))
    else:
        (variable,) = step.along
        before = [kept[step.output]] if step.output in kept else []
        kept[step.output] = np.concatenate([*before, x], axis=names.index(variable))
