"""Reports beside a result's graph: the race, this machine's file, the file's size, kernels.

A race says who took part, how fast they were, and who won. This machine's file is as onnxruntime saves it,
compared with the one that runs anywhere. The written file is compared with the original. A model's own
kernels, if the result has some, are listed. A run with dynamic dimensions has a sized result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.cost.race import Standing
from relational_tensat.rules.backends.fused_kernel import FusedKernel
from relational_tensat.tensor import Array, Graph
from relational_tensat.tensor.operators import get_operator
from relational_tensat.tensor.uses import inference_nodes

if TYPE_CHECKING:
    import onnx

    from relational_tensat.cost import CostModel
    from relational_tensat.formats.onnx_frame import FileFigures
    from relational_tensat.mugraph.fusion.own_kernel import OwnKernel
    from relational_tensat.rules.model import Rule

#: Notes for a Ctrl-C that ended races: before anything was known, or later.
NOT_RACED, NOT_RACED_ON = "not raced: interrupted", "racing was interrupted"


@dataclass(frozen=True, slots=True)
class Contender:
    """A graph that took part.

    Attributes:
        without: the families of rules that it does without; none of the cheapest graph.
        cost_us: its cost by the sums.
        standing: against the original, whole.
        round: which race of this run it was timed in; 0 for one of a run before.
        is_by_profile: it is the cheapest by the profile alone, and another than that by the sums.
    """

    without: tuple[str, ...]
    cost_us: float
    standing: Standing
    round: int = 1
    is_by_profile: bool = False

    @property
    def name(self) -> str:
        """Its name in reports."""
        if self.is_by_profile:
            return "the cheapest by the profile"
        return f"without {', '.join(self.without)}" if self.without else "the cheapest"


@dataclass(frozen=True, slots=True)
class RaceRound:
    """One race of a run.

    Attributes:
        round: 1 for the first.
        graphs: that took part, by the sums of that time.
        winner: the number of the fastest of them.
        final: its standing in heats of its own.
    """

    round: int
    graphs: Sequence[Contender]
    winner: int
    final: Standing


@dataclass(frozen=True, slots=True)
class RaceReport:
    """Graphs raced whole against the original.

    Attributes:
        original_us: the original's cost by the sums.
        contenders: all others, cheapest first.
        winner: the number of the fastest of them.
        final: its standing in heats of its own.
        noise: the original's standing against itself.
        fixed_share: the share of the original's cost that is in kernels which no rule can change: every
            graph of the e-graph has them.
        is_dearer: it costs more than the original by the sums, corrected by what the races said: it then
            has to be faster beyond the noise.
        rounds: races of this run, after each of which costs were corrected and extraction done again; 0
            where all had been timed by runs before.
        timed_before: when the fastest was timed, UTC, if that was before this run.
        is_remembered: it is the choice of a run that this one repeats: nothing was looked for.
        declined: why the fastest is not written although it is as fast; "" where it is.
    """

    original_us: float
    contenders: Sequence[Contender]
    winner: int
    final: Standing
    noise: Standing
    fixed_share: float
    is_dearer: bool = False
    rounds: int = 1
    timed_before: str = ""
    is_remembered: bool = False
    declined: str = ""

    @property
    def keeps_original(self) -> bool:
        """Whether no graph is known to be faster than the original, or as fast and to cost no more."""
        if self.declined:
            return True
        return not self.final.is_faster and (self.is_dearer or not self.final.is_as_fast)

    @property
    def outcome(self) -> str:
        """Who won, in a few words."""
        final, noise = self.final, self.noise
        verdict = "faster" if final.is_faster else "as fast" if final.is_as_fast else "not faster"
        costlier = ", and costlier by the sums" if final.is_as_fast and self.is_dearer else ""
        date = self.timed_before.partition("T")[0]
        whose = "the choice of a run before, " if self.is_remembered else ""
        when = f"; {whose}timed on {date}, --set race-again=yes times them again" if date else ""
        return (
            f"{self.contenders[self.winner].name} is {verdict}{costlier}, measured: {span(final)}; the "
            f"original against itself: {span(noise)}{when}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        kept = "original" if self.keeps_original else "optimized"
        return {**asdict(self), "contenders": [asdict(c) for c in self.contenders], "kept": kept}


def span(standing: Standing) -> str:
    """Return a speed-up and its interval."""
    return f"{standing.speedup:.3f}x [{standing.low:.3f}, {standing.high:.3f}]"


#: The files that race in runtimes.
ORIGINAL, RESULT, WITH_KERNELS = "original", "result", "result with kernels"


@dataclass(frozen=True, slots=True, order=True)
class Entrant:
    """A file in a runtime.

    Attributes:
        which: ``ORIGINAL``, ``RESULT``, or ``WITH_KERNELS``, which only onnxruntime runs.
    """

    runtime: str
    which: str

    def __str__(self) -> str:
        return f"the {self.which} in {self.runtime}"


@dataclass(frozen=True, slots=True)
class RuntimeRace:
    """The result of a race of the original and the result, in one runtime or in several.

    Attributes:
        first: the one that the others raced against.
        standings: of the others, how many times as fast as the first; of the winner in ``final`` heats of
            its own.
        noise: the first against itself.
        chosen: the fastest beyond the noise, or what was chosen before.
        errors: of other runtimes, how far outputs are from onnxruntime's of the original.
        refused: why some take no part.
    """

    first: Entrant
    standings: Mapping[Entrant, Standing]
    winner: Entrant
    final: Standing
    noise: Standing
    chosen: Entrant
    errors: Mapping[Entrant, float]
    refused: Mapping[Entrant, str]

    @property
    def standing(self) -> Standing | None:
        """How many times as fast as the first the chosen one is; None if it is the first."""
        if self.chosen == self.first:
            return None
        return self.final if self.chosen == self.winner else self.standings[self.chosen]

    @property
    def outcome(self) -> str:
        """The outcome, in one line."""
        others = ", ".join(
            f"{each} {span(self.final if each == self.winner else standing)}"
            for each, standing in self.standings.items()
        )
        refused = "".join(f"; {each} takes no part: {why}" for each, why in self.refused.items())
        return (
            f"fastest here: {self.chosen}; measured beside {self.first}: {others}, against itself "
            f"{span(self.noise)}{refused}"
        )

    @property
    def is_in_one(self) -> bool:
        """Whether only one runtime takes part."""
        return len({each.runtime for each in (self.first, *self.standings)}) == 1

    @property
    def usage(self) -> str:
        """How the written file is run there, in Python."""
        if self.chosen.runtime == "openvino":
            return "openvino.Core().compile_model(PATH, 'CPU', {'INFERENCE_PRECISION_HINT': 'f32'})"
        if self.chosen.which == WITH_KERNELS:
            return "relational_tensat.session(PATH)"
        return "onnxruntime.InferenceSession(PATH)"

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        return {
            "chosen": asdict(self.chosen),
            "usage": self.usage,
            "first": asdict(self.first),
            "others": [
                {**asdict(each), "standing": asdict(standing), "error": self.errors.get(each)}
                for each, standing in self.standings.items()
            ],
            "noise": asdict(self.noise),
            "refused": [{**asdict(each), "why": why} for each, why in self.refused.items()],
        }


#: The forms: as onnxruntime saves a model; the same with matrices as its products have packed them.
SAVED, PACKED = "saved", "packed"


@dataclass(frozen=True, slots=True)
class MachineForm:
    """The result of a race of the forms that onnxruntime saves, beside the file that is written without.

    Attributes:
        runtime: onnxruntime's name and version.
        processor: the maker's name of it.
        standings: by form, how many times as fast as that file it is; of the winner in heats of its own.
        winner: the form that won.
        noise: that file's standing against itself.
        taken: the form that is written; "" where none is.
        timed_before: when they raced, UTC, if that was before this run.
        data: the file of its weights, once it is written; or None.
    """

    runtime: str
    processor: str
    standings: Mapping[str, Standing]
    winner: str
    noise: Standing
    taken: str = ""
    timed_before: str = ""
    data: Path | None = None

    @property
    def fastest(self) -> str:
        """The form to be written: the winner, if it is faster beyond the noise, or the smaller if that is
        as fast as the winner may be; "" if neither holds.
        """
        won = self.standings[self.winner]
        if not won.is_faster:
            return ""
        smaller = self.standings.get(SAVED, won)
        return SAVED if smaller.is_faster and smaller.speedup >= won.low else self.winner

    @property
    def outcome(self) -> str:
        """The outcome, in one line."""
        date = self.timed_before.partition("T")[0]
        when = f", timed on {date}" if date else ""
        if not self.taken:
            found = f"{span(self.standings[self.winner])}, against itself {span(self.noise)}"
            return f"not saved for this machine: measured, not known to be faster so: {found}{when}"
        where = f", weights in {self.data.name}" if self.data is not None else ""
        packed = ", matrices packed" if self.taken == PACKED else ""
        gain = f"{span(self.standings[self.taken])} as fast as the file without"
        return (
            f"saved for this machine by {self.runtime}{packed}{where}: {gain}{when}; only for this version "
            f"and processors such as this {self.processor}"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        data = None if self.data is None else str(self.data)
        return {**asdict(self), "data": data}


@dataclass(frozen=True, slots=True)
class FileChange:
    """The figures of the original's file and of the one that is written, both ONNX."""

    before: FileFigures
    after: FileFigures

    @property
    def growth(self) -> str:
        """Return what there is more of, "" where there is nothing."""
        before, after = self.before, self.after
        more = []
        if after.nodes > before.nodes:
            more.append(f"{after.nodes:,} nodes, it had {before.nodes:,}")
        if after.bytes > before.bytes:
            more.append(f"{after.bytes:,} bytes, it had {before.bytes:,}")
        return " and ".join(more)

    @property
    def versions(self) -> str:
        """Return the note on versions that were raised, "" where none was."""
        before, after = self.before, self.after
        raised = []
        if after.opset > before.opset:
            raised.append(f"operator set {before.opset} to {after.opset}")
        if after.ir_version > before.ir_version:
            raised.append(f"file format {before.ir_version} to {after.ir_version}")
        return f"versions raised, as new operators need them: {', '.join(raised)}" if raised else ""

    @property
    def fixed_inputs(self) -> str:
        """Return the note on inputs that have gone, as their values count as constants; or ""."""
        after = self.after.default_inputs
        fixed = [name for name in self.before.default_inputs if name not in after]
        some = ", ".join(fixed[:3]) + (f" and {len(fixed) - 3} more" if len(fixed) > 3 else "")
        return (
            f"inputs with a default value are constants now: {some}; --keep-overridable keeps them"
            if some
            else ""
        )

    def to_json(self) -> dict[str, Any]:
        """Return both figures."""
        return {
            name: {"nodes": figures.nodes, **asdict(figures)}
            for name, figures in (("before", self.before), ("after", self.after))
        }


