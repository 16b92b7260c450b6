"""An egglog program from standard input, as JSON, run in this process; what it took, as JSON.

Nothing of what this project measures is imported: the process's memory and CPU seconds are egglog's.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from egglog import bindings

from bench.engines.peak import peak_mib

#: Of the thread that runs it: egglog's own functions call themselves as deep as terms are.
_STACK_BYTES = 1 << 30


def main() -> None:
    """Run the program; the process ends without tidying up, as what is measured has been."""
    program = json.load(sys.stdin)
    egraph = bindings.EGraph()

    def run(commands: list[str]) -> float:
        start_s = time.process_time()
        for command in commands:
            egraph.run_program(*egraph.parse_program(command))
        return time.process_time() - start_s

    compile_cpu_s = run(program["rules"])
    cpu_s = run(program["graph"]) + run(program["schedule"])
    taken = {
        "cpu_s": cpu_s,
        "compile_cpu_s": compile_cpu_s,
        "process_cpu_s": time.process_time(),
        "peak_mib": peak_mib(),
    }
    functions = [f for name, f in egraph.freeze().functions.items() if _is_constructor(name)]
    e_nodes = sum(len(function.rows) for function in functions)
    classes = {str(row.output) for function in functions for row in function.rows}
    print(json.dumps({**taken, "e_nodes": e_nodes, "e_classes": len(classes)}), flush=True)
    os._exit(0)


def _is_constructor(name: str) -> bool:
    return name not in ("node", "shape") and not name.startswith("$")


if __name__ == "__main__":
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=main)
    thread.start()
    thread.join()
    sys.exit(1)  # it has printed why it did not end the process itself
