"""What the extraction bench is given: e-graphs of the models, of other tools, and planted ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

from bench.extract.check import is_cyclic
from bench.extract.egraphs import Exploration, explored
from bench.extract.known_optimum import KINDS, planted
from bench.public_egraphs.families import generated
from relational_tensat.base.errors import InputError
from relational_tensat.extract.interchange import read_egraph_json
from relational_tensat.extract.problem import ExtractionProblem


@dataclass(frozen=True, eq=False)
class Instance:
    """An e-graph to extract from.

    Attributes:
        family: ``models``, ``gym``, ``planted`` or ``generated``.
        name: unique within the family.
        problem: costs in µs for the models, in the file's or the generator's unit otherwise.
        optimum: what is known to be the least cost (planted ones), or None.
        notes: how it came about.
    """

    family: str
    name: str
    problem: ExtractionProblem
    optimum: float | None = None
    notes: dict[str, Any] = field(default_factory=dict)

    def describe(self) -> dict[str, Any]:
        """Return what the results say about the e-graph."""
        return {
            "family": self.family,
            "instance": self.name,
            "e_nodes": self.problem.n_nodes,
            "e_classes": self.problem.n_classes,
            "edges": len(self.problem.child_idx),
            "cyclic": is_cyclic(self.problem),
            "optimum": self.optimum,
            "notes": self.notes,
        }


class Source(Protocol):
    """Where an instance comes from: it is made when its turn comes, in the process that uses it."""

    @property
    def name(self) -> str:
        """That of the instance."""
        ...

    def make(self) -> Instance:
        """Explore, read or draw the e-graph."""
        ...


@dataclass(frozen=True, slots=True)
class ModelSource:
    """A model's e-graph, from the folder if it was explored before.

    Attributes:
        fresh: explore again in any case.
    """

    exploration: Exploration
    folder: Path
    fresh: bool = False

    @property
    def name(self) -> str:
        """Model and k_multi."""
        cyclic = "" if self.exploration.cycle_filter == "efficient" else ", unfiltered"
        return f"{self.exploration.model} k={self.exploration.k_multi}{cyclic}"

    def make(self) -> Instance:
        """Explore or read the e-graph."""
        egraph = explored(self.exploration, self.folder, fresh=self.fresh)
        return Instance("models", self.name, egraph.problem, notes=egraph.notes)


@dataclass(frozen=True, slots=True)
class GymSource:
    """An e-graph file within a folder."""

    file: Path
    folder: Path

    @property
    def name(self) -> str:
        """The file within the folder."""
        return str(self.file.relative_to(self.folder).with_suffix(""))

    def make(self) -> Instance:
        """Read the e-graph.

        Raises:
            InputError: the file is not of the format.
            NoSolutionError: a root has no acyclic derivation.
        """
        egraph = read_egraph_json(self.file)
        egraph.check_derivable(str(self.file))
        return Instance("gym", self.name, egraph.problem)


@dataclass(frozen=True, slots=True)
class PlantedSource:
    """A planted e-graph."""

    n_nodes: int
    kind: str
    seed: int

    @property
    def name(self) -> str:
        """Kind and size."""
        return f"{self.kind} {self.n_nodes}"

    def make(self) -> Instance:
        """Draw the e-graph."""
        egraph = planted(self.n_nodes, self.seed, self.kind)
        notes = {"seed": self.seed, "kind": self.kind}
        return Instance("planted", self.name, egraph.problem, egraph.optimum, notes)


@dataclass(frozen=True, slots=True)
class GeneratedSource:
    """An e-graph of the kinds that public benchmarks have.

    Attributes:
        name: as ``generated_names`` has it.
    """

    name: str

    def make(self) -> Instance:
        """Generate the e-graph."""
        with TemporaryDirectory() as folder:
            file = Path(folder) / "egraph.json"
            file.write_text(json.dumps(generated(self.name)), encoding="utf-8")
            return Instance("generated", self.name, read_egraph_json(file).problem)


def gym_sources(folder: Path) -> list[GymSource]:
    """Return the e-graph files of a folder and its sub-folders (extraction-gym's layout), by path.

    Raises:
        InputError: there is no such folder, or no ``.json`` file in it.
    """
    files = sorted(folder.rglob("*.json")) if folder.is_dir() else []
    if not files:
        raise InputError(f"{folder}: expected a folder with e-graph files (.json) in it or below")
    return [GymSource(file, folder) for file in files]


def planted_sources(sizes: Sequence[int], seed: int) -> list[PlantedSource]:
    """Return, for each size, a planted e-graph of every kind."""
    return [PlantedSource(size, kind, seed) for size in sizes for kind in KINDS]
