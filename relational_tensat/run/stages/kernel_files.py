"""Files with kernels: which of the parts that gain become kernels, and the file that has them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import onnx

from relational_tensat.base.files import folder_beside
from relational_tensat.custom_ops.calls import ops_of_file
from relational_tensat.custom_ops.function_check import compared_library, functions_of
from relational_tensat.custom_ops.library import KernelOp
from relational_tensat.custom_ops.overrides import OVERRIDES, can_override, override_library
from relational_tensat.custom_ops.parts import override_kernel
from relational_tensat.custom_ops.places import disjoint_places, parts_in, with_places
from relational_tensat.custom_ops.timed_part import TimedPart
from relational_tensat.formats import save_model
from relational_tensat.formats.frontend import file_digest
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.rules.backends.expand_to_onnx import expand_to_onnx
from relational_tensat.run.backend_costs import BackendCosts
from relational_tensat.run.reports import SizedResult
from relational_tensat.run.stages.part_prices import prices_us as part_prices_us
from relational_tensat.run.values import CheckedRun
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    from relational_tensat.run.stages.sized_kernels import SizedKernels

#: The kernels that one extraction takes; all that gain alone; and the first with operators of onnxruntime
#: replaced.
WAYS = ("extracted", "gaining", "replacing")


@dataclass(frozen=True, slots=True, eq=False)
class KernelFile:
    """A file with kernels.

    Attributes:
        overrides: kernels by the operators of onnxruntime that they replace.
        parts: its kernels, each with how many calls there are.
        name: how it got its kernels, and the hash of what it is.
        sized: the graph at all sizes of a dynamic model.
    """

    graph: Graph
    file: Path
    ops: tuple[KernelOp, ...]
    libraries: tuple[Path, ...]
    overrides: Mapping[str, MuGraph]
    parts: Mapping[TimedPart, int]
    name: str
    sized: SizedResult | None = None


def kernel_file(
    checked: CheckedRun,
    way: str,
    parts: Sequence[TimedPart],
    prices_us: dict[TimedPart, float],
    plain: onnx.ModelProto,
    opset: int,
    sized: SizedKernels | None,
) -> KernelFile | None:
    """Return a file with kernels; None where it would have none.

    Args:
        way: one of ``WAYS``.
        parts, prices_us: that gain; see ``extracted``.
        plain: the file without kernels, but for its large weights.
        opset: of that file, and so of all that functions have of it.
        sized: makes it for all sizes of a dynamic model.

    Raises:
        InputError: a file cannot be written, or its library is not right.
    """
    graph = checked.folded if sized is None else sized.result.folded[0]
    run, output = checked.loaded.run, checked.loaded.output
    assert output is not None
    overrides: dict[str, MuGraph] = {}
    if way == "replacing":
        replaced = [name for name in OVERRIDES if can_override(name, plain)]
        overrides = {name: override_kernel(name, checked.loaded.cost) for name in replaced}
        own = {name.lower() for name in replaced}
        parts = [p for p in parts if own.isdisjoint(node.op for node in p.places[0].nodes)]
        if not overrides:
            return None
    result, is_gaining = None, way == "gaining"
    fused = graph if is_gaining else extracted(checked, graph, parts, prices_us)
    if sized is not None:
        taken = parts if is_gaining else parts_in(fused, parts)
        result = sized.written(disjoint_places(graph, taken))
        fused = result.folded[0]
    elif is_gaining:
        fused = with_places(graph, disjoint_places(graph, parts))
    kernels = [node for node in fused.nodes if node.op == "fused"]
    if not kernels and not overrides:
        return None
    file = run.files.enter_context(folder_beside(output)) / output.name  # alone, to be moved
    if result is None:
        save_model(fused, file, opset)
    else:
        result.save(file)
    counts = Counter(str(node.attrs["mugraph"]) for node in kernels)
    used = {part: counts[part.kernel.key] for part in parts if part.kernel.key in counts}
    ops = ops_of_file(file, fused, [part.kernel for part in used])
    libraries = [compared_library(ops, functions_of(file))] if ops else []
    libraries += [override_library(overrides)] if overrides else []
    content = " ".join([file_digest(file), *(library.parent.name for library in libraries)])
    name = f"{way} {hashlib.sha256(content.encode()).hexdigest()}"
    return KernelFile(fused, file, ops, tuple(libraries), overrides, used, name, result)


def extracted(
    checked: CheckedRun,
    graph: Graph,
    parts: Sequence[TimedPart],
    prices_us: dict[TimedPart, float],
) -> Graph:
    """Return the graph with the kernels that make it the cheapest.

    A kernel costs the share of its part's price that it takes of the part's time.

    Args:
        prices_us: of parts without kernels; those that are missing are added.
    """
    costs = checked.loaded.cost
    if not parts or not isinstance(costs, BackendCosts):
        return graph
    missing = [part for part in parts if part not in prices_us]
    if missing:
        found_us = part_prices_us([part.plain for part in missing], costs)
        prices_us.update(zip(missing, found_us, strict=True))
    own = [replace(part.kernel, cost_us=part.share * prices_us[part]) for part in parts]
    return expand_to_onnx(costs.with_kernels(graph, own), graph)
