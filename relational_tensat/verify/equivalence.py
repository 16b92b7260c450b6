"""Whether an optimized graph computes what its original computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from relational_tensat.base.errors import InputError, VerificationError
from relational_tensat.tensor import Array, Graph, tensors_of
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.uses import graph_flops
from relational_tensat.verify.comparison import Compared, Comparison, OutputCheck, Setting
from relational_tensat.verify.evaluate import Weights, check_memory, one_product_thread
from relational_tensat.verify.inputs import (
    LAST_STEP,
    Masking,
    RandomWeights,
    describe_step,
    draw_inputs,
)
from relational_tensat.verify.outputs import (
    compute_outputs,
    first_not_finite,
    is_finite,
    output_names,
)
from relational_tensat.verify.sensitivity import excuse_rounding
from relational_tensat.verify.together import Together, put_together
from relational_tensat.verify.unknown_operators import UnknownOperators
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

#: Graphs of more work than this, or of more nodes, are run on one input per set of weights, others on two.
_FEW_FLOPS, _FEW_NODES = 5e9, 1000


def verify(
    original: Graph,
    optimized: Graph,
    *,
    folded: Graph | None = None,
    seed: int = 0,
    runs: int | None = None,
    inputs: Mapping[str, Array] | None = None,
    drawn: dict[int, RandomWeights] | None = None,
) -> Verification:
    """Run both graphs in float64 on the same random inputs and compare every output.

    Two sets of weights are tried: the model's own, where it has data, and weights drawn at random, since
    constant or zero weights hide mistakes. Outputs correspond by position. If the original overflows,
    smaller numbers are drawn. Where inputs are masks, more runs have rows that are masked, wholly and in
    part, under each set of weights.

    Args:
        optimized: refers to the original's weights by their names (nothing folded yet).
        folded: the optimized graph as it will be written, with weight-only values folded; compared
            under the model's own weights, within the rounding of the weights' element type.
        seed: of inputs and weights.
        runs: inputs drawn per set of weights; by default 2, or 1 for graphs of over 5 Gflop or 1,000 nodes.
        inputs: real inputs, by name, instead of random ones; those missing are drawn.
        drawn: random weights by how often they were made smaller; of the same graph at other sizes, which
            are drawn once. More go into it.

    Returns:
        The comparisons and the errors found; no runs and a warning if the original cannot be computed here.
        For opaque operators that cannot be computed, random functions of their inputs take their place.

    Raises:
        VerificationError: the two return different counts of outputs, or of different types, or
            the optimized graph cannot be computed.
    """
    check_signatures(original, optimized)
    verifier = _Verifier(original, optimized, folded, seed, runs, dict(inputs or {}), drawn)
    with nullcontext() if verifier.is_much_work else one_product_thread():
        return verifier.run()


def check_signatures(original: Graph, optimized: Graph) -> None:
    """Check that both graphs return the same number of tensors, of the same types.

    Raises:
        VerificationError: they do not; names the first output that differs.
    """
    expected_types, types = original.output_types(), optimized.output_types()
    if len(expected_types) != len(types):
        raise VerificationError(
            f"the optimized graph returns {len(types)} tensors, expected {len(expected_types)}"
        )
    for name, a, b in zip(output_names(original), expected_types, types, strict=True):
        if a != b:
            raise VerificationError(f"the optimized graph returns {b} as {name!r}, expected {a}")


def rounded_tolerance(graph: Graph) -> float:
    """Return the tolerance where values are rounded to the graph's coarsest element type."""
    types = [part for kind in graph.types.values() for part in tensors_of(kind)]
    return max(
        (ROUNDED_TOLERANCE[kind.dtype] for kind in types if kind.is_float),
        default=FLOAT64_TOLERANCE,
    )


def evaluation_tolerance(graph: Graph) -> float:
    """Return the tolerance of evaluation in float64; wider where an operator rounds all the same."""
    rounds = any(get_operator(node.op).rounds for node in graph.nodes)
    return rounded_tolerance(graph) if rounds else FLOAT64_TOLERANCE


@dataclass(frozen=True, slots=True)
class _EquivalenceTrial:
    """One set of weights under which both graphs are run.

    Attributes:
        has_own_weights: whether they are the model's; else they are random.
        runs: how many.
        masks: which of the runs on masked rows it is; None for random inputs.
        rows: their name in reports.
    """

    label: str
    has_own_weights: bool
    seed: int
    folded: Graph | None
    runs: int
    masks: int | None = None
    rows: str = ""


