"""A run, from the model to the result: stages, each of which takes what the one before hands on.

``values.py`` says what these are: LoadedRun → ExploredRun → ExtractedRun → CheckedRun → WrittenRun. A run
that is resumed is loaded from its database, and goes on with the same stages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from relational_tensat.base.outputs import DefaultOutput, check_database, check_options, check_page
from relational_tensat.cost import CostModel
from relational_tensat.formats.frontend import MODEL
from relational_tensat.run.options import Options
from relational_tensat.run.progress import Progress, shown
from relational_tensat.run.result import Result
from relational_tensat.tensor import Graph

if TYPE_CHECKING:
    from relational_tensat.run.models_in_memory import AnyModel

#: The model that a run reads, and the place that it writes to.
_Source: TypeAlias = Graph | str | Path
_Output: TypeAlias = str | Path | DefaultOutput | None


def optimize(
    model: AnyModel,
    options: Options | None = None,
    *,
    output: str | Path | DefaultOutput | None = None,
    cost_model: CostModel | None = None,
    progress: Progress | None = None,
) -> Result:
    """Find the cheapest graph that computes the same as ``model``, and prove both.

    Args:
        model: the path of a ``.json`` or ``.onnx`` model, an ``onnx.ModelProto`` or ``onnx_ir.Model``,
            the bytes of an ONNX file, or a graph.
        options: rules, limits, extractor, cost profile, …; see ``Options``.
        output: where the optimized model is written, ``.json`` or ``.onnx``; None writes nothing.
        cost_model: one's own source of costs, instead of the one in ``options``.
        progress: every step is reported to it; None for a bar in a notebook, and nothing elsewhere.

    Returns:
        The graph, its cost before and after, and how it was found. It never costs more than the
        original: the original is returned if nothing cheaper is found, or if the best found is slower as a
        whole on the device of the costs, computes something else, or could not be compared.

    Raises:
        UsageError: a rule, profile, dimension or input does not exist, or a path is unusable.
        InputError: the model, a rule file, a profile or an input file cannot be used.
        VerificationError: with the option ``strict``, the optimized graph computes something else;
            nothing is written.
        NoSolutionError: no graph could be extracted within the limits.
        UnsoundRuleError: a rule united two classes of different types.
        MissingDependencyError: the device that costs are to be measured on is not here.
        KeyboardInterrupt: Ctrl-C while measuring; times measured so far are kept, as its text says.
    """
    # All that a run needs takes a while to import: nobody waits for it who has no run yet.
    from relational_tensat.run.request import Run
    from relational_tensat.run.stages.check import check
    from relational_tensat.run.stages.explore import explore
    from relational_tensat.run.stages.extract import extract
    from relational_tensat.run.stages.load import load, read
    from relational_tensat.run.stages.race import race
    from relational_tensat.run.stages.write import write
    from relational_tensat.run.summary import result_of

    chosen = options or Options()
    with _placed(model, output, chosen) as (source, place, taken):
        _check_paths(chosen, source, place)
        check_database(chosen.output.db, force=chosen.output.force)
        check_page(chosen.output.view)
        with shown(progress) as watcher:
            run = Run.begin(chosen, source, place, cost_model, watcher, again=optimize)
            with run.going_on():
                # Model, rules and inputs are read; the graph goes into the database.
                loaded = load(run, read(run))
                # The e-graph grows by the rules; with the option fuse, by kernels.
                explored = explore(loaded)
                # The cheapest graph comes out; where graphs are timed here, the fastest.
                extracted = race(extract(explored))
                # It computes the same, and is worth it; else another one, or the original.
                checked = check(extracted)
                # The result goes into its file; with the option view, the page of it all into another.
                written = write(checked)
            return taken(result_of(written))


def resume(
    db: str | Path,
    model: AnyModel | None = None,
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
        model: where the run's model is now, if not where it was, or what was in memory.
        output: where the optimized model is written; None writes nothing. Where the run was to write
            it, or anything else, does not count: a database may be from anybody.
        cost_model: the run's own source of costs, if it had one.
        progress: every step is reported to it; None for a bar in a notebook, and nothing elsewhere.
        changes: options to change: those of exploration, also another ``search``, of tree search and of
            extraction, ``memory_limit``, ``threads``, and all that name a place to write.

    Raises:
        UsageError, InputError, VerificationError, NoSolutionError, UnsoundRuleError: as ``optimize``.
        InputError: also, ``db`` is no run's database, another process is using it, the run was killed
            before its e-graph was there, or its model, or the file that its costs are from, has changed.
    """
    from relational_tensat.run.request import Run
    from relational_tensat.run.resume.run_tables import read_run, restore  # few runs need it
    from relational_tensat.run.stages.check import check
    from relational_tensat.run.stages.explore import explore
    from relational_tensat.run.stages.extract import extract
    from relational_tensat.run.stages.race import race
    from relational_tensat.run.stages.write import write
    from relational_tensat.run.summary import result_of

    stored = read_run(Path(db))
    options = stored.options(**changes)
    stored.check_costs(own=cost_model is not None)
    read = stored.path if model is None else model
    with _placed(read, output, options) as (source, place, taken):
        given = None if model is None else source
        _check_paths(options, given, place)
        check_page(options.output.view)
        with shown(progress) as watcher:
            run = Run.begin(options, stored.path, place, cost_model, watcher, again=optimize)
            with run.going_on():
                extracted = extract(explore(restore(run, stored, given)))
                written = write(check(race(extracted)))
            return taken(result_of(written))


@contextmanager
def _placed(
    model: AnyModel, output: _Output, options: Options
) -> Iterator[tuple[_Source, _Output, Callable[[Result], Result]]]:
    """Give the graph or file of a run, where its result goes, and what the caller makes of that.

    A model in memory is in a file for the length of the run.
    """
    if isinstance(model, Graph) or (isinstance(model, str | Path) and output is not None):
        yield model, output, lambda result: result
        return
    from relational_tensat.run.models_in_memory import placed

    with placed(model, output, options) as place:
        yield place.source, place.output, place.take


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
