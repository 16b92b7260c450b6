"""Everything that can be chosen for a run: the options of each room, together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relational_tensat.base.option import Option, OptionGroup, OptionTree, option, options_in
from relational_tensat.base.process import ProcessOptions
from relational_tensat.cost.cost_options import CostOptions
from relational_tensat.explore.exploration_options import ExplorationOptions, TreeOptions
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.rules.targets.names import BACKENDS
from relational_tensat.verify.verification_options import VerificationOptions

#: Where costs are measured, searches that nobody set a limit take so many seconds at most: the models that
#: take longer gain less by it than times are off.
_MEASURED_EXPLORATION_S, _MEASURED_EXTRACTION_S = 8.0, 3.0

#: Places that results run at, beside those that profiles describe.
ONNXRUNTIME, CUDA = "onnxruntime", "cuda"
#: The profile of what no place is named for.
DEFAULT_PROFILE = "t4"
LOW, NORMAL, HIGH = "low", "normal", "high"


@dataclass(frozen=True, slots=True)
class PurposeOptions(OptionGroup):
    """What a run is for; see ``purpose``."""

    runs_on: str | None = option(
        None,
        "where the result will run: onnxruntime (this CPU), cuda (the NVIDIA GPU here), or a modelled "
        "device: t4, a100, h100, h200, another profile or its .toml file; it decides --cost and --target",
        flag="--for",
        metavar="PLACE",
        default_text="onnxruntime for an .onnx file, t4 for other models",
    )
    effort: str = option(
        NORMAL,
        "low: modelled costs, nothing is timed; normal: that, and a modelled gain is timed, the whole "
        "graphs, in at most 10 s; high: kernels are measured, whole graphs timed for up to a minute",
        choices=(LOW, NORMAL, HIGH),
    )
    threads_at_inference: int | None = option(
        None,
        "with --for onnxruntime: threads that the result will run with",
        metavar="N",
        minimum=1,
        default_text="onnxruntime's own number, one for each core",
    )


@dataclass(frozen=True, slots=True)
class ModelOptions(OptionGroup):
    """How a model is read."""

    dims: Mapping[str, int] = option(
        factory=dict, help="sizes of the model's dynamic dimensions that it is optimized and compared at",
        flag="--dim", noun="dimension", metavar="NAME=SIZE,…", minimum=0,
    )  # fmt: skip
    static: bool = option(
        False, "write the model with its dynamic dimensions fixed to the sizes of --dim"
    )


@dataclass(frozen=True, slots=True)
class RuleOptions(OptionGroup):
    """Which rules are used."""

    files: tuple[Path, ...] = option(
        (), "a rule file or folder, instead of the rules that ship", name="rules", metavar="PATH"
    )
    only: tuple[str, ...] = option((), "use this rule", metavar="RULE")
    skip: tuple[str, ...] = option((), "leave this rule out", metavar="RULE")
    allow_unsound: bool = option(False, "take rules that are not known to be sound")
    target: str | None = option(
        None,
        "what the graph will run on: costs are those of the kernels that this runtime makes of operators; "
        "what is written is the operators that it makes them of",
        choices=BACKENDS,
        default_text="what --for decides; with --cost, each operator is a kernel",
    )


@dataclass(frozen=True, slots=True)
class OutputOptions(OptionGroup):
    """What is kept of a run beside its result."""

    db: Path | None = option(
        None,
        "keep the e-graph's database here",
        metavar="FILE",
        default_text="in memory",
        writes="database",
    )
    force: bool = option(
        False,
        "replace what is there: with --db another run's database, without -o the file NAME.opt.SUFFIX",
    )
    view: Path | None = option(
        None,
        "write the page that shows the run here",
        metavar="FILE",
        default_text="nowhere",
        may_change=True,
        writes="page",
    )
    this_machine: bool = option(
        False,
        "write the result as onnxruntime saves it after its own optimizations, weights as its kernels read "
        "them in a file beside it, where a race says that this is faster; only for this version of "
        "onnxruntime and this kind of processor: others may compute something else with it",
    )
    opset: int | None = option(
        None,
        "write ONNX in this version of its default operator set",
        minimum=1,
        default_text="the model's own, or the next that has what is new",
    )


@dataclass(frozen=True, slots=True)
class FusionOptions(OptionGroup):
    """Kernels of one's own."""

    fuse: bool = option(
        False,
        "parts of the model may be one kernel each: chains of functions and reductions and, with a GPU's "
        "profile as costs, what kernels are found for by search; modelled; in ONNX, a local function",
    )
    kernels: Path | None = option(
        None,
        "with --fuse: write the result's kernels into this folder",
        metavar="DIR",
        may_change=True,
        writes="kernels",
    )
    torch: bool = option(
        False, "with --kernels: a module, too, that makes them PyTorch's custom operators",
        name="kernels_torch",
    )  # fmt: skip
    time_limit_s: float | None = option(
        60.0, "with --fuse: seconds of searching kernels; Ctrl-C ends it, too, with those found so far",
        name="fuse_time_limit_s", metavar="S",
    )  # fmt: skip
    most_operators: int = option(
        8, "with --fuse: operators that a kernel is sought for at most", name="fuse_operators",
        metavar="N", minimum=2,
    )  # fmt: skip
    most_kernels: int = option(
        2, "with --fuse: kernels, one after the other, that may stand together for a part",
        name="fuse_kernels", metavar="N", minimum=1,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options(OptionTree):
    """The choices of one run; ``Options.of`` takes them by their names, whatever group they are of."""

    purpose: PurposeOptions = field(default_factory=PurposeOptions)
    model: ModelOptions = field(default_factory=ModelOptions)
    rules: RuleOptions = field(default_factory=RuleOptions)
    exploration: ExplorationOptions = field(default_factory=ExplorationOptions)
    tree: TreeOptions = field(default_factory=TreeOptions)
    extraction: ExtractionOptions = field(default_factory=ExtractionOptions)
    costs: CostOptions = field(default_factory=CostOptions)
    verification: VerificationOptions = field(default_factory=VerificationOptions)
    output: OutputOptions = field(default_factory=OutputOptions)
    fusion: FusionOptions = field(default_factory=FusionOptions)
    process: ProcessOptions = field(default_factory=ProcessOptions)


def resumable_options() -> Iterator[Option]:
    """Yield what a run that is resumed may have other values of: how it searches, and where it writes."""
    for group, choice in options_in(Options):
        if group in ("exploration", "tree", "extraction") or choice.about.may_change:
            yield choice


def with_measured_limits(options: Options) -> Options:
    """Return options of a run with measured costs: the limits of its searches, unless they are given."""
    default, limits_s = Options(), {}
    if options.exploration.time_limit_s == default.exploration.time_limit_s:
        limits_s["time_limit_s"] = _MEASURED_EXPLORATION_S
    if options.extraction.time_limit_s == default.extraction.time_limit_s:
        limits_s["extract_time_limit_s"] = _MEASURED_EXTRACTION_S
    return options.replace(
        **{name: limit_s for name, limit_s in limits_s.items() if name not in options.given}
    )
