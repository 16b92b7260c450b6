"""Everything that can be chosen for a run: the options of each room, together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from relational_tensat.base.errors import UsageError
from relational_tensat.base.option import Option, OptionGroup, OptionTree, option, options_in
from relational_tensat.base.process import ProcessOptions
from relational_tensat.explore.exploration_options import ExplorationOptions, TreeOptions
from relational_tensat.extract.extraction_options import ExtractionOptions
from relational_tensat.rules.backends.names import BACKENDS

#: Where costs are measured, or the result is timed here, searches that nobody set a limit take so many
#: seconds at most: the models that take longer gain less by it than times are off.
_TIMED_EXPLORATION_S, _TIMED_EXTRACTION_S = 7.0, 2.0

#: Places that results run at, beside those that profiles describe.
ONNXRUNTIME, CUDA = "onnxruntime", "cuda"
#: The profile of what no place is named for.
DEFAULT_PROFILE = "t4"
#: Where large weights go: as the model has them, or into the model's file; else into a file of that name.
KEEP, INSIDE = "keep", "inside"
LOW, NORMAL, HIGH = "low", "normal", "high"


@dataclass(frozen=True, slots=True)
class PurposeOptions(OptionGroup):
    """The place that a run is for; see ``purpose``."""

    runs_on: str | None = option(
        None,
        "where the result will run: onnxruntime or openvino (this CPU), best (the fastest of these), cuda "
        "(the NVIDIA GPU here), or a modelled device: t4, a100, h100, h200, a profile's .toml file; sets "
        "--cost and --backend",
        flag="--for",
        metavar="PLACE",
        default_text="onnxruntime for an .onnx file, t4 for other models",
    )
    effort: str = option(
        NORMAL,
        "low: costs are modelled, nothing is timed; normal: a modelled gain is timed, for about 10 s; "
        "high: kernels are measured, and graphs timed for up to a minute",
        choices=(LOW, NORMAL, HIGH),
    )
    threads_at_inference: int | None = option(
        None,
        "with --for onnxruntime: the threads that the result will run with",
        metavar="N",
        minimum=1,
        default_text="onnxruntime's own number, one for each core",
    )


@dataclass(frozen=True, slots=True)
class ModelOptions(OptionGroup):
    """How a model is read."""

    dims: Mapping[str, int] = option(
        factory=dict, help="sizes of dynamic dimensions, to optimize for and to compare at; "
        "NAME=LEAST:MOST are those that the result is right at",
        flag="--dim", noun="dimension", metavar="NAME=SIZE,…", minimum=0,
    )  # fmt: skip
    static: bool = option(
        False, "write the model with its dynamic dimensions fixed to the sizes of --dim"
    )
    keep_overridable: bool = option(
        False,
        "inputs that have a default value stay inputs: nothing that depends on them is folded",
    )


@dataclass(frozen=True, slots=True)
class RuleOptions(OptionGroup):
    """The choice of rules."""

    files: tuple[Path, ...] = option(
        (), "a rule file or folder, instead of the rules that ship", name="rules", metavar="PATH"
    )
    only: tuple[str, ...] = option((), "use only this rule and others so named", metavar="RULE")
    skip: tuple[str, ...] = option((), "leave this rule out", metavar="RULE")
    allow_unsound: bool = option(False, "use rules that are not known to be sound, too")
    backend: str | None = option(
        None,
        "the runtime whose kernels are priced, instead of single operators; the file still has standard "
        "operators",
        choices=BACKENDS,
        default_text="as --for says; with --cost, each operator is a kernel",
    )


@dataclass(frozen=True, slots=True)
class VerificationOptions(OptionGroup):
    """The choice of inputs that a result is compared on."""

    inputs: Mapping[str, Path] = option(
        factory=dict, help="compare on this input instead of random ones",
        flag="--input", metavar="NAME=FILE.npy",
    )  # fmt: skip
    runs: int | None = option(
        None, "random inputs per set of weights", name="verify_runs", metavar="N", minimum=1,
        default_text="2, or 1 over 5 Gflop or 1,000 nodes",
        is_rare=True,
    )  # fmt: skip
    strict: bool = option(
        False, "end with exit code 4 if the optimized graph computes something else, instead of "
        "writing another graph or the original",
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class CostOptions(OptionGroup):
    """The origin of costs; see ``cost.opening``."""

    source: str | None = option(
        None,
        "the source of costs, instead of --for: a profile (t4, a100, …, a .toml file, cpu:threads=4 as "
        "analytic:cpu:threads=4), measured here (cpu, cpu:all with onnxruntime's own optimizations, "
        "cpu:threads=4, cuda, cuda:tf32), or a recorded table (table:NAME, a .parquet file)",
        name="cost",
        metavar="SOURCE",
        default_text="what --for decides",
    )
    cache: Path | None = option(
        None, "the file that keeps measured costs", name="cost_cache", metavar="FILE",
        default_text="in the user's cache folder", may_change=True, writes="database",
    )  # fmt: skip
    measure_time_limit_s: float | None = option(
        None,
        "seconds of measuring single operators, if --cost measures; later costs are estimated",
        metavar="S",
        default_text="40 for a run and all that repeat it",
        is_rare=True,
    )
    learn_costs: bool = option(
        True,
        "take measured costs as they are, not corrected by what earlier races of whole graphs said about "
        "each kind of kernel",
        is_rare=True,
    )
    end_to_end: bool = option(
        True,
        "with --cost cpu and cuda, go by the sums of single operators; original and optimized graph do not "
        "run whole on the device (some 5 s) to see which is faster",
        is_rare=True,
    )
    budget_s: float | None = option(
        None,
        "seconds of timing the cheapest graphs, whole, against the original in onnxruntime; the fastest is "
        "written, or the original if that is faster; graphs with times in the cache are not timed again",
        metavar="S",
        default_text="10 with --effort normal; with --cost cpu 60 for a run and all that repeat it, less "
        "if the run would take over 120; 20 of quantized models with --backend onnxruntime; else 0",
    )
    min_speedup: float = option(
        1.0,
        "write the original unless the result is more than X times as fast, measured or else modelled; "
        "at 1, any measured gain is enough, or 0.1 % modelled, or a smaller file that is not slower",
        metavar="X",
        minimum=1,
    )
    race_again: bool = option(
        False,
        "time graphs again whose times are in the cache, and replace these",
        is_rare=True,
    )


@dataclass(frozen=True, slots=True)
class OutputOptions(OptionGroup):
    """The files of a run beside its result."""

    db: Path | None = option(
        None,
        "keep the run and its e-graph in this database",
        metavar="FILE",
        default_text="in memory",
        writes="database",
    )
    force: bool = option(
        False,
        "replace files that exist: the database of --db, and NAME.opt.SUFFIX without -o",
    )
    view: Path | None = option(
        None,
        "write a page that shows the run",
        metavar="FILE",
        default_text="nowhere",
        may_change=True,
        writes="page",
    )
    certificate: Path | None = option(
        None,
        "write a certificate of the result, which relational-tensat check replays without any search",
        metavar="FILE",
        default_text="nowhere",
        may_change=True,
        writes="certificate",
    )
    this_machine: bool = option(
        False,
        "write the result as onnxruntime saves it after its own optimizations, if that is timed as faster; "
        "use it with this version of onnxruntime and this kind of processor only",
    )
    opset: int | None = option(
        None,
        "the version of the ONNX operator set to write",
        minimum=1,
        default_text="the model's own, or a later one if the result needs it",
    )
    external_data: str = option(
        KEEP,
        "where large weights go: keep, as the model has them; inside, into the .onnx file, up to 1.5 GB; "
        "or a file of this name beside it",
        metavar="keep|inside|FILE",
        default_text="keep",
    )


@dataclass(frozen=True, slots=True)
class FusionOptions(OptionGroup):
    """Kernels of one's own."""

    fuse: bool = option(
        False,
        "make parts of the model one kernel each; for onnxruntime in C, timed, with a folder NAME.kernels "
        "that relational_tensat.session loads; else modelled, with a GPU's profile by a search, too; in "
        "ONNX they are local functions",
    )
    kernels: Path | None = option(
        None,
        "with --fuse: write the code of the kernels into this folder",
        metavar="DIR",
        may_change=True,
        writes="kernels",
    )
    torch: bool = option(
        False, "with --kernels: write a module, too, with them as PyTorch's custom operators",
        name="kernels_torch",
        is_rare=True,
    )  # fmt: skip
    time_limit_s: float | None = option(
        60.0, "with --fuse: seconds of searching kernels; Ctrl-C keeps those found so far",
        name="fuse_time_limit_s", metavar="S", is_rare=True,
    )  # fmt: skip
    most_operators: int = option(
        8, "with --fuse: the most operators in a part that becomes kernels", name="fuse_operators",
        metavar="N", minimum=2,
        is_rare=True,
    )  # fmt: skip
    most_kernels: int = option(
        2, "with --fuse: the most kernels that one part becomes",
        name="fuse_kernels", metavar="N", minimum=1,
        is_rare=True,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options(OptionTree):
    """The choices of one run; ``Options.of`` takes them by their names, from all groups."""

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


def fuses_what_is_written(options: Options) -> bool:
    """Whether kernels are for what onnxruntime would be given: those of an e-graph stand for operators."""
    places = options.purpose.runs_on, options.rules.backend
    return options.fusion.fuse and places == (ONNXRUNTIME, ONNXRUNTIME)


def resumable_options() -> Iterator[Option]:
    """Yield what a run that is resumed may have other values of: how it searches, and where it writes."""
    for group, choice in options_in(Options):
        if group in ("exploration", "tree", "extraction") or choice.about.may_change:
            yield choice


def with_short_limits(options: Options) -> Options:
    """Return options of a run that measures or times: the limits of its searches, unless they are given."""
    default, limits_s = Options(), {}
    if options.exploration.time_limit_s == default.exploration.time_limit_s:
        limits_s["time_limit_s"] = _TIMED_EXPLORATION_S
    if options.extraction.time_limit_s == default.extraction.time_limit_s:
        limits_s["extract_time_limit_s"] = _TIMED_EXTRACTION_S
    return options.replace(
        **{name: limit_s for name, limit_s in limits_s.items() if name not in options.given}
    )


def without_clock(options: Options) -> Options:
    """Return options of a run whose result depends on no clock.

    Raises:
        UsageError: they ask for a race, for measuring, or for a limit of seconds.
    """
    default, costs = Options(), options.costs
    asked = {
        "--effort high": options.purpose.effort == HIGH,
        "--for best": options.purpose.runs_on == "best",
        "--this-machine": options.output.this_machine,
        "--budget": bool(costs.budget_s),
        "--cost cpu": (costs.source or "").partition(":")[0] in ("cpu", "cuda"),
        "--time-limit": options.exploration.time_limit_s != default.exploration.time_limit_s,
        "extract-time-limit": options.extraction.time_limit_s != default.extraction.time_limit_s,
    }
    for flag in (flag for flag, is_asked in asked.items() if is_asked):
        raise UsageError(
            f"--deterministic and {flag}, expected one of the two: nothing goes by the clock then"
        )
    is_auto = options.exploration.search == "auto"
    return options.replace(
        effort=LOW if costs.source is None else options.purpose.effort,
        budget_s=0.0,
        end_to_end=False,
        search="saturation" if is_auto else options.exploration.search,
    )
