"""Candidates that a search found, with sizes, and their cache: files of JSON by content hash.

Any number of processes may share the folder: a file is written aside and renamed, and two that search the
same write the same. A candidate from it is verified as if it had just been found, so nothing rests on the
folder's content; a file that cannot be read counts as missing.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import resource_dir, unless_full, write_aside
from relational_tensat.base.folders import CACHE_VARIABLE, user_cache
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import (
    content_hash,
    decoded,
    encoded,
    load_mugraph,
    save_mugraph,
)
from relational_tensat.mugraph.search.kernel_search import LevelCounts, SearchResult
from relational_tensat.mugraph.search.search_options import SearchOptions
from relational_tensat.mugraph.sizes.splits import Sized
from relational_tensat.mugraph.sizes.waves import Multiprocessors, a100


@dataclass(frozen=True, slots=True)
class SizedCandidates:
    """μGraphs with sizes, and how large the search for them was.

    Attributes:
        graphs: cheapest first; of candidates that were kept from before, only the first ones.
        fitting: how many fit shared memory.
        routes: ways of computing the program that were found.
        levels, abstract_e_nodes, abstract_e_classes, is_complete: see ``SearchResult``.
        complete_to_us: of what takes longer, some may have been left out.
        is_kept: whether they are from a search before.
    """

    graphs: tuple[Sized, ...]
    fitting: int
    routes: int
    levels: tuple[LevelCounts, ...]
    abstract_e_nodes: int
    abstract_e_classes: int
    is_complete: bool
    complete_to_us: float = math.inf
    is_kept: bool = False


def candidates_of(
    result: SearchResult, graphs: Sequence[Sized], complete_to_us: float = math.inf
) -> SizedCandidates:
    """Return the graphs of a search's result, cheapest first, with what is known of the search."""
    return SizedCandidates(
        tuple(graphs),
        len(graphs),
        len(result.routes),
        result.levels,
        result.abstract_e_nodes,
        result.abstract_e_classes,
        result.is_complete,
        complete_to_us,
    )


#: So many candidates are kept of a search, the cheapest ones; where all are refused, it is made again.
MOST_KEPT = 16
#: The code that a search's result depends on, below ``relational_tensat/mugraph``.
_ROOMS = ("graph", "search", "sizing")
#: Options that change no result of a search that ran to its end.
_NO_MATTER = ("time_limit_s", "on")


class CandidateCache:
    """A folder of candidates."""

    def __init__(self, folder: Path) -> None:
        """Open it, and make it if it is not there: a folder that cannot keep results fails before the
        search.

        Raises:
            InputError: it cannot be made.
        """
        self._folder = folder
        try:
            with unless_full():
                folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(
                f"{folder}: cannot be made: {reason} (${CACHE_VARIABLE} names another folder)"
            ) from error

    @classmethod
    def of_user(cls) -> CandidateCache:
        """Return the cache of the user who runs this."""
        return cls(user_cache() / "kernels")

    def find(
        self, program: MuGraph, options: SearchOptions, device: Multiprocessors | None = None
    ) -> SizedCandidates | None:
        """Return what a search like this found before; None where there was none."""
        path = self._file(program, options, device)
        try:
            return _candidates(json.loads(path.read_text(encoding="utf-8")), str(path))
        except (OSError, ValueError, KeyError, TypeError, InputError):
            return None

    def keep(
        self,
        program: MuGraph,
        options: SearchOptions,
        device: Multiprocessors | None,
        candidates: SizedCandidates,
    ) -> None:
        """Keep what a search found, if it ran to its end.

        Raises:
            InputError: the folder cannot be written.
        """
        if not candidates.is_complete:
            return
        path = self._file(program, options, device)
        with unless_full(), write_aside(path) as aside:
            text = json.dumps(_content(candidates))
            (aside / path.name).write_text(text, encoding="utf-8")

    def keep_found(self, graph: MuGraph) -> str:
        """Keep the best μGraph of a search, verified; return its key, by which ``found`` has it.

        Raises:
            InputError: the folder cannot be written.
        """
        key = f"k{content_hash(graph)}"
        path = self._found(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        with write_aside(path) as aside:
            save_mugraph(graph, aside / path.name)
        return key

    def found(self, key: str) -> MuGraph:
        """Return the μGraph of a key.

        Raises:
            InputError: none is kept, or its file is malformed.
        """
        path = self._found(key)
        if not path.exists():
            raise InputError(f"{key}: no such file, and no kernel of that key in {path.parent}")
        return load_mugraph(path)

    def _found(self, key: str) -> Path:
        return self._folder / "found" / f"{key}.json"

    def _file(
        self, program: MuGraph, options: SearchOptions, device: Multiprocessors | None
    ) -> Path:
        matters = {key: value for key, value in asdict(options).items() if key not in _NO_MATTER}
        device_text = repr(device or a100())
        key = (
            content_hash(program),
            program.name,
            sorted(matters.items()),
            device_text,
            _code_hash(),
        )
        return self._folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}.json"


@cache
def _code_hash() -> str:
    """Return the hash of the code that searches: candidates of other code are not used."""
    here = Path(__file__).parent
    files = [path for room in _ROOMS for path in sorted((here / room).glob("*.py"))]
    files += sorted((resource_dir("sql") / "mugraph").glob("*.sql"))
    files += sorted((resource_dir("rules") / "mugraph").glob("*.rules"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.parent.name}/{path.name}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _content(candidates: SizedCandidates) -> dict[str, Any]:
    graphs = [
        {"cost_us": made.cost_us, "graph": encoded(made.graph)}
        for made in candidates.graphs[:MOST_KEPT]
    ]
    kept = candidates
    if len(candidates.graphs) > MOST_KEPT:
        last_us = candidates.graphs[MOST_KEPT - 1].cost_us
        kept = replace(kept, complete_to_us=min(kept.complete_to_us, last_us))
    return {**asdict(replace(kept, graphs=())), "graphs": graphs}


def _candidates(content: dict[str, Any], where: str) -> SizedCandidates:
    """Return candidates from a file's content.

    Raises:
        InputError, KeyError, TypeError, ValueError: it is not such a file.
    """
    graphs = tuple(
        Sized(decoded(made["graph"], where), float(made["cost_us"])) for made in content["graphs"]
    )
    return SizedCandidates(
        graphs,
        int(content["fitting"]),
        int(content["routes"]),
        tuple(LevelCounts(**level) for level in content["levels"]),
        int(content["abstract_e_nodes"]),
        int(content["abstract_e_classes"]),
        is_complete=True,
        complete_to_us=float(content["complete_to_us"]),
        is_kept=True,
    )
