"""What a graph is, in few bytes: whether a model is still the one that a run started with."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import replace

import numpy as np

from relational_tensat.formats.json_write import graph_text
from relational_tensat.tensor.graph import Graph
from relational_tensat.tensor.types import Array

#: A model whose weights have no more bytes than this is stored in the database whole.
MOST_KEPT_BYTES = 1 << 20


def graph_digest(graph: Graph) -> str:
    """Return a hash of all that a graph contains, the elements of its weights included.

    These go in as CRC-32: it distinguishes a changed file from an unchanged one, at memory's pace.
    """
    digest = hashlib.sha256(graph_text(_without_data(graph)).encode())
    for name, weight in graph.weights.items():
        if weight.data is not None:
            digest.update(f"{name} {_checksum(np.asarray(weight.data))}\n".encode())
    return digest.hexdigest()


def small_copy(graph: Graph) -> str | None:
    """Return the graph as JSON if its weights have few bytes; else it must be read from its file."""
    arrays = [
        np.asarray(weight.data) for weight in graph.weights.values() if weight.data is not None
    ]
    size = sum(array.itemsize if _is_uniform(array) else array.nbytes for array in arrays)
    return graph_text(graph) if size <= MOST_KEPT_BYTES else None


def _without_data(graph: Graph) -> Graph:
    return replace(
        graph, weights={k: replace(w, data=None) for k, w in graph.weights.items()}, origin=None
    )


def _checksum(array: Array) -> int:
    """Return a checksum of the elements; of a view that repeats one of them, of that."""
    content = array.reshape(-1)[:1] if _is_uniform(array) else array
    if content.dtype.hasobject:
        return zlib.crc32(repr(content.tolist()).encode())
    return zlib.crc32(np.ascontiguousarray(content).reshape(-1).view(np.uint8).data)


def _is_uniform(array: Array) -> bool:
    return array.size > 0 and not any(array.strides)
