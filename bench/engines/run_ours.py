"""A task from standard input, as JSON, explored by this engine in this process; what it took, as JSON."""

from __future__ import annotations

import gc

#: As the command line has it: a run keeps nearly all that it makes, and so do imports.
gc.set_threshold(100_000)

# ruff: noqa: E402
import json
import sys
import time
from contextlib import closing

from bench.engines.peak import peak_mib
from bench.engines.works import K_MULTI, Task
from relational_tensat.base.process import ProcessOptions
from relational_tensat.egraph import EGraph
from relational_tensat.explore import ExplorationOptions, explore


def main() -> None:
    """Explore; what making the graph takes is in neither engine's seconds, but for the process's."""
    values = json.load(sys.stdin)
    task = Task(values["work"], values["size"])
    graph = task.graph()
    start_s = time.process_time()
    rules = task.rules()
    compiled_s = time.process_time()
    options = ExplorationOptions(
        task.iterations, K_MULTI, node_limit=10**9, time_limit_s=None, cycle_filter="none"
    )
    with closing(EGraph.create(graph, process=ProcessOptions(memory_limit="6GB"))) as egraph:
        explore(egraph, rules, options)
        explored_s = time.process_time()
        taken = {
            "cpu_s": explored_s - compiled_s,
            "compile_cpu_s": compiled_s - start_s,
            "process_cpu_s": explored_s,
            "peak_mib": peak_mib(),
        }
        e_nodes, e_classes = egraph.counts()
    print(json.dumps({**taken, "e_nodes": e_nodes, "e_classes": e_classes}))


if __name__ == "__main__":
    main()
