"""The rows of a search that a μGraph came from."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from relational_tensat.mugraph.graph.json_fields import Fields


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A term of the search, and the derivation of it that was chosen, as a step of a kernel.

    Attributes:
        kernel, tensor: the step: its kernel, and the name of what it makes in the block.
        level: of kernels: 1 for those that load inputs.
        config: the configuration's number: which variables the grid splits and the loop traverses.
        term: the number of the row of ``term``, the first of its e-class.
        operators: how many operators it takes to compute.
        stage: ``loop``, ``after`` or ``before``.
        op: ``load``, or the operator of the derivation; of accumulators, their kind, too.
        function: of an opaque function, with its parameters; else empty.
        variable: what is reduced; empty for nothing.
        a, b: the terms of its operands; 0 for none.
        abstract_class: of its abstract expression in the e-graph that prunes.
        fingerprint: of its value in two finite fields: terms that share it are one e-class.
        derivations: how many the e-class has.
    """

    kernel: str
    tensor: str
    level: int
    config: int
    term: int
    operators: int
    stage: str
    op: str
    function: str
    variable: str
    a: int
    b: int
    abstract_class: int
    fingerprint: int
    derivations: int

    def content(self) -> dict[str, Any]:
        """Return it as JSON."""
        return asdict(self)


def found_row(content: Any, where: str) -> FoundRow:
    """Return the row of a JSON object.

    Raises:
        InputError: it is none; ``where`` it stands, and what was expected.
    """
    row = Fields(content, where, tuple(field.name for field in fields(FoundRow)))
    return FoundRow(
        row.text("kernel"), row.text("tensor"), row.whole("level"), row.whole("config"),
        row.whole("term"), row.whole("operators"), row.text("stage"), row.text("op"),
        row.text("function"), row.text("variable"), row.whole("a"), row.whole("b"),
        row.whole("abstract_class"), row.whole("fingerprint"), row.whole("derivations"),
    )  # fmt: skip
