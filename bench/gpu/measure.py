"""What ``python -m bench gpu`` measures: the four graphs of each model, on the GPU, end to end."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.gpu.configurations import graph_configurations
from bench.gpu.graphs_on_device import OnDevice, prepare_graphs, time_graphs, verify_on_device
from bench.gpu.optimize import RULE_SETS, Optimized, measure_all, optimize_for
from relational_tensat.base.errors import VerificationError
from relational_tensat.base.files import write_aside
from relational_tensat.cost import graph_cost_us
from relational_tensat.cost.cuda.graph_times import GRAPH_SETTINGS
from relational_tensat.cost.cuda.protocol import WARM, Observation, Settings
from relational_tensat.cost.measured_source import MeasuredSource
from relational_tensat.tensor import Graph

#: Before optimization, by TENSAT's rules, by ours, by ours with the executor's fused kernels.
VARIANTS = ("original", *RULE_SETS)


@dataclass(frozen=True, slots=True)
class VariantRun:
    """One graph of a model, on the GPU.

    Attributes:
        modelled_us: sum of its kernels' times.
        median_us, p10_us, p90_us: of the whole graph, end to end; None where it was not timed.
        worst_error: of its outputs, relative to the original in float64.
        implementations: how many calls each library ran.
        optimal: whether no graph of the e-graph is cheaper by the model.
        note: why there are no times; "" where there are.
    """

    modelled_us: float
    median_us: float | None = None
    p10_us: float | None = None
    p90_us: float | None = None
    worst_error: float | None = None
    implementations: Mapping[str, int] = dataclasses.field(default_factory=dict)
    optimal: bool = True
    note: str = ""


@dataclass(frozen=True, slots=True)
class ModelRun:
    """One model: its graphs by variant, and the share of windows in which the clock moved."""

    model: str
    variants: Mapping[str, VariantRun]
    dropped: float

    def speedup(self, variant: str, *, modelled: bool = False) -> float | None:
        """Return how many times faster than the original a variant is; None where not timed."""
        before, after = self.variants["original"], self.variants[variant]
        if modelled:
            return before.modelled_us / after.modelled_us if after.modelled_us else None
        if before.median_us is None or after.median_us is None:
            return None
        return before.median_us / after.median_us


@dataclass(frozen=True, slots=True)
class Session:
    """What all models share.

    Attributes:
        library, timer: of the GPU, see ``relational_tensat.gpu.cuda``.
        record: how CUDA graphs are recorded.
        runs_path: file of what is done already, from one call to the next.
        stamp: what must be the same for it to be used again.
        until_s: the time of ``time.perf_counter`` after which nothing new is begun.
        dtype: the models' element type.
        settings: how whole graphs are timed.
    """

    library: Any
    timer: Any
    record: Callable[..., Any]
    source: MeasuredSource
    math: str
    runs_path: Path
    stamp: Mapping[str, Any]
    until_s: float
    settings: Settings = GRAPH_SETTINGS
    k_multi: int = 1
    extract_time_limit_s: float = 60.0
    seed: int = 0
    dtype: str = "float32"

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return time.perf_counter() > self.until_s


def measure_model(name: str, graph: Graph, session: Session) -> ModelRun | None:
    """Return a model's run: from an earlier call, or measured now; None where time was up before."""
    earlier_run = _known(name, session)
    if earlier_run is not None:
        return earlier_run
    if session.is_over or not measure_all(
        session.source, graph_configurations(graph), session.until_s
    ):
        return None
    graphs: dict[str, Optimized] = {}
    for rules in RULE_SETS:
        optimized = optimize_for(
            graph,
            rules,
            session.source,
            k_multi=session.k_multi,
            until_s=session.until_s,
            extract_time_limit_s=session.extract_time_limit_s,
        )
        if optimized is None or session.is_over:
            return None
        graphs[rules] = optimized
    run = _run(name, graph, graphs, session)
    _keep(run, session)
    return run


def _run(name: str, graph: Graph, optimized: Mapping[str, Optimized], session: Session) -> ModelRun:
    """Verify each optimized graph on the GPU; time the original with those that are right."""
    original = VariantRun(graph_cost_us(graph, session.source))
    variants = {"original": original} | {
        rules: VariantRun(candidate.modelled_us, optimal=candidate.optimal)
        for rules, candidate in optimized.items()
    }
    prepared = prepare_graphs(graph, [each.graph for each in optimized.values()], session.seed)
    right: dict[str, Graph] = {}
    for variant, ready in zip(("original", *optimized), prepared.graphs, strict=True):
        alone = dataclasses.replace(prepared, graphs=(ready,))
        try:
            (check,) = verify_on_device(session.library, alone, session.math)
        except VerificationError as error:
            variants[variant] = dataclasses.replace(variants[variant], note=str(error))
            continue
        right[variant] = ready
        variants[variant] = _checked(variants[variant], check)
    observations = time_graphs(
        session.library,
        session.timer,
        list(right.values()),
        prepared.inputs,
        session.math,
        session.settings,
        session.record,
    )
    dropped = 0.0
    for variant, observation in zip(right, observations, strict=True):
        if isinstance(observation, Observation):
            sample = observation.samples[WARM]
            dropped = observation.dropped / observation.windows
            variants[variant] = dataclasses.replace(
                variants[variant],
                median_us=sample.median_us,
                p10_us=sample.p10_us,
                p90_us=sample.p90_us,
            )
        else:
            variants[variant] = dataclasses.replace(variants[variant], note=observation.reason)
    return ModelRun(name, variants, dropped)


def _checked(variant: VariantRun, check: OnDevice) -> VariantRun:
    return dataclasses.replace(
        variant, worst_error=check.worst_error, implementations=check.implementations
    )


def _known(name: str, session: Session) -> ModelRun | None:
    """Return what an earlier call kept, if it was made with the same device, code and settings."""
    run = _all_known(session).get(name)
    if run is None:
        return None
    variants = {key: VariantRun(**values) for key, values in run["variants"].items()}
    return ModelRun(run["model"], variants, run["dropped"])


def _all_known(session: Session) -> dict[str, Any]:
    """Return all runs that may be used again, by model."""
    try:
        content = json.loads(session.runs_path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    usable = isinstance(content, dict) and content.get("stamp") == dict(session.stamp)
    return dict(content["runs"]) if usable else {}


def _keep(run: ModelRun, session: Session) -> None:
    """Add a run to those that were kept; runs of another device, code or setting are dropped."""
    runs = {**_all_known(session), run.model: dataclasses.asdict(run)}
    session.runs_path.parent.mkdir(parents=True, exist_ok=True)
    with write_aside(session.runs_path) as folder:
        text = json.dumps({"stamp": dict(session.stamp), "runs": runs}, indent=2) + "\n"
        (folder / session.runs_path.name).write_text(text, encoding="utf-8")