@dataclass(frozen=True, slots=True)
class UsedKernel:
    """A kernel in the result.

    Attributes:
        mugraph: its key: of its file, its local function, and its rows in the database.
        operators: that it does at once.
        cost_us: modelled.
        launches: kernels that its μGraph has, one after the other.
        results: values that it gives.
    """

    mugraph: str
    operators: tuple[str, ...]
    cost_us: float
    launches: int
    results: int


@dataclass(frozen=True, slots=True)
class FusionReport:
    """The outcome of the option ``fuse``.

    Attributes:
        parts: of the model, for which a kernel was made or sought; 0 where another process did so.
        kernels: how many different ones passed verification.
        used: those in the result, one for each e-node.
    """

    parts: int
    kernels: int
    used: tuple[UsedKernel, ...]


def fusion_report(
    parts: int, kernels: Sequence[OwnKernel], chosen: Graph, cost: CostModel
) -> FusionReport:
    """Return the report of a run that has chosen a graph.

    Args:
        parts: of the model.
        kernels: all that passed verification.
        chosen: the graph.
        cost: of its operators.
    """
    launches = {kernel.key: len(kernel.graph.kernels) for kernel in kernels}
    used = []
    for node, inputs, output in inference_nodes(chosen):
        if node.op == "fused":
            fused = get_operator(node.op)
            assert isinstance(fused, FusedKernel)
            parts_of = fused.parts(inputs, node.attrs)
            operators = tuple(part.op for part in parts_of if part.op != "fill")
            cost_us = cost.cost_us(node.op, inputs, output, node.attrs)
            key = str(node.attrs["mugraph"])
            results = len(node.outputs)
            used.append(UsedKernel(key, operators, cost_us, launches[key], results))
    return FusionReport(parts, len(kernels), tuple(used))


