"""The original and the result raced in each runtime that is installed: which runs fastest, and where."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path

import numpy as np

from relational_tensat.base.errors import InputError
from relational_tensat.base.folders import temporary_folder
from relational_tensat.cost.cpu.graph_times import RepeatedGraph, repeated
from relational_tensat.cost.cpu.quiet import Clock, wall_us
from relational_tensat.cost.cpu.session import prepare_model
from relational_tensat.cost.race import LEAST_HEATS, least_heats_s, race, times_as_fast_as_first
from relational_tensat.run.end_to_end import RaceClock, inputs_to_time
from relational_tensat.run.gain import is_worth_it
from relational_tensat.run.options import ONNXRUNTIME
from relational_tensat.run.purpose import OPENVINO
from relational_tensat.run.reports import (
    ORIGINAL,
    RESULT,
    WITH_KERNELS,
    Entrant,
    RuntimeRace,
)
from relational_tensat.run.stages.machine_file import portable_file
from relational_tensat.run.values import CheckedRun
from relational_tensat.tensor import Array
from relational_tensat.verify.comparison import relative_error
from relational_tensat.verify.sessions import Session, open_session

#: Seconds of a race, and the most that its fewest heats may take.
_BUDGET_S, _MOST_HEATS_S = 20.0, 60.0
_ROUNDS = 7
#: A runtime whose outputs differ by more from onnxruntime's of the original is not chosen.
MOST_ERROR = 1e-3


def race_runtimes(
    plain: CheckedRun, fused: CheckedRun, least_speedup: float, *, is_smaller: bool
) -> CheckedRun:
    """Race what was chosen, and the original, in the run's runtimes; remember which is fastest.

    Runtimes that cannot race are named in a note.

    Args:
        plain: the result without kernels, which each runtime reads.
        fused: what becomes of it with kernels of one's own; onnxruntime runs these, if they are taken.
        least_speedup, is_smaller: as of ``is_worth_it``.

    Returns:
        The one of both that the winner runs.
    """
    loaded, kernels = plain.loaded, fused.kernels
    runtimes, file = loaded.run.purpose.runtimes, loaded.model.file
    libraries: tuple[Path, ...] = ()
    try:
        if file is None:
            raise InputError("the model is in no file")
        if plain.extracted.has_kernels:
            raise InputError("kernels are local functions, which not every runtime reads")
        with loaded.run.phases.phase("whole"), temporary_folder() as folder:
            files = {ORIGINAL: file}
            if not plain.extracted.is_unchanged:
                files[RESULT] = portable_file(plain, folder / "result.onnx")
            entrants = [Entrant(runtime, which) for runtime in runtimes for which in files]
            if kernels is not None and kernels.is_taken:
                files[WITH_KERNELS] = portable_file(fused, folder / "fused.onnx")
                libraries = kernels.libraries
                entrants = [each for each in entrants if each != Entrant(ONNXRUNTIME, RESULT)]
                entrants.insert(1, Entrant(ONNXRUNTIME, WITH_KERNELS))
            if len(entrants) == 1:
                raise InputError(f"there is only {entrants[0]}")
            found = _raced(plain, entrants, files, libraries)
    except KeyboardInterrupt:
        return fused.noting("runtimes not raced: interrupted")
    except InputError as error:
        return fused.noting(f"runtimes not raced: {error}")
    chosen = _chosen(found, runtimes, least_speedup, is_smaller=is_smaller)
    race = replace(found, chosen=chosen)
    if chosen.runtime == ONNXRUNTIME or kernels is None:
        return replace(fused, runtimes=race)
    return replace(plain, runtimes=race, kernels=kernels.left_out(), notes=fused.notes)


def _chosen(
    found: RuntimeRace, runtimes: Sequence[str], least_speedup: float, *, is_smaller: bool
) -> Entrant:
    """Return the winner, if it is faster beyond the noise; else what was chosen before."""
    entrants = (found.first, *found.standings)
    if len(runtimes) == 1:
        is_worth = is_worth_it(found.final, least_speedup, is_smaller=is_smaller)
        return found.winner if is_worth else found.first
    own = [each for each in entrants if each.runtime == runtimes[0]][
        -1
    ]  # the result, if there is one
    own_speedup = 1.0 if own == found.first else found.standings[own].speedup
    is_other = found.winner.runtime != own.runtime
    return found.winner if is_other and found.final.low > own_speedup else own


def _raced(
    checked: CheckedRun,
    entrants: Sequence[Entrant],
    files: Mapping[str, Path],
    libraries: Sequence[Path],
) -> RuntimeRace:
    """Race entrants against the first of them.

    Args:
        libraries: of kernels.

    Raises:
        InputError: that one cannot be run, or no other, or not within the time that there is.
    """
    loaded = checked.loaded
    seed, threads = loaded.run.options.process.seed, loaded.cost.n_threads
    feeds = inputs_to_time(loaded.original, loaded.inputs, seed)
    errors, refused = _errors(entrants, files, feeds, threads)
    taking_part = [each for each in entrants if each not in refused]
    if entrants[0] in refused or len(taking_part) == 1:
        raise InputError("; ".join(f"{each}: {why}" for each, why in refused.items()))
    seeds, clock = count(seed), clock_of(threads)

    def heat(numbers: Sequence[int]) -> list[float]:
        rng = np.random.default_rng(next(seeds))
        runs: dict[int, RepeatedGraph] = {}
        for place in rng.permutation(len(numbers)).tolist():
            entrant = taking_part[numbers[place]]
            own = libraries if entrant.which == WITH_KERNELS else ()
            run = _prepared(entrant, files[entrant.which], feeds, threads, own)
            runs[place] = repeated(run, clock)
        runs = {place: each.as_often_as(runs[0]) for place, each in runs.items()}
        return times_as_fast_as_first(
            rng, len(numbers), _ROUNDS, lambda place: clock(runs[place].run)
        )

    heats_s = least_heats_s(heat, [*range(len(taking_part)), 0])
    if heats_s > _MOST_HEATS_S:
        raise InputError(f"{LEAST_HEATS} heats would take {heats_s:.0f} s")
    result = race(heat, len(taking_part) - 1, RaceClock(_BUDGET_S).is_over)
    standings = dict(zip(taking_part[1:], result.standings, strict=True))
    winner = taking_part[result.winner]
    return RuntimeRace(
        taking_part[0], standings, winner, result.final, result.noise, winner, errors, refused
    )


def _errors(
    entrants: Sequence[Entrant],
    files: Mapping[str, Path],
    feeds: Mapping[str, Array],
    threads: int,
) -> tuple[dict[Entrant, float], dict[Entrant, str]]:
    """Return how far each is from onnxruntime's outputs of the original, and why others take no part."""
    session = open_session(files[ORIGINAL], threads, Session.AS_WRITTEN)
    names = [item.name for item in session.get_outputs()]
    expected = dict(zip(names, session.run(names, dict(feeds)), strict=True))
    errors: dict[Entrant, float] = {}
    refused: dict[Entrant, str] = {}
    for entrant in entrants:
        if entrant.runtime == ONNXRUNTIME:
            continue  # its files were compared
        try:
            from relational_tensat.cost.cpu.openvino_session import OpenVinoRun

            found = OpenVinoRun(files[entrant.which], feeds, threads).outputs()
        except InputError as error:
            refused[entrant] = str(error)
            continue
        worst = max(relative_error(expected[name], found[name]) for name in names)
        errors[entrant] = worst
        if worst > MOST_ERROR:
            refused[entrant] = f"its outputs differ by {worst:.1e} from onnxruntime's"
    return errors, refused


def _prepared(
    entrant: Entrant,
    path: Path,
    feeds: Mapping[str, Array],
    threads: int,
    libraries: Sequence[Path],
) -> Callable[[], None]:
    if entrant.runtime == OPENVINO:
        from relational_tensat.cost.cpu.openvino_session import OpenVinoRun

        return OpenVinoRun(path, feeds, threads)
    return prepare_model(path, feeds, "all", threads, libraries)


def clock_of(threads: int) -> Clock:
    """Return what times work of so many threads, which a runtime may have started itself."""
    return _process_us if threads == 1 else wall_us


def _process_us(function: Callable[[], object]) -> float:
    """Return the CPU time of this process that one call takes, in microseconds."""
    start = time.process_time_ns()
    function()
    return (time.process_time_ns() - start) / 1e3
