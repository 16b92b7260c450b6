"""Mutants of a μGraph: other maps, operands, loops, reductions and maxima, each well-formed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.graph.dims import Dim, Dims, variables
from relational_tensat.mugraph.graph.mugraph import (
    Accumulate,
    BlockGraph,
    InputIterator,
    Kernel,
    MuGraph,
    Operation,
    RunningMax,
    Saver,
)
from relational_tensat.mugraph.graph.validity import block_tensors, kernel_tensors, saved_dims


def mutants(graph: MuGraph, count: int, seed: int) -> Iterator[MuGraph]:
    """Yield so many well-formed mutants whose outputs have the sizes of the graph's."""
    draw = random.Random(seed)
    wanted = [kernel_tensors(graph)[name] for name in graph.outputs]
    while count:
        mutant = graph
        try:
            for _ in range(draw.choice((1, 1, 2))):
                mutant = _mutated(mutant, draw)
            mutant, dims = _resaved(mutant)
            if mutant == graph or [set(dims[n]) for n in mutant.outputs] != [
                set(w) for w in wanted
            ]:
                continue
            kernel_tensors(mutant)
        except InputError:
            continue
        count -= 1
        yield mutant


def _mutated(graph: MuGraph, draw: random.Random) -> MuGraph:
    steps = list(graph.steps)
    place = draw.randrange(len(steps))
    step = steps[place]
    if isinstance(step, Kernel):
        change = draw.choice((_map, _operands, _operator, _loop, _stored, _accumulation))
        steps[place] = replace(step, block=change(step.block, draw, graph))
    return replace(graph, steps=tuple(steps))


def _map(block: BlockGraph, draw: random.Random, graph: MuGraph) -> BlockGraph:
    iterators = list(block.iterators)
    place = draw.randrange(len(iterators))
    it = iterators[place]
    choices = ["", *variables(kernel_tensors(graph)[it.tensor])]
    if draw.random() < 0.5 or not it.imap:
        iterators[place] = replace(it, fmap=draw.choice(choices))
    else:
        imap = list(it.imap)
        imap[draw.randrange(len(imap))] = draw.choice(choices)
        iterators[place] = InputIterator(it.tensor, it.output, tuple(imap), it.fmap)
    return replace(block, iterators=tuple(iterators))


def _operands(block: BlockGraph, draw: random.Random, graph: MuGraph) -> BlockGraph:
    """Let a step read another tensor, or its operands the other way round."""
    steps = list(block.steps)
    place = draw.randrange(len(steps))
    before = [it.output for it in block.iterators] + [o for s in steps[:place] for o in s.outputs]
    step = steps[place]
    if isinstance(step, Operation):
        operands = list(step.operands)
        if len(operands) == 2 and draw.random() < 0.4:
            operands.reverse()
        else:
            operands[draw.randrange(len(operands))] = draw.choice(before)
        steps[place] = replace(step, operands=tuple(operands))
    elif isinstance(step, Accumulate) and step.rescale and draw.random() < 0.5:
        maxima = [s.output for s in steps if isinstance(s, RunningMax)]
        steps[place] = replace(step, rescale=draw.choice(["", *maxima]))
    elif isinstance(step, (Accumulate, RunningMax)):
        steps[place] = replace(step, operand=draw.choice(before))
    return replace(block, steps=tuple(steps))


def _operator(block: BlockGraph, draw: random.Random, graph: MuGraph) -> BlockGraph:
    steps = list(block.steps)
    place = draw.randrange(len(steps))
    step = steps[place]
    if isinstance(step, Operation) and len(step.operands) == 2 and not step.attrs:
        steps[place] = replace(step, op=draw.choice(("add", "sub", "mul", "div")))
    elif isinstance(step, Operation) and step.op in ("exp", "relu", "silu"):
        steps[place] = replace(step, op=draw.choice(("exp", "square", "relu")))
    elif isinstance(step, Operation) and "over" in step.attrs:
        names = sorted({v for dims in graph.inputs.values() for v in variables(dims)})
        steps[place] = replace(step, attrs={**step.attrs, "over": (draw.choice(names),)})
    elif isinstance(step, RunningMax):
        names = sorted({v for dims in graph.inputs.values() for v in variables(dims)})
        steps[place] = replace(step, over=(draw.choice(names),))
    return replace(block, steps=tuple(steps))


def _loop(block: BlockGraph, draw: random.Random, graph: MuGraph) -> BlockGraph:
    """Another number of iterations; where the maps fit it, nothing changes, so one map does, too."""
    return _map(replace(block, loop=draw.choice((1, 2, 4))), draw, graph)


def _stored(block: BlockGraph, draw: random.Random, graph: MuGraph) -> BlockGraph:
    """Store another tensor, or to other parts of the result."""
    savers = list(block.savers)
    place = draw.randrange(len(savers))
    saver = savers[place]
    if draw.random() < 0.5:
        made = [output for step in block.steps for output in step.outputs]
        savers[place] = replace(saver, tile=draw.choice(made))
    else:
        omap = list(saver.omap)
        draw.shuffle(omap)
        savers[place] = replace(saver, omap=tuple(omap))
    return replace(block, savers=tuple(savers))


def _accumulation(block: BlockGraph, draw: random.Random, graph: MuGraph) -> BlockGraph:
    steps = list(block.steps)
    for place in draw.sample(range(len(steps)), len(steps)):
        step = steps[place]
        if isinstance(step, Accumulate):
            names = sorted({v for dims in graph.inputs.values() for v in variables(dims)})
            steps[place] = replace(step, kind="concat", along=(draw.choice(names),))
            break
    return replace(block, steps=tuple(steps))


def _resaved(graph: MuGraph) -> tuple[MuGraph, dict[str, Dims]]:
    """Return a graph whose results have the dims that blocks give them, and the dims of all tensors.

    Raises:
        InputError: it is not well-formed.
    """
    steps: list[Operation | Kernel] = []
    dims = dict(graph.inputs)
    for step in graph.steps:
        assert isinstance(step, Kernel)
        block = step.block
        tiles = block_tensors(replace(step, block=replace(block, savers=())), dims).dims
        savers = tuple(_with_dims(s, tiles, block) for s in block.savers)
        step = replace(step, block=replace(block, savers=savers))
        steps.append(step)
        dims.update({saver.output: saver.dims for saver in savers})
    return replace(graph, steps=tuple(steps)), dims


def _with_dims(saver: Saver, tiles: dict[str, tuple[Dim, ...]], block: BlockGraph) -> Saver:
    sizes = saved_dims(saver, tiles[saver.tile], block.grid)
    order = [d.variable for d in saver.dims]
    names = sorted(sizes, key=lambda v: order.index(v) if v in order else -1)
    return replace(saver, dims=tuple(Dim(name, sizes[name]) for name in names))
