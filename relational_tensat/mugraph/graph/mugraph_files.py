"""Files of μGraphs: this package's JSON, one graph, or Mirage's, one or a list; perhaps compressed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import whole_content
from relational_tensat.mugraph.graph.mirage_json import from_mirage
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import decoded, encoded


def load_mugraphs(path: Path) -> list[MuGraph]:
    """Return the μGraphs of a file, of whichever of the two formats.

    Raises:
        InputError: it cannot be read, is no JSON, or a graph in it is malformed.
    """
    document = _read_json(path)
    if not isinstance(document, list):
        return [decoded(document, str(path))]
    name = path.name.removesuffix(".gz").removesuffix(".json")
    is_one = all(isinstance(part, dict) for part in document)
    graphs = []
    for place, one in enumerate([document] if is_one else document):
        try:
            graphs.append(from_mirage(one, name))
        except InputError as error:
            raise InputError(f"{path}: graph {place}: {error}") from error
    return graphs


def load_mugraph(path: Path, place: int = 0) -> MuGraph:
    """Return one μGraph of a file.

    Raises:
        InputError: as ``load_mugraphs``, or there is none at that place.
    """
    graphs = load_mugraphs(path)
    if place >= len(graphs):
        raise InputError(f"{path}: no graph {place}, the file has {len(graphs)}")
    return graphs[place]


def save_mugraph(graph: MuGraph, path: Path) -> None:
    """Write a μGraph as JSON."""
    text = json.dumps(encoded(graph), indent=1, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")


def _read_json(path: Path) -> Any:
    try:
        content = whole_content(path)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    if not content.strip():
        raise InputError(f"{path}: the file is empty")
    try:
        return json.loads(content)
    except ValueError as error:
        raise InputError(f"{path}: no JSON: {error}") from error
    except RecursionError as error:
        raise InputError(f"{path}: no μGraph: lists within lists, too many") from error
