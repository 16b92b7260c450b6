"""Times of operators without a price: taken once, in the original, as onnxruntime runs it.

A session tells how long each of its nodes took. The least of a few runs counts. A node with bodies is left
to its price, which follows what is in them.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import temporary_folder
from relational_tensat.cost import Configuration
from relational_tensat.cost.cache import CostCache
from relational_tensat.cost.device import TimingSample
from relational_tensat.cost.key import configuration_of, configuration_text
from relational_tensat.cost.opener import open_processor
from relational_tensat.formats.frontend import file_digest
from relational_tensat.tensor import Array, Graph, Node, tensors_of
from relational_tensat.tensor.operators.opaque import WITH_BODIES
from relational_tensat.tensor.uses import weight_bytes
from relational_tensat.verify.inputs import RandomWeights, draw_inputs
from relational_tensat.verify.sessions import Session, open_session, runtime_errors, session_feeds

#: The first runs are slow.
_RUNS, _WARM_UP_RUNS = 5, 1
#: The share of the time that a thread runs on an idle machine, files that are opened included.
_IDLE = 0.8
#: After so many seconds no further run begins, but for one after the first ones.
_ENOUGH_S = 0.5
#: Nodes that read and write no more take what a call takes, which their price has, too.
_FEW_BYTES = 1 << 13
#: Models with more weights are not opened once more for this.
_MOST_BYTES = 1 << 30


def opaque_times_us(
    file: Path,
    graph: Graph,
    inputs: Mapping[str, Array],
    threads: int,
    seed: int,
    costs: CostCache,
    *,
    again: bool = False,
) -> dict[Configuration, float]:
    """Return what opaque operators of a file take, as far as onnxruntime runs it on inputs that are drawn.

    Times of an idle machine stay. A second run that took its own would price the model otherwise, choose
    another graph, and time and race all parts of that.

    Args:
        graph: as it was read from the file, at the sizes that it is run at.
        inputs: given ones.
        costs: where times are kept.
        again: whether they are taken in any case.
    """
    nodes = {node.outputs[0]: node for node in graph.nodes if _is_timed(node, graph)}
    if not nodes or weight_bytes(graph) > _MOST_BYTES:
        return {}
    all_of: defaultdict[Configuration, list[str]] = defaultdict(list)
    for name, node in nodes.items():
        kinds = tuple(graph.types[value] for value in node.inputs)
        results = tuple(graph.types[value] for value in node.outputs)
        output: Any = results
        all_of[configuration_of(node.op, kinds, output, node.attrs)].append(name)
    key = open_processor(threads).key
    digest = file_digest(file)
    codes = {each: _code(digest, each) for each in all_of}
    if not again:
        known = costs.find_compiled(key, [*codes.values()], _BY_WHAT)
        if known:
            return {each: known[code].median_us for each, code in codes.items() if code in known}
    wall_s, cpu_s = time.perf_counter(), time.process_time()
    times_us = _node_times_us(file, graph, inputs, threads, seed)
    wall_s, cpu_s = time.perf_counter() - wall_s, time.process_time() - cpu_s
    found = {
        each: sum(own) / len(own)
        for each, names in all_of.items()
        if (own := [times_us[name] for name in names if name in times_us])
    }
    if found and not again and cpu_s > _IDLE * wall_s:
        samples = {codes[each]: TimingSample(us, us, us, _RUNS) for each, us in found.items()}
        costs.keep_compiled(key, _BY_WHAT, samples)
    return found


#: No compiler, but onnxruntime, with all that its device's key says.
_BY_WHAT = "operators of a file, as written"


def _code(file: str, configuration: Configuration) -> str:
    return hashlib.sha256(f"{file}\n{configuration_text(configuration)}".encode()).hexdigest()


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
