"""A result with dynamic dims and kernels: at all sizes of the model, as one file, and compared there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from relational_tensat.custom_ops.places import PartPlace, with_places
from relational_tensat.custom_ops.sized_parts import SizedParts
from relational_tensat.formats.dynamic.writer import write_dynamic
from relational_tensat.run.reports import SizedResult
from relational_tensat.run.stages.compare_sizes import compare_file_at_all_sizes
from relational_tensat.run.stages.dynamic import as_read
from relational_tensat.run.values import CheckedRun
from relational_tensat.verify import Verification
from relational_tensat.verify.sessions import Session


class SizedKernels:
    """Makes files of a result with kernels whose sizes are arguments.

    Attributes:
        result: the graph without kernels at all sizes.
        parts: of it.

    Args:
        checked: the result; its model has dynamic dims.
        opset: of files.

    Raises:
        InputError: the original is what is returned, and has no dynamic form.
    """

    def __init__(self, checked: CheckedRun, opset: int) -> None:
        self._loaded, self._opset = checked.loaded, opset
        self.result = checked.sized or as_read(checked.loaded)
        self.parts = SizedParts(self.result.folded, opset)

    def written(self, chosen: Sequence[PartPlace]) -> SizedResult:
        """Return the graph with kernels in places that were chosen at the first size.

        Raises:
            InputError: it has no dynamic form.
        """
        model = self._loaded.model.dynamic
        assert model is not None
        parts = list(dict.fromkeys(part for part, _ in chosen))
        graphs = []
        for size, graph in enumerate(self.result.folded):
            there = dict(zip(parts, self.parts.parts_at(parts, size), strict=True))
            own = [(there[part], there[part].places[part.places.index(p)]) for part, p in chosen]
            graphs.append(with_places(graph, own))
        file = write_dynamic(model, graphs, self._opset)
        return replace(self.result, folded=tuple(graphs), file=file)

    def compared(self, file: Path, libraries: Sequence[Path], what: str) -> Verification:
        """Compare a file with the original at several sizes.

        Raises:
            VerificationError: it cannot be run, or at too few sizes.
        """
        seed, sessions = self._loaded.run.options.process.seed + 2, (Session.AS_BY_DEFAULT,)
        return compare_file_at_all_sizes(
            self._loaded, file, sessions, seed, what=what, libraries=libraries
        )
