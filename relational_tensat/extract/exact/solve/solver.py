"""HiGHS behind a small surface: a model goes in as arrays, a checked answer comes out.

Ctrl-C and limits are kept whatever HiGHS is busy with. HiGHS asks whether to stop only at certain points,
on a large program seconds apart (its heuristics fix variables for sub-programs without a question). It runs
in a thread. If it has not stopped within ``GRACE_S`` of a Ctrl-C or of the end of its time, the caller
continues with the latest report of HiGHS. The thread ends at HiGHS's next question; the command line does
not wait for it at its end.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, field, replace

import highspy
import numpy as np

from relational_tensat.base.deadline import now_s, wall_limit_s
from relational_tensat.base.errors import RelationalTensatError
from relational_tensat.base.watch import Watch
from relational_tensat.extract.exact.solve.constraints import Columns, Rows
from relational_tensat.extract.exact.solve.search import Progress, SolverOptions
from relational_tensat.extract.problem import Floats

GRACE_S = 0.8
_POLL_S = 0.1

_left_running: list[threading.Thread] = []


def is_free(watch: Watch) -> bool:
    """Wait for what was left running, as long as there is time; return whether nothing runs any more.

    Two at once would share what HiGHS keeps once a process: before that, not even a model may be loaded.
    """
    while _left_running:
        if not _ends_in_time(_left_running[-1], watch):
            return False
        _left_running.pop()
    return True


def run_highs(highs: highspy.Highs, watch: Watch) -> bool:
    """Run HiGHS; return whether it has ended, else it must not be touched any more.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed twice.
    """
    with watch.solving():
        if not is_free(watch):
            return False
        thread = threading.Thread(target=highs.run, name="HiGHS")
        thread.start()
        if _ends_in_time(thread, watch):
            return True
        _left_running.append(thread)
        return False


def _ends_in_time(thread: threading.Thread, watch: Watch) -> bool:
    """Wait for a thread until ``GRACE_S`` after the watch is over; return whether it has ended."""
    deadline = None
    while thread.is_alive():
        thread.join(_POLL_S)
        if deadline is None:
            deadline = now_s() + GRACE_S if watch.is_over else None
        elif now_s() > deadline:
            break
    return not thread.is_alive()


_INFINITY = highspy.kHighsInf
_ROW_WISE = int(highspy.MatrixFormat.kRowwise)
_TIME_OVER = "time limit reached"
"""What HiGHS says, too, where its own clock ends it."""

_MINIMIZE = int(highspy.ObjSense.kMinimize)


@dataclass(frozen=True, eq=False)
class MipResult:
    """The answer of HiGHS.

    Attributes:
        status: its model status, in words.
        values: the best point found, or None.
        bound: proven lower bound of the objective (-inf where none).
        proven: whether ``values`` was proven to be optimal.
        infeasible: whether the model was proven to have no solution.
        interrupted: whether the caller asked to stop.
    """

    status: str
    values: Floats | None
    bound: float
    proven: bool
    infeasible: bool
    interrupted: bool


def solve_mip(
    columns: Columns,
    rows: Rows,
    options: SolverOptions,
    *,
    start: Floats | None = None,
    progress: Progress | None = None,
) -> MipResult:
    """Minimise over integer columns.

    Args:
        columns: the variables.
        rows: the constraints.
        options: limits; the result after a limit is the best so far.
        start: a feasible point to begin from.
        progress: called with (best objective, bound) whenever one of them has moved.

    Raises:
        RelationalTensatError: HiGHS refused the model.
    """
    if not is_free(options.watch):
        return _Watch(options, progress).leave()
    highs = _loaded(columns, rows, options)
    highs.setOptionValue("mip_rel_gap", 0.0)
    highs.setOptionValue("mip_abs_gap", 1e-6)
    if start is not None:
        highs.setSolution(len(start), np.arange(len(start), dtype=np.int32), start)
    watch = _Watch(options, progress)
    highs.cbMipInterrupt.subscribe(watch.on_event)
    highs.cbMipImprovingSolution.subscribe(watch.on_event)
    highs.cbSimplexInterrupt.subscribe(watch.on_event)
    highs.cbIpmInterrupt.subscribe(watch.on_event)
    has_ended = _run(highs, options)
    watch.reraise()
    if not has_ended:
        return watch.leave()
    result = _read_mip(highs, watch.stopped)
    ran_out = watch.stopped and not options.watch.wants_stop
    return replace(result, status=_TIME_OVER) if ran_out else result


class LinearProgram:
    """A linear relaxation that grows row by row and is re-solved from its last basis."""

    def __init__(self, columns: Columns, rows: Rows, options: SolverOptions) -> None:
        """Load it.

        Raises:
            OutOfTimeError: HiGHS was not free in time.
        """
        if not is_free(options.watch):
            options.check()
        relaxed = Columns(
            columns.cost, columns.lower, columns.upper, np.zeros(len(columns.cost), dtype=np.bool_)
        )
        self._highs = _loaded(relaxed, rows, options)
        self._options = options
        self._watch = _Watch(options, None)
        self._highs.cbSimplexInterrupt.subscribe(self._watch.on_event)
        self._highs.cbIpmInterrupt.subscribe(self._watch.on_event)

    def add(self, rows: Rows) -> None:
        """Add constraints."""
        if rows.count:
            self._highs.addRows(
                rows.count, rows.lower, rows.upper, len(rows.idx), rows.ptr[:-1], rows.idx, rows.val
            )

    def solve(self) -> LpResult | None:
        """Solve to optimality; None where a limit came first or the relaxation is infeasible."""
        # HiGHS counts the time of all runs of one instance together.
        limit_s = wall_limit_s(self._highs.getRunTime() + self._options.seconds_left)
        self._highs.setOptionValue("time_limit", limit_s)
        has_ended = _run(self._highs, self._options)
        self._watch.reraise()
        self._options.watch.check()
        if not has_ended:
            self._watch.leave()
            return None
        if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            return None
        solution = self._highs.getSolution()
        return LpResult(
            objective=float(self._highs.getInfo().objective_function_value),
            values=np.array(solution.col_value),
            reduced_costs=np.array(solution.col_dual),
            row_values=np.array(solution.row_value),
        )


@dataclass(frozen=True, eq=False)
class LpResult:
    """An optimal vertex of a linear relaxation with its duals."""

    objective: float
    values: Floats
    reduced_costs: Floats
    row_values: Floats


@dataclass
class _Watch:
    """Listens to HiGHS while it runs; an exception of Python must not cross the solver's stack."""

    options: SolverOptions
    progress: Progress | None
    stopped: bool = False
    raised: BaseException | None = None
    _last: tuple[float, float] = field(default=(math.inf, -math.inf))
    _values: Floats | None = None
    _has_left: bool = False

    def on_event(self, event: highspy.HighsCallbackEvent) -> None:
        """Report what moved, and stop HiGHS where the caller wants to."""
        try:
            self._report(event)
            if self.options.watch.is_over:
                self.stopped = True
        except KeyboardInterrupt:
            self.options.watch.remember()
            self.stopped = True
        except BaseException as error:  # kept, and raised after the run
            self.raised, self.stopped = error, True
        if self.stopped:
            event.interrupt()

    def reraise(self) -> None:
        if self.raised is not None:
            raise self.raised

    def leave(self) -> MipResult:
        """Return what a run has reported that should have ended, and did not in time; stop listening."""
        self._has_left = self.stopped = True
        return MipResult(
            status="interrupted" if self.options.watch.wants_stop else _TIME_OVER,
            values=self._values,
            bound=self._last[1],
            proven=False,
            infeasible=False,
            interrupted=True,
        )

    def _report(self, event: highspy.HighsCallbackEvent) -> None:
        if self._has_left or self.options.watch.happened or event.callback_type not in _MIP_EVENTS:
            return  # nobody may be listening any more
        if event.callback_type == highspy.cb.HighsCallbackType.kCallbackMipImprovingSolution:
            self._values = np.array(event.data_out.mip_solution)
        primal = float(event.data_out.mip_primal_bound)
        dual = float(event.data_out.mip_dual_bound)
        if (primal, dual) != self._last and abs(dual) < _INFINITY:  # a bound counts without a point
            self._last = (primal, dual)
            if self.progress is not None:
                self.progress(primal, dual)


