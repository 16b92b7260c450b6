"""Whether an optimized graph computes what its original computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from relational_tensat.errors import VerificationError
from relational_tensat.graph import Array, Graph, tensors_of
from relational_tensat.verify.comparison import Comparison, OutputCheck, as_array
from relational_tensat.verify.evaluate import evaluate_graph, random_inputs, seeded_weights
from relational_tensat.verify.randomness import random_positions
from relational_tensat.verify.verification import Verification

#: In float64 another order of operations costs about 1e-15 each; a wrong rule costs 1e-2.
FLOAT64_TOLERANCE = 1e-6

#: Where values are rounded to an element type on the way.
ROUNDED_TOLERANCE = {
    "float64": FLOAT64_TOLERANCE,
    "float32": 1e-3,
    "float16": 5e-2,
    "bfloat16": 5e-2,
}


def verify(
    original: Graph,
    optimized: Graph,
    *,
    folded: Graph | None = None,
    seed: int = 0,
    runs: int = 2,
    inputs: Mapping[str, Array] | None = None,
) -> Verification:
    """Run both graphs in float64 on the same random inputs and compare every output.

    Two sets of weights are tried: the model's own, where it has data, and weights drawn at random,
    since constant or zero weights hide mistakes. Outputs correspond by position.

    Args:
        optimized: refers to the original's weights by their names (nothing folded yet).
        folded: the optimized graph as it will be written, with weight-only values folded; compared
            under the model's own weights, within the rounding of the weights' element type.
        seed: of inputs and weights.
        runs: inputs drawn per set of weights.
        inputs: real inputs, by name, instead of random ones; those missing are drawn.

    Returns:
        What was compared and the errors found; ``ok`` is False where one is out of tolerance.

    Raises:
        VerificationError: the two return different numbers of outputs, or of different types.
    """
    check_signatures(original, optimized)
    return _Verifier(original, optimized, folded, seed, runs, dict(inputs or {})).run()


def check_signatures(original: Graph, optimized: Graph) -> None:
    """Check that both graphs return the same number of tensors, of the same types.

    Raises:
        VerificationError: they do not; names the first output that differs.
    """
    before, after = original.output_types(), optimized.output_types()
    if len(before) != len(after):
        raise VerificationError(
            f"the optimized graph returns {len(after)} tensors, expected {len(before)}"
        )
    for name, a, b in zip(output_names(original), before, after, strict=True):
        if a != b:
            raise VerificationError(f"the optimized graph returns {b} as {name!r}, expected {a}")


def output_names(graph: Graph) -> tuple[str, ...]:
    """Return a name for each tensor that the graph returns; parts of a tuple are numbered."""
    names: list[str] = []
    for name in graph.outputs:
        parts = tensors_of(graph.types[name])
        names += [name] if len(parts) == 1 else [f"{name}[{i}]" for i in range(len(parts))]
    return tuple(names)


def rounded_tolerance(graph: Graph) -> float:
    """Return the tolerance where values are rounded to the graph's coarsest element type."""
    types = [part for kind in graph.types.values() for part in tensors_of(kind)]
    return max(
        (ROUNDED_TOLERANCE[kind.dtype] for kind in types if kind.is_float),
        default=FLOAT64_TOLERANCE,
    )