class _Verifier:
    """One verification: the comparisons under each set of weights, and what they amount to."""

    def __init__(
        self,
        original: Graph,
        optimized: Graph,
        folded: Graph | None,
        seed: int,
        runs: int | None,
        inputs: dict[str, Array],
        drawn: dict[int, RandomWeights] | None,
    ) -> None:
        self.original = original
        self.optimized = optimized
        self.folded = None if folded is optimized else folded
        self.seed = seed
        self.inputs = inputs
        self.varies = bool(set(original.inputs) - set(inputs))
        self.masking = Masking(original, inputs)
        graphs = (original, optimized)
        self.is_much_work = max(map(graph_flops, graphs)) > _FEW_FLOPS
        self.is_large = self.is_much_work or (
            max(len(graph.nodes) for graph in graphs) > _FEW_NODES
        )
        if runs is None:
            runs = 1 if self.is_large else 2
        self.runs = runs if self.varies else 1
        self.unknown = UnknownOperators()
        self.step = 0
        self._drawn = {} if drawn is None else drawn
        #: The original's outputs for the first masked rows, by the trial's label: computed beside random
        #: inputs.
        self._masked: dict[str, tuple[int, list[list[Array]]]] = {}
        self._draws_again = self.runs > 1 or self.masking.has_runs or drawn is not None
        self.results: list[OutputCheck] = []
        self.comparisons: list[Compared] = []
        self.warnings: list[str] = []
        self.n_runs = 0

    def run(self) -> Verification:
        try:
            trials = self._trials()
            for trial in trials:
                self._record(trial, [self._compared(trial)])
        except InputError as error:
            self.warnings.append(f"the original cannot be computed here: {error}")
        else:
            for trial in trials if all(check.ok for check in self.results) else []:
                self._compare_masked(trial)
        self._warn_of_unproven()
        self._warn_of_stand_ins()
        return Verification(
            runs=self.n_runs,
            outputs=tuple(self.results),
            compared=tuple(self.comparisons),
            warnings=tuple(self.warnings),
            shrink=self.step,
            stand_ins=self.unknown.stand_ins,
        )

    def _trials(self) -> list[_EquivalenceTrial]:
        weights = self.original.weights
        unknown = sum(weight.data is None for weight in weights.values())
        trials: list[_EquivalenceTrial] = []
        if not unknown:
            label = "float64, the model's own weights"
            trials.append(_EquivalenceTrial(label, True, self.seed, self.folded, self.runs))
        else:
            self.warnings.append(
                f"{unknown} of {len(weights)} weights have no data in the model: "
                "verified with random ones only"
            )
        if weights:
            seed = self.seed + self.runs
            trials.append(
                _EquivalenceTrial("float64, random weights", False, seed, None, self.runs)
            )
        return trials

    def _compare_masked(self, trial: _EquivalenceTrial) -> None:
        """Compare on masked rows; on the first of several runs where the model is large."""
        inputs = draw_inputs(self.original, trial.seed, self.step, self.inputs)
        count = len(self.masking.runs(inputs))
        rows = self.masking.label
        rounds = []
        for number in range(min(count, 1) if self.is_large else count):
            try:
                rounds.append(self._compared(replace(trial, runs=1, masks=number, rows=rows)))
            except InputError as error:
                self.warnings.append(
                    f"the original cannot be computed here, {rows} masked: {error}"
                )
        self._record(trial, rounds)

    def _record(
        self, trial: _EquivalenceTrial, rounds: Sequence[Sequence[tuple[Comparison, str]]]
    ) -> None:
        """Take in comparisons, each of several runs that are compared for themselves."""
        smaller = describe_step(self.step, weights=not trial.has_own_weights)
        for same in zip(*rounds, strict=True):
            for comparison, _ in same:
                self.results += comparison.results()
            runs = sum(comparison.runs for comparison, _ in same)
            self.n_runs += runs
            first, remark = same[0]
            self.comparisons.append(first.compared(self.varies, smaller, runs, remark))

    def _compared(self, trial: _EquivalenceTrial) -> list[tuple[Comparison, str]]:
        """Return the comparisons of a trial, and what is to be said of each beside."""
        names, types = output_names(self.original), self.original.output_types()
        tolerance = rounded_tolerance(self.original)
        limit = evaluation_tolerance(self.original)
        varies = self.varies and trial.masks is None
        as_it_is, as_folded = (
            Setting(f"{trial.label}{how}", trial.rows) for how in ("", " as folded")
        )
        exact_comparison = Comparison(as_it_is, names, types, limit, varies=varies)
        stored_comparison = Comparison(as_folded, names, types, tolerance, varies=varies)
        together = put_together(self.original, self.optimized, trial.folded)
        check_memory(together.graph)
        for run in range(trial.runs):
            inputs, weights, (reference, *results) = self._outputs(
                together, trial, trial.seed + run
            )
            exact_comparison.add(reference, results[0])
            if trial.folded is not None:
                stored_comparison.add(reference, results[1])
            if run == 0 and trial.masks is None and not all(map(is_finite, reference)):
                self._explain(trial.label, inputs, weights)
            if trial.folded is not None:
                excuse_rounding(
                    stored_comparison,
                    self.original,
                    inputs,
                    weights,
                    self.seed,
                    self.unknown,
                    large_sums=trial.masks is not None,
                )
        n_factored = together.taken_apart
        remark = (
            f"{n_factored} product{'s' * (n_factored > 1)} of weights applied factor by factor"
            if n_factored
            else ""
        )
        comparisons = [(exact_comparison, remark), (stored_comparison, "")]
        return comparisons if trial.folded is not None else comparisons[:1]

    def _outputs(
        self, together: Together, trial: _EquivalenceTrial, seed: int
    ) -> tuple[Mapping[str, Array], Weights, list[list[Array]]]:
        """Return inputs, weights, and what each graph makes of them; smaller if that overflows."""
        data_by_name = {
            name: w.data for name, w in together.graph.weights.items() if w.data is not None
        }
        while True:
            inputs: Mapping[str, Array]
            inputs = draw_inputs(self.original, seed, self.step, self.inputs)
            masked = self.masking.runs(inputs)
            weights = data_by_name if trial.has_own_weights else self._random_weights()
            if trial.masks is not None:
                step, outputs = self._masked.pop(trial.label, (-1, []))
                inputs = masked[trial.masks]
                if step != self.step or trial.masks > 0:
                    (outputs,) = self._results(together, [inputs], weights)
                return inputs, weights, outputs
            draws = [inputs, *masked[: self._has_room_for_two(together) and seed == trial.seed]]
            results, *of_masked = self._results(together, draws, weights)
            if of_masked:
                self._masked[trial.label] = self.step, of_masked[0]
            if self.step == LAST_STEP or not self.varies or not _overflows(results[0]):
                return inputs, weights, results
            self.step += 1

    def _has_room_for_two(self, together: Together) -> bool:
        """Whether a large graph is computed on two inputs at a time."""
        try:
            check_memory(together.graph, 2)
        except InputError:
            return False
        return self.is_large

    def _results(
        self, together: Together, draws: Sequence[Mapping[str, Array]], weights: Weights
    ) -> list[list[list[Array]]]:
        """Return what each graph makes of each inputs; of the first alone where that cannot be computed."""
        try:
            return together.compute(draws, weights, self.unknown)
        except InputError as error:
            if len(draws) > 1:
                return self._results(together, draws[:1], weights)
            compute_outputs(self.original, draws[0], weights, self.unknown)  # its own fault?
            raise VerificationError(f"the optimized graph cannot be computed: {error}") from error

    def _random_weights(self) -> Weights:
        """Return the random weights of the current step; smaller ones take the place of the others."""
        if self.step not in self._drawn:
            self._drawn.clear()
            again = self._draws_again
            self._drawn[self.step] = RandomWeights(self.original, self.seed, self.step, keep=again)
        return self._drawn[self.step]

    def _explain(self, label: str, inputs: Mapping[str, Array], weights: Weights) -> None:
        location = first_not_finite(self.original, inputs, weights, self.unknown)
        if location is not None:
            self.warnings.append(
                f"the original itself is not finite ({label}): first at {location[0]!r}, "
                f"the result of a {location[1]}"
            )

    def _warn_of_unproven(self) -> None:
        """Report which outputs no comparison could have found wrong."""
        proven = {check.output for check in self.results if check.proves_something}
        for check in self.results:
            if check.output not in proven:
                self.warnings.append(f"output {check.output!r} is {check.note} ({check.setting})")
                proven.add(check.output)

    def _warn_of_stand_ins(self) -> None:
        """Report which operators cannot be computed here, or draw numbers."""
        if names := self.unknown.stand_ins:
            self.warnings.append(
                "compared with random functions in place of operators that cannot be computed here: "
                f"{', '.join(names)}"
            )


def _overflows(outputs: Sequence[Array]) -> bool:
    """Whether some output has no finite element left."""
    return any(a.dtype.kind == "f" and a.size > 0 and not np.isfinite(a).any() for a in outputs)
