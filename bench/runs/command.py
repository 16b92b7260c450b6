"""``python -m bench runs``: whole runs with the rules that ship, from process start to written file."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import date
from pathlib import Path

from bench.common.arguments import add_save
from bench.common.model_files import LIGHT, model_files
from bench.common.result_file import RESULTS, report_saved, save_result
from bench.models import MODELS
from bench.runs.measure import PHASES, ProcessRun, measure_process
from relational_tensat.base.errors import check_choice
from relational_tensat.formats import save_model

#: The light CNNs, of which some are among the 13 models under the same name.
LIGHT_NAMES = {f"light_{name}": name for name in LIGHT}
#: Wall seconds that runs should take at most, on two cores of CI's kind.
BERT_LIMIT_S, MODEL_LIMIT_S, LIGHT_LIMIT_S = 3.0, 15.0, 20.0

_TOO_LONG = 4


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("runs", help="whole runs, from process start to written file")
    parser.add_argument("models", nargs="*", metavar="MODEL", help="[the 13, and the light CNNs]")
    parser.add_argument("--cost", metavar="SOURCE", default="t4", help="(t4)")
    parser.add_argument("--repeat", type=int, default=1, help="take the fastest of so many (1)")
    add_save(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run every model in a process of its own and print what it took.

    Raises:
        UsageError: there is no such model.
        NoSolutionError: a run failed.
    """
    names = [check_choice("model", n, [*MODELS, *LIGHT_NAMES]) for n in options.models]
    flags = ("--cost", options.cost)
    fastest = []
    print(_HEADER)
    with tempfile.TemporaryDirectory(prefix="relational-tensat-") as folder:
        for name, path in _files(names or [*MODELS, *LIGHT_NAMES], Path(folder)):
            runs = [measure_process(name, path, _limit_s(name), flags) for _ in _times(options)]
            fastest.append(min(runs, key=lambda process_run: process_run.wall_s))
            print(_row(fastest[-1]), flush=True)
    late_models = [process_run.model for process_run in fastest if not process_run.in_time]
    cpu_in_time = sum(process_run.cpu_s <= process_run.limit_s for process_run in fastest)
    print(
        f"within their limits: {len(fastest) - len(late_models)} of {len(fastest)}; {cpu_in_time} by their "
        "CPU seconds, which do not count the time that others had the cores"
    )
    if late_models:
        print(f"too long: {', '.join(late_models)}")
    if options.save:
        report_saved(save(fastest, options, RESULTS))
    return _TOO_LONG if late_models else 0


def save(runs: Sequence[ProcessRun], options: argparse.Namespace, directory: Path) -> Path:
    """Write the runs with their settings, machine, versions and commit; return the file."""
    path = directory / f"runs-{date.today().isoformat()}-{Path(options.cost).stem}.json"
    settings = {"models": options.models, "cost": options.cost, "repeat": options.repeat}
    return save_result(path, {"settings": settings, "runs": [asdict(run) for run in runs]})


def _limit_s(name: str) -> float:
    if name in LIGHT_NAMES:
        return LIGHT_LIMIT_S
    return BERT_LIMIT_S if name == "bert" else MODEL_LIMIT_S


def _files(names: Sequence[str], folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield each name with its file; the 13 models are written into the folder."""
    for name in names:
        if name in LIGHT_NAMES:
            yield name, model_files()[LIGHT_NAMES[name]]
        else:
            save_model(MODELS[name](), folder / f"{name}.json")
            yield name, folder / f"{name}.json"


def _times(options: argparse.Namespace) -> range:
    return range(max(options.repeat, 1))


_HEADER = (
    f"{'model':24}{'limit s':>8}{'wall s':>8}{'':2}{'CPU s':>7}{'GiB':>6}  "
    + "".join(f"{phase:>14}" for phase in PHASES)
    + f"{'SQL s':>8}{'e-nodes':>9}  {'after us':>10}  stop"
)


def _row(run: ProcessRun) -> str:
    shares = [
        f"{run.phases[phase]:6.2f} ({run.phases[phase] / run.wall_s:4.0%})" for phase in PHASES
    ]
    mark = " " if run.in_time else "!"
    return (
        f"{run.model:24}{run.limit_s:>8.0f}{run.wall_s:>8.2f}{mark:2}{run.cpu_s:>7.2f}"
        f"{run.peak_bytes / 2**30:>6.2f}  "
        + "".join(f"{share:>14}" for share in shares)
        + f"{run.database_s:>8.2f}{run.e_nodes:>9,}  {run.cost_after_us:>10.1f}  {run.stop_reason}"
    )