class _Verifier:
    """One verification: the comparisons under each set of weights, and what they amount to."""

    def __init__(
        self,
        original: Graph,
        optimized: Graph,
        folded: Graph | None,
        seed: int,
        runs: int,
        given: dict[str, Array],
    ) -> None:
        self.original = original
        self.optimized = optimized
        self.folded = folded
        self.seed = seed
        self.given = given
        self.varies = bool(set(original.inputs) - set(given))
        self.runs = runs if self.varies else 1
        self.random = random_positions(original)
        self.results: list[OutputCheck] = []
        self.checked: list[str] = []
        self.warnings: list[str] = []
        self.n_runs = 0

    def run(self) -> Verification:
        own = {n: w.data for n, w in self.original.weights.items() if w.data is not None}
        seeded = seeded_weights(self.original, self.seed)
        if len(own) == len(self.original.weights):
            self._compare("float64, the model's own weights", own, self.seed, self.folded)
        else:
            self.warnings.append(
                f"{len(self.original.weights) - len(own)} of {len(self.original.weights)} weights "
                "have no data in the model: verified with random ones only"
            )
        if self.original.weights:
            self._compare("float64, random weights", seeded, self.seed + self.runs, None)
        self._warn_of_unproven()
        return Verification(
            ok=all(check.ok for check in self.results),
            max_relative_error=max(
                (check.max_relative_error for check in self.results), default=0.0
            ),
            runs=self.n_runs,
            outputs=tuple(self.results),
            checked=tuple(self.checked),
            warnings=tuple(self.warnings),
        )

    def _compare(
        self, what: str, weights: Mapping[str, Array], seed: int, folded: Graph | None
    ) -> None:
        names, types = output_names(self.original), self.original.output_types()
        tolerance = rounded_tolerance(self.original)
        # onnxruntime evaluates opaque operators, in the element types that the model declares
        opaque = any(node.op == "opaque" for node in self.original.nodes)
        limit = tolerance if opaque else FLOAT64_TOLERANCE
        exact = Comparison(what, names, types, limit, random=self.random, varies=self.varies)
        written = Comparison(
            f"{what} as folded", names, types, tolerance, random=self.random, varies=self.varies
        )
        for run in range(self.runs):
            inputs = {**random_inputs(self.original, seed + run), **self.given}
            reference = _outputs(self.original, inputs, weights)
            exact.add(reference, _outputs(self.optimized, inputs, weights))
            if folded is not None and folded is not self.optimized:
                own = {n: w.data for n, w in folded.weights.items() if w.data is not None}
                written.add(reference, _outputs(folded, inputs, own))
            if run == 0:
                self._explain_not_finite(reference, inputs, weights, what)
        for comparison, allowed in ((exact, limit), (written, tolerance)):
            if comparison.runs:
                self._take(comparison, allowed)

    def _take(self, comparison: Comparison, tolerance: float) -> None:
        self.results += comparison.results()
        self.n_runs += comparison.runs
        times = "run" if comparison.runs == 1 else "runs"
        source = "random" if self.varies else "the given"
        self.checked.append(
            f"{comparison.check}: {comparison.runs} {times} on {source} inputs, "
            f"tolerance {tolerance:g} of the largest element"
        )

    def _explain_not_finite(
        self,
        reference: Sequence[Array],
        inputs: Mapping[str, Array],
        weights: Mapping[str, Array],
        what: str,
    ) -> None:
        if all(_all_finite(array) for array in reference):
            return
        producers = {name: node.op for node in self.original.nodes for name in node.outputs}
        everything = _returning(self.original, tuple(producers))
        for name, value in evaluate_graph(everything, inputs, weights).items():
            if name in producers and not _all_finite(value):
                self.warnings.append(
                    f"the original itself is not finite ({what}): first at {name!r}, "
                    f"the result of a {producers[name]}"
                )
                return

    def _warn_of_unproven(self) -> None:
        """Say which outputs no comparison could have found wrong."""
        proven = {check.output for check in self.results if check.proves_something}
        for check in self.results:
            if check.output not in proven:
                self.warnings.append(f"output {check.output!r} is {check.note} ({check.check})")
                proven.add(check.output)


def _returning(graph: Graph, outputs: tuple[str, ...]) -> Graph:
    """Return the graph with other outputs."""
    return Graph(graph.name, graph.inputs, graph.weights, graph.nodes, outputs, graph.types)


def _all_finite(value: Any) -> bool:
    parts = value if isinstance(value, tuple | list) else (value,)
    arrays = [as_array(part) for part in parts]
    return all(array.dtype.kind != "f" or bool(np.isfinite(array).all()) for array in arrays)


def _outputs(
    graph: Graph, inputs: Mapping[str, Array], weights: Mapping[str, Array]
) -> list[Array]:
    """Return the tensors that the graph returns, in order; tuples as their parts."""
    values = evaluate_graph(graph, inputs, weights)
    flat: list[Any] = []
    for name in graph.outputs:
        flat += values[name] if isinstance(graph.types[name], tuple) else [values[name]]
    return [as_array(value) for value in flat]
