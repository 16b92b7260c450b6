"""The points of the paper's figures 6 and 7, as tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bench.common.cell_results import Result
from bench.common.table import Table, Value, columns
from bench.paper import paper_figures
from bench.paper.cells import ALPHAS, K_VALUES, Cell, saturate, sequential
from bench.paper.results import Results, exploration_s, percent, proof, saved, seconds, total_s

#: k_multi of the curves of figure 6.
CURVES = (1, 2)


def figures_of(names: Sequence[str], models: Sequence[str], results: Results) -> list[Table]:
    """Return the points of the figures among these names."""
    return [_FIGURES[name](models, results) for name in names if name in _FIGURES]


def _figure_6(models: Sequence[str], results: Results) -> Table:
    rows: list[tuple[Value, ...]] = []
    for model in models:
        cells = [(f"ours, k_multi={k}", Cell("anytime", model, k)) for k in CURVES]
        cells += [(f"sequential, alpha={a:g}", sequential(model, a)) for a in ALPHAS]
        for series, cell in cells:
            rows += [(model, series, *point) for point in curve(results[cell])]
    note = (
        "Speed-up of the cheapest graph known after so many CPU seconds. Ours extracts after every"
        " iteration of exploration (--extract-every 1); each curve ends where the run did. The paper's"
        " figure is of Inception-v3 only, and has no numbers."
    )
    title = "Figure 6: speed-up over optimization time"
    header = columns("model", "series", ("s", 3), "%")
    return Table("figure6", title, header, tuple(rows), note, listed=False)


def curve(result: Result) -> list[tuple[float, float]]:
    """Return (CPU seconds, speed-up in percent) of a run: one point a step, and where it ended."""
    if "error" in result:
        return []
    before_us = result["cost_before_us"]
    points = [(0.0, 0.0)]
    for moment in result["moments"]:
        gain_percent = percent(before_us, min(before_us, moment["best_us"]))
        if gain_percent > points[-1][1]:
            points.append((moment["cpu_s"], gain_percent))
    return [*points, (result["moments"][-1]["cpu_s"], points[-1][1])]


def _figure_7(models: Sequence[str], results: Results) -> Table:
    published_rows, late_models = paper_figures.by_model("table_1"), paper_figures.timed_out_at_3()
    rows: list[tuple[Value, ...]] = []
    for model in models:
        for k_multi in K_VALUES:
            ours = results[saturate(model, k_multi)]
            published_value: Value = None
            if k_multi == (2 if model == "inception_v3" else 1) and model in published_rows:
                published_value = published_rows[model]["tensat_percent"]
            elif k_multi == 3 and model in late_models:
                published_value = "time-out"
            rows.append((
                model, k_multi, published_value,
                saved(ours),
                exploration_s(ours), seconds(ours, "ours"), total_s(ours),
                ours.get("e_nodes"), proof(ours), ours.get("stop_reason"),
            ))  # fmt: skip
    header = columns(
        "model", "k_multi", ("TENSAT published %", 1), ("%", 1), "exploration s", "extraction s",
        "s", "e-nodes", "proof", "exploration ended",
    )  # fmt: skip
    note = (
        "k_multi: in how many iterations the multi-pattern rules take part. TASO's rules as they are. The"
        " paper plots its values without numbers; 'time-out' is its extraction's limit of an hour."
    )
    return Table("figure7", "Figure 7: the effect of k_multi", header, tuple(rows), note)


_FIGURES: dict[str, Callable[[Sequence[str], Results], Table]] = {
    "figure6": _figure_6,
    "figure7": _figure_7,
}
