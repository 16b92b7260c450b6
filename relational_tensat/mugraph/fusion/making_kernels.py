"""Kernels for parts of a model, each verified, with a rule that lets it stand for the part."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from relational_tensat.base.errors import VerificationError
from relational_tensat.mugraph.fusion.candidates import Candidate
from relational_tensat.mugraph.fusion.chain_program import row_kernel
from relational_tensat.mugraph.fusion.kernel_rule import kernel_rule
from relational_tensat.mugraph.fusion.nodes_check import computes_nodes
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel, Shape
from relational_tensat.mugraph.fusion.seeking import Effort, Seeker, UnfitError
from relational_tensat.mugraph.fusion.worth import Worth
from relational_tensat.mugraph.graph.cores import core, with_windows
from relational_tensat.mugraph.graph.dims import variables
from relational_tensat.mugraph.graph.mugraph import BlockGraph, Kernel, MuGraph
from relational_tensat.mugraph.graph.mugraph_json import content_hash
from relational_tensat.mugraph.graph.well_formed import kernel_tensors
from relational_tensat.mugraph.verify.masks import masks_of
from relational_tensat.mugraph.verify.stability import stabilized
from relational_tensat.mugraph.verify.verifying_mugraphs import verify_mugraph
from relational_tensat.tensor import TensorType

_SEED = 2_000_000


class Maker:
    """Makes kernels: functions and reductions by rows, regions with products by search.

    Args:
        worth: what they are modelled, or measured, to take.
        seeker: searches.
    """

    def __init__(self, worth: Worth, seeker: Seeker) -> None:
        self._worth = worth
        self._seeker = seeker
        self._kernels: dict[str, OwnKernel] = {}

    @property
    def kernels(self) -> tuple[OwnKernel, ...]:
        """All that were made."""
        return tuple(self._kernels.values())

    def make(self, candidate: Candidate, effort: Effort) -> OwnKernel:
        """Return the kernel of a candidate, with a rule for it.

        Raises:
            RelationalTensatError: there is none; says why.
        """
        if not computes_nodes(candidate, _SEED):
            raise VerificationError("its program computes something else")
        device = self._worth.device(candidate)
        if candidate.has_products:
            assert device is not None
            graph = self._seeker.seek(candidate.program, device, effort)
        else:
            graph = _by_rows(candidate.program)
        graph = _stored_in_order(graph, candidate)
        cost_us = self._worth.kernel_us(candidate, graph)
        if cost_us is not None and not math.isfinite(cost_us):
            raise UnfitError("a block of it is too large")
        kernel = self._with_rule(candidate, graph, cost_us)
        self._kernels[kernel.key] = kernel
        return kernel

    def _with_rule(self, candidate: Candidate, graph: MuGraph, cost_us: float | None) -> OwnKernel:
        """Return a kernel with one more rule, unless it has this one already."""
        key = f"k{content_hash(graph)}"
        known = self._kernels.get(key)
        rules = known.rules if known else ()
        name = f"fused-{key}-{len(rules) + 1}" if rules else f"fused-{key}"
        rule = kernel_rule(candidate, key, name)
        if any(replace(rule, name=other.name) == other for other in rules):
            assert known is not None
            return known
        given = enumerate(candidate.program.inputs)
        may_be = masks_of(candidate.program)
        masks = {name: tuple(f"x{place}" for place, tensor in given if tensor in may_be)}
        return OwnKernel(
            key, graph, (*rules, rule), candidate.dtype,
            tuple(_shape(candidate, name) for name in candidate.inputs),
            tuple(_shape(candidate, name) for name in candidate.outputs), cost_us,
            {**(known.masks if known else {}), **masks},
        )  # fmt: skip


def _shape(candidate: Candidate, name: str) -> Shape:
    kind = candidate.graph.types[name]
    assert isinstance(kind, TensorType)
    return kind.shape


def _by_rows(program: MuGraph) -> MuGraph:
    """Return the verified kernel that computes a program row by row.

    Raises:
        RelationalTensatError: there is none, or it is wrong.
    """
    graph = with_windows(stabilized(row_kernel(core(program))), program)
    verification = verify_mugraph(program, graph, _SEED)
    if not verification.passed or not verification.is_stable:
        raise VerificationError("the kernel computes something else")
    return graph


def _stored_in_order(graph: MuGraph, candidate: Candidate) -> MuGraph:
    """Return a μGraph whose results lie in memory as the model has them.

    Raises:
        UnfitError: it has other index variables than its program, which is not stored as the model is.
    """
    order_of = dict(zip(graph.outputs, candidate.orders, strict=True))
    own, dims = kernel_tensors(graph), kernel_tensors(candidate.program)
    for name, of_program in zip(graph.outputs, candidate.program.outputs, strict=True):
        if not {*variables(own[name])} <= {*order_of[name]}:
            if variables(dims[of_program]) != order_of[name]:
                raise UnfitError("its results have other index variables than its program's")
            del order_of[name]  # compared with the program's as they lie in memory
    steps = tuple(
        replace(step, block=_with_order(step.block, order_of)) if isinstance(step, Kernel) else step
        for step in graph.steps
    )
    return replace(graph, steps=steps)


def _with_order(block: BlockGraph, order_of: Mapping[str, tuple[str, ...]]) -> BlockGraph:
    savers = []
    for saver in block.savers:
        order = order_of.get(saver.output)
        if order is not None:
            dims = sorted(saver.dims, key=lambda dim: order.index(dim.variable))
            saver = replace(saver, dims=tuple(dims))
        savers.append(saver)
    return replace(block, savers=tuple(savers))