_MIP_EVENTS = (
    highspy.cb.HighsCallbackType.kCallbackMipInterrupt,
    highspy.cb.HighsCallbackType.kCallbackMipImprovingSolution,
)


def _run(highs: highspy.Highs, options: SolverOptions) -> bool:
    """Run HiGHS and count its work; return whether it has ended."""
    has_ended = run_highs(highs, options.watch)
    if has_ended:  # else it may still be writing what is read here
        info = highs.getInfo()
        options.work.simplex_iterations += max(0, info.simplex_iteration_count)
        options.work.branch_nodes += max(0, info.mip_node_count)
    return has_ended


def _loaded(columns: Columns, rows: Rows, options: SolverOptions) -> highspy.Highs:
    """Return HiGHS with the model passed in one call."""
    # The pool of threads is global to the process, and keeps the size of its first use.
    highspy.Highs.resetGlobalScheduler(True)
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("threads", options.threads)
    highs.setOptionValue("random_seed", options.seed)
    highs.setOptionValue("time_limit", wall_limit_s(options.seconds_left))
    status = highs.passModel(
        len(columns.cost),
        rows.count,
        len(rows.idx),
        _ROW_WISE,
        _MINIMIZE,
        0.0,
        columns.cost,
        columns.lower,
        columns.upper,
        rows.lower,
        rows.upper,
        rows.ptr,
        rows.idx,
        rows.val,
        columns.integer.astype(np.int32),
    )
    if status == highspy.HighsStatus.kError:
        raise RelationalTensatError(
            f"HiGHS refused a model of {len(columns.cost)} columns and {rows.count} rows"
        )
    return highs


def _read_mip(highs: highspy.Highs, interrupted: bool) -> MipResult:
    """Read the status first: after a limit, objective and values may mean nothing."""
    status = highs.getModelStatus()
    info = highs.getInfo()
    feasible = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    values = np.array(highs.getSolution().col_value) if feasible else None
    optimal = status == highspy.HighsModelStatus.kOptimal
    bound = float(info.objective_function_value if optimal else info.mip_dual_bound)
    return MipResult(
        status=highs.modelStatusToString(status).lower(),
        values=values,
        bound=bound if math.isfinite(bound) and abs(bound) < _INFINITY else -math.inf,
        proven=optimal and feasible,
        infeasible=status
        in (
            highspy.HighsModelStatus.kInfeasible,
            highspy.HighsModelStatus.kUnboundedOrInfeasible,
        ),
        interrupted=interrupted,
    )
