"""A run, from the model to the result: five stages, each of which takes what the one before hands on.

``values.py`` says what these are: LoadedRun → ExploredRun → ExtractedRun → CheckedRun → WrittenRun. A run
that is resumed is loaded from its database, and goes on with the same stages.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from relational_tensat.base.outputs import (
    MODEL,
    DefaultOutput,
    check_database,
    check_options,
    check_page,
)
from relational_tensat.cost import CostModel
from relational_tensat.run.options import Options
from relational_tensat.run.progress import Progress, Silent
from relational_tensat.run.result import Result
from relational_tensat.run.stages.check import check
from relational_tensat.run.stages.explore import explore
from relational_tensat.run.stages.extract import extract
from relational_tensat.run.stages.load import load
from relational_tensat.run.stages.race import race
from relational_tensat.run.stages.write import write
from relational_tensat.run.summary import result_of
from relational_tensat.run.values import Run
from relational_tensat.tensor import Graph


def optimize(
    model: Graph | str | Path,
    options: Options | None = None,
    *,
    output: str | Path | DefaultOutput | None = None,
    cost_model: CostModel | None = None,
    progress: Progress | None = None,
) -> Result:
    """Find the cheapest graph that computes the same as ``model``, and prove both.

    Args:
        model: a graph, or the path of a ``.json`` or ``.onnx`` model.
        options: rules, limits, extractor, cost profile, …; see ``Options``.
        output: where the optimized model is written, ``.json`` or ``.onnx``; None writes nothing.
        cost_model: one's own source of costs, instead of the one in ``options``.
        progress: every step is reported to it.

    Returns:
        The graph, its cost before and after, and how it was found. It never costs more than the
        original: where nothing cheaper is found, or what was found is slower whole on the device that
        costs are measured on, computes something else, or could not be compared, the original is
        returned.

    Raises:
        UsageError: a rule, profile, dimension or input does not exist, or a path is unusable.
        InputError: the model, a rule file, a profile or an input file cannot be used.
        VerificationError: with the option ``strict``, the optimized graph computes something else;
            nothing is written.
        NoSolutionError: no graph could be extracted within the limits.
        UnsoundRuleError: a rule united two classes of different types.
        MissingDependencyError: the device that costs are to be measured on is not here.
        KeyboardInterrupt: Ctrl-C while measuring; what was measured is kept, as its text says.
    """
    options = options or Options()
    _check_paths(options, model, output)
    check_database(options.output.db, force=options.output.force)
    check_page(options.output.view)
    run = Run.begin(options, model, output, cost_model, progress or Silent())
    with run.files, run.resources, run.attention:
        # Model, rules and inputs are read; the graph goes into the database.
        loaded = load(run)
        # The e-graph grows by the rules; with the option fuse, by kernels.
        explored = explore(loaded)
        # The cheapest graph comes out; where graphs are timed here, the fastest.
        extracted = race(extract(explored))
        # It computes the same, and is worth it; else another one, or the original.
        checked = check(extracted)
        # The result goes into its file; its tables and, with the option view, its page say what it is.
        written = write(checked)
    return result_of(written)


def resume(
    db: str | Path,
    model: Graph | str | Path | None = None,
    *,
    output: str | Path | DefaultOutput | None = None,
    cost_model: CostModel | None = None,
    progress: Progress | None = None,
    **changes: Any,
) -> Result:
    """Go on with a run that had the option ``db``, whether its process ended or was killed.

    The e-graph that is in the database is explored further, by the run's own options but for changes, all
    limits of time and of iterations counted from now on. The result costs no more than the cheapest graph
    that was known then.

    Args:
        db: the run's database.
        model: where the run's model is now, if not where it was, or the graph that it was.
        output: where the optimized model is written; None writes nothing. Where the run was to write
            it, or anything else, does not count: a database may be from anybody.
        cost_model: the run's own source of costs, if it had one.
        progress: every step is reported to it.
        changes: options that are not the run's: those of exploration, also another ``search``, of tree
            search and of extraction, ``memory_limit``, ``threads``, and all that name a place to write.

    Raises:
        UsageError, InputError, VerificationError, NoSolutionError, UnsoundRuleError: as ``optimize``.
        InputError: also, ``db`` is no run's database, another process is using it, the run was killed
            before its e-graph was there, or its model, or the file that its costs are from, has changed.
    """
    from relational_tensat.run.resume.stored import read_run, restore  # few runs need it

    stored = read_run(Path(db))
    options = stored.options(**changes)
    stored.check_costs(own=cost_model is not None)
    _check_paths(options, model, output)
    check_page(options.output.view)
    run = Run.begin(options, stored.path, output, cost_model, progress or Silent())
    with run.files, run.resources, run.attention:
        explored = explore(restore(run, stored, model))
        written = write(check(race(extract(explored))))
    return result_of(written)


def _check_paths(
    options: Options,
    model: Graph | str | Path | None,
    output: str | Path | DefaultOutput | None,
) -> None:
    """Check that nothing is written over what is read, over another output, or over another kind of file.

    Raises:
        UsageError: a file would be lost.
    """
    place = output.path if isinstance(output, DefaultOutput) else output
    check_options(
        options,
        [] if place is None else [(Path(place), MODEL)],
        [Path(model)] if isinstance(model, str | Path) else [],
    )
