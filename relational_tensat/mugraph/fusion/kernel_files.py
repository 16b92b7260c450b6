"""A folder of kernels: for each its μGraph and its code, and a list of them."""

from __future__ import annotations

import json
from pathlib import Path

from relational_tensat.base.errors import InputError
from relational_tensat.mugraph.fusion.fusing import fused_chains
from relational_tensat.mugraph.graph.mugraph_files import save_mugraph
from relational_tensat.mugraph.kernels.cuda.compile_cuda import headers
from relational_tensat.mugraph.kernels.emission import SUFFIXES, TARGETS, emit
from relational_tensat.tensor import Graph

#: The list of kernels in a folder.
INDEX = "kernels.json"


def write_kernels(original: Graph, chosen: Graph, folder: Path) -> int:
    """Write the kernels that a graph has; return how many there are.

    Args:
        original: the model, whose chains they are of.
        chosen: the graph, with nodes ``fused``.
        folder: is made if it is not there.

    Raises:
        InputError: nothing can be written there.
    """
    keys = {str(node.attrs["mugraph"]) for node in chosen.nodes if node.op == "fused"}
    made = {chain.key: chain.graph for chain in fused_chains(original) if chain.key in keys}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for key, graph in made.items():
            save_mugraph(graph, folder / f"{key}.json")
            for target in TARGETS:
                (emitted,) = emit(graph, target, "float32")
                (folder / f"{key}{SUFFIXES[target]}").write_text(emitted.source, encoding="utf-8")
        for name, text in headers().items() if made else ():
            (folder / name).write_text(text, encoding="utf-8")
        index = {"format": "relational_tensat kernels 1", "kernels": sorted(made)}
        (folder / INDEX).write_text(json.dumps(index, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror or error}") from error
    return len(made)
