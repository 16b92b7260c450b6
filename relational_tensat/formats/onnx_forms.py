"""In which form each constant is written: its elements, or the nodes of the file that compute it.

Constants are written out, so that no node computes them at inference, unless that takes more bytes:
a transposed copy of a weight that is needed as it is, too, or a large tensor of equal elements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from relational_tensat.formats.onnx_opaque import input_names
from relational_tensat.formats.onnx_origin import Unit
from relational_tensat.tensor import Weight

#: So many bytes are always written out: a node that computes them takes about as many.
SMALL_BYTES = 128
#: What a constant takes in a file beside its elements and its name: type, dimensions, lengths.
_HEADER_BYTES = 16


@dataclass(frozen=True, slots=True)
class _Cone:
    """What a constant is computed from in the file: large constants, by nodes."""

    sources: set[str]
    units: dict[str, Unit]


@dataclass(frozen=True, slots=True)
class ConstantForms:
    """Decides how constants are written.

    Attributes:
        constants: all that are known, by name.
        written_out: those that the file has written out.
        units: what the file has to compute others, by their names.
    """

    constants: Mapping[str, Weight]
    written_out: Collection[str]
    units: Mapping[str, Unit]

    def computed(self, needed: Collection[str]) -> dict[str, Unit]:
        """Return the constants that stay computed, each with what computes it in the file.

        Values between these and what the file has written out are among them.

        Args:
            needed: the values that are needed, if all constants are written out.
        """
        cones = {name: self._cone(name) for name in needed if self._is_large(name)}
        known_cones = {name: cone for name, cone in cones.items() if cone is not None}
        computed: dict[str, Unit] = {}
        for group in _groups({name: cone.sources for name, cone in known_cones.items()}):
            group_cones = [known_cones[name] for name in group]
            sources = set[str]().union(*(cone.sources for cone in group_cones))
            units = {value: unit for cone in group_cones for value, unit in cone.units.items()}
            saved = sum(self._bytes(name) for name in sources if name not in needed)
            saved += sum(unit.node.ByteSize() for unit in dict.fromkeys(units.values()))
            if sum(map(self._bytes, group)) > saved:
                computed |= units
        return computed

    def _bytes(self, name: str) -> int:
        return self.constants[name].type.nbytes + len(name) + _HEADER_BYTES

    def _is_large(self, name: str) -> bool:
        weight = self.constants.get(name)
        return weight is not None and weight.data is not None and weight.type.nbytes > SMALL_BYTES

    def _cone(self, name: str) -> _Cone | None:
        """Return what a constant is computed from; None if it is written out, or not from constants."""
        sources: set[str] = set()
        units: dict[str, Unit] = {}
        stack = [name]
        while stack:
            value = stack.pop()
            if value in self.written_out:
                sources.add(value)
            elif value in self.constants and not self._is_large(value):
                continue
            elif value in self.units:
                if value not in units:
                    units[value] = self.units[value]
                    stack += input_names(units[value].node)
            else:
                return None
        return _Cone(sources, units) if units else None


def _groups(sources: Mapping[str, Collection[str]]) -> list[list[str]]:
    """Return the constants in groups that have no source in common."""
    by_source: defaultdict[str, list[str]] = defaultdict(list)
    for name, own in sources.items():
        for source in own:
            by_source[source].append(name)
    grouped: set[str] = set()
    groups: list[list[str]] = []
    for start in sources:
        group: list[str] = []
        stack = [start]
        while stack:
            name = stack.pop()
            if name not in grouped:
                grouped.add(name)
                group.append(name)
                stack += [other for source in sources[name] for other in by_source[source]]
        if group:
            groups.append(group)
    return groups
