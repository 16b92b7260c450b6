"""A folder of kernels: for each its μGraph and its code, and a list of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import write_aside
from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
from relational_tensat.mugraph.graph.mugraph_json import save_mugraph
from relational_tensat.mugraph.kernels.emission import SUFFIXES, TARGETS, emit
from relational_tensat.mugraph.kernels.emit_cuda import headers
from relational_tensat.tensor import Graph

#: The list of kernels in a folder.
INDEX = "kernels.json"
FORMAT = "relational_tensat kernels 3"
#: What makes them PyTorch's operators.
TORCH_MODULE = "torch_operators.py"
_TORCH_TEXT = '''"""This folder's kernels as PyTorch's operators relational_tensat::fused_KEY, by key."""

from pathlib import Path

from relational_tensat.torch_kernels import register

OPERATORS = register(Path(__file__).parent)
'''


def write_kernels(
    kernels: Iterable[OwnKernel], chosen: Graph, folder: Path, *, has_torch: bool = False
) -> int:
    """Write the kernels that a graph has, all or none; return how many there are.

    Args:
        kernels: those that there are for the model.
        chosen: the graph, with nodes ``fused``.
        folder: is made if it is not there.
        has_torch: write a module, too, that makes them PyTorch's operators.

    Raises:
        InputError: nothing can be written there.
    """
    keys = {str(node.attrs["mugraph"]) for node in chosen.nodes if node.op == "fused"}
    used = sorted((kernel for kernel in kernels if kernel.key in keys), key=lambda k: k.key)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be written: {error.strerror or error}") from error
    with write_aside(folder / INDEX) as aside:
        entries = {kernel.key: _write(kernel, aside) for kernel in used}
        for name, text in headers().items() if entries else ():
            (aside / name).write_text(text, encoding="utf-8")
        if has_torch:
            (aside / TORCH_MODULE).write_text(_TORCH_TEXT, encoding="utf-8")
        index = json.dumps({"format": FORMAT, "kernels": entries}, indent=1)
        (aside / INDEX).write_text(index + "\n", encoding="utf-8")
    return len(entries)


def _write(kernel: OwnKernel, folder: Path) -> dict[str, Any]:
    save_mugraph(kernel.graph, folder / f"{kernel.key}.json")
    targets = []
    for target, source in _sources(kernel):
        (folder / f"{kernel.key}{SUFFIXES[target]}").write_text(source, encoding="utf-8")
        targets.append(target)
    return {
        "dtype": kernel.dtype,
        "operands": kernel.operands,
        "results": kernel.results,
        "targets": targets,
    }


def _sources(kernel: OwnKernel) -> Iterator[tuple[str, str]]:
    """Yield the targets that can say a kernel, with its code: products are left to GPUs, for example."""
    for target in TARGETS:
        if target == "c" and kernel.dtype != "float32":
            continue
        try:
            emitted = emit(kernel.graph, target, kernel.dtype)
        except InputError:
            continue
        yield target, "\n".join(one.source for one in emitted)