@dataclass(frozen=True, slots=True, eq=False)
class SizedResult:
    """The chosen graph at each of a dynamic model's sizes.

    Attributes:
        graphs: at the base sizes first; nothing in them is folded.
        folded: the same with what depends on weights only as weights.
        file: all of them in one, with dynamic dimensions: a skeleton, and its large weights.
    """

    graphs: tuple[Graph, ...]
    folded: tuple[Graph, ...]
    file: tuple[onnx.ModelProto, Mapping[str, Array]]

    def save(self, path: Path) -> None:
        """Write the file.

        Raises:
            InputError, ModelError: it cannot be written, or is not valid.
        """
        from relational_tensat.formats.onnx_external import save_skeleton  # needs onnx

        skeleton, weights = self.file
        copy = type(skeleton)()
        copy.CopyFrom(skeleton)
        save_skeleton(copy, weights, path)


@dataclass(frozen=True, slots=True)
class BodyRewrite:
    """The outcome of the bodies of a node.

    Attributes:
        rule: stands for it in the e-graph.
        node: the value that the node gives.
        op_type: which operator it is.
        nodes_before, nodes_after: of its bodies, with all that are in them.
        steps: of the bodies' own runs, for people.
    """

    rule: Rule
    node: str
    op_type: str
    nodes_before: int
    nodes_after: int
    steps: tuple[str, ...]

    def row(self) -> tuple[object, ...]:
        """Return its row in the table ``body_rewrite``."""
        counts = self.nodes_before, self.nodes_after
        return self.rule.name, self.node, self.op_type, *counts, list(self.steps)
