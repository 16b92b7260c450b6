"""Times of operators without a price: taken once, in the original, as onnxruntime runs it.

A session tells how long each of its nodes took. The least of a few runs counts. A node with bodies is left
to its price, which follows what is in them.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import temporary_folder
from relational_tensat.cost import Configuration
from relational_tensat.cost.key import configuration_of
from relational_tensat.tensor import Array, Graph, Node, tensors_of
from relational_tensat.tensor.operators.opaque import WITH_BODIES
from relational_tensat.tensor.uses import weight_bytes
from relational_tensat.verify.inputs import RandomWeights, draw_inputs
from relational_tensat.verify.sessions import Session, open_session, runtime_errors, session_feeds

#: The first runs are slow.
_RUNS, _WARM_UP_RUNS = 5, 1
#: After so many seconds no further run begins, but for one after the first ones.
_ENOUGH_S = 0.5
#: Nodes that read and write no more take what a call takes, which their price has, too.
_FEW_BYTES = 1 << 13
#: Models with more weights are not opened once more for this.
_MOST_BYTES = 1 << 30


def opaque_times_us(
    file: Path, graph: Graph, inputs: Mapping[str, Array], threads: int, seed: int
) -> dict[Configuration, float]:
    """Return what opaque operators of a file take, as far as onnxruntime runs it on inputs that are drawn.

    Args:
        graph: as it was read from the file, at the sizes that it is run at.
        inputs: given ones.
    """
    nodes = {node.outputs[0]: node for node in graph.nodes if _is_timed(node, graph)}
    if not nodes or weight_bytes(graph) > _MOST_BYTES:
        return {}
    times_us = _node_times_us(file, graph, inputs, threads, seed)
    by_configuration: defaultdict[Configuration, list[float]] = defaultdict(list)
    for name, node in nodes.items():
        if name in times_us:
            kinds = tuple(graph.types[value] for value in node.inputs)
            results = tuple(graph.types[value] for value in node.outputs)
            output: Any = results
            configuration = configuration_of(node.op, kinds, output, node.attrs)
            by_configuration[configuration].append(times_us[name])
    return {each: sum(us) / len(us) for each, us in by_configuration.items()}


def _is_timed(node: Node, graph: Graph) -> bool:
    if node.op != "opaque" or node.attrs["op_type"] in WITH_BODIES:
        return False
    kinds = [graph.types[name] for name in (*node.inputs, *node.outputs)]
    return sum(part.nbytes for kind in kinds for part in tensors_of(kind)) > _FEW_BYTES


def _node_times_us(
    file: Path, graph: Graph, inputs: Mapping[str, Array], threads: int, seed: int
) -> dict[str, float]:
    """Return the microseconds of a file's nodes by their first outputs; none where it cannot be run."""
    from relational_tensat.formats.onnx_external import map_file, read_skeleton  # both need onnx

    refusals: tuple[type[Exception], ...] = (InputError, *runtime_errors())
    model, _ = read_skeleton(map_file(file))
    if model.functions:
        return {}
    with temporary_folder() as folder:
        try:
            session = open_session(file, threads, Session.AS_WRITTEN, profile=folder / "profile")
            feeds = session_feeds(
                session, graph, draw_inputs(graph, seed, 0, inputs), RandomWeights(graph, seed, 0)
            )
            begun = time.perf_counter()
            for n_runs in range(1, _WARM_UP_RUNS + _RUNS + 1):
                session.run(None, feeds)
                if n_runs > _WARM_UP_RUNS and time.perf_counter() - begun > _ENOUGH_S:
                    break
            events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        except refusals:
            return {}
    # onnxruntime makes initializers of constants before it counts nodes
    nodes = [node for node in model.graph.node if node.op_type != "Constant" or node.domain]
    samples: defaultdict[int, list[float]] = defaultdict(list)
    for event in events:
        arguments = event.get("args", {})
        if event.get("cat") == "Node" and str(event.get("name", "")).endswith("_kernel_time"):
            place = int(arguments.get("node_index", -1))
            if 0 <= place < len(nodes):
                is_it = arguments.get("op_name") == nodes[place].op_type
                samples[place].append(float(event["dur"]) if is_it else float("nan"))
    return {
        next(filter(None, nodes[place].output)): min(us[_WARM_UP_RUNS:])
        for place, us in samples.items()
        # More, or of other operators: nodes of bodies have the same numbers.
        if len(us) == n_runs and not any(one != one for one in us)
    }
