"""An account of a result: the same words and figures in the terminal, on the page and as JSON.

Operators are counted in the files as they are, by ONNX's names, where both are ONNX. Else they are those
of the graphs that run at inference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relational_tensat.egraph.database import Database
from relational_tensat.explore.outcome import stop_text
from relational_tensat.run.result import Result

if TYPE_CHECKING:
    from relational_tensat.run.kernel_report import RunningKernel
    from relational_tensat.verify import Verification


def size_text(result: Result) -> str:
    """Return the sizes of both files in one line, or how many operators both graphs have."""
    change, counts = result.change, result.operators
    if change is None:
        before, after = sum(counts.before.values()), sum(counts.after.values())
        return f"operators: {_moved(f'{before:,}', f'{after:,}')}"
    before_file, after_file = change.before, change.after
    opset = _moved(str(before_file.opset), str(after_file.opset))
    n_bytes = _moved(_size(before_file.bytes), _size(after_file.bytes))
    nodes = _moved(f"{before_file.nodes:,}", f"{after_file.nodes:,}")
    return f"nodes: {nodes}; bytes: {n_bytes}; opset: {opset}"


def _moved(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _size(n_bytes: int) -> str:
    """Return bytes as people read them; whole below a megabyte, where small changes count."""
    for unit, size in (("GB", 10**9), ("MB", 10**6)):
        if n_bytes >= size:
            return f"{n_bytes / size:,.2f} {unit}"
    return f"{n_bytes:,}"


def search_text(result: Result) -> str:
    """Return why exploration ended, and what is proven of the result."""
    exhaustive = result.search.exploration.is_exhaustive
    return f"{stop_text(result.stop_reason, is_exhaustive=exhaustive)}; {proof_text(result)}"


def proof_text(result: Result) -> str:
    """Return what the extractor proved of the costs, which are sums over operators."""
    estimates = result.costs.estimates
    under = f", under costs of which {estimates}" if estimates else ""
    if result.exhaustive:
        return f"optimal for every graph that the rules can reach{under}"
    if result.optimal:
        return f"optimal for this e-graph{under}; beyond it, no bound is known"
    if result.bound_us == 0.0:
        return "no bound on what could still be gained"
    return f"gap {result.gap:.2%} (no graph in it costs less than {result.bound_us:,.2f} µs{under})"


def verified_text(result: Result) -> str:
    """Return in one line how the result was compared with the original; or that it was not."""
    verification = result.verification
    if verification.ok:
        word = "not proven" if verification.unproven else "verified"
        return (
            f"{word}: {verification.runs} comparisons {_where(verification)}; "
            f"worst relative error {verification.max_relative_error:.1e}"
        )
    return "nothing compared: the original, unchanged" if result.unchanged else "not compared"


def _where(verification: Verification) -> str:
    """Return the engines, and at how many sizes."""
    settings = [one.setting for one in verification.compared]
    # "float64, the model's own weights", "onnxruntime with its optimizations, the two files"
    engines = list(dict.fromkeys(s.what.partition(",")[0].partition(" ")[0] for s in settings))
    only = " only" if len(engines) == 1 else ""
    sizes = len({setting.sizes for setting in settings})
    masked = ", also masked" if any(setting.rows for setting in settings) else ""
    return f"in {' and '.join(engines)}{only}{f', at {sizes} sizes' if sizes > 1 else ''}{masked}"


@dataclass(frozen=True, slots=True)
class Account:
    """The head of the page, in the terminal's words.

    Attributes:
        title: the file's name, or the graph's where there is no file.
        runs_on: the place that the run is for.
        is_kept: the original is what was written.
        terms, operators: ``OperatorCounts`` as rows: operator, before, after.
        kernels: that onnxruntime runs in the written file.
    """

    title: str
    runs_on: str
    gain: str
    size: str
    search: str
    verified: str
    is_kept: bool
    terms: str
    operators: tuple[tuple[str, int, int], ...]
    kernels: tuple[RunningKernel, ...] = ()

    @classmethod
    def of(cls, result: Result) -> Account:
        """Return the account of a result."""
        counts = result.operators
        return cls(
            Path(result.source).name or result.source,
            result.runs_on or result.cost_profile,
            result.gain.text,
            size_text(result),
            search_text(result),
            verified_text(result),
            result.unchanged,
            counts.terms,
            tuple((op, counts.before.get(op, 0), counts.after.get(op, 0)) for op in counts.names),
            result.library.kernels if result.library and result.library.is_taken else (),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the attributes as an object."""
        return asdict(self)


def remember_kept_original(place: Path | Database, why: str) -> None:
    """Write into a run's database why the original was written.

    Args:
        place: the open database, or the file of one that was closed.

    Raises:
        InputError: the database cannot be opened.
    """
    with _opened(place) as database:
        database.run("run/set_kept_original", why=why)


def remember_account(place: Path | Database, gain: str, account: str) -> None:
    """Write into a run's database what was gained, and all that is told of the result.

    Args:
        place: as of ``remember_kept_original``.

    Raises:
        InputError: the database cannot be opened.
    """
    with _opened(place) as database:
        database.run("run/set_gain", text=gain)
        database.run("run/set_account", text=account)


@contextmanager
def _opened(place: Path | Database) -> Iterator[Database]:
    if not isinstance(place, Path):
        yield place
        return
    with closing(Database(place, keep=True)) as database:
        yield database
