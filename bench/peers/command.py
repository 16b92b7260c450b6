"""``python -m bench peers``: cases of other tools' suites, with the nodes before, theirs, and ours."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from bench.common.arguments import add_save
from bench.common.result_file import RESULTS, provenance, report_saved
from bench.common.table import Column, Table, Value
from bench.peers.cases import Case, all_cases
from relational_tensat.base.errors import RelationalTensatError, UsageError
from relational_tensat.base.files import write_aside
from relational_tensat.formats.onnx_names import subgraphs
from relational_tensat.run.options import LOW, Options
from relational_tensat.run.pipeline import optimize

_TOOLS = ("onnxsim", "onnxslim", "onnxoptimizer", "onnxscript")
_FAILED, _WRONG = "fails", "wrong"
#: Rows of a dimension without a size.
_ROWS = 5
_QUIET = 4


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Describe the command to argparse."""
    parser = commands.add_parser("peers", help="cases of other optimizers' suites: theirs and ours")
    parser.add_argument(
        "names", metavar="NAME", nargs="*", help="parts of cases' names; default: all"
    )
    parser.add_argument(
        "--python",
        metavar="PATH",
        action="append",
        default=[],
        help="of an environment with further tools (onnxoptimizer, onnxscript); repeatable",
    )
    add_save(parser, "the table")
    parser.set_defaults(run=run)


@dataclass(frozen=True, slots=True)
class Row:
    """What became of a case.

    Attributes:
        theirs: nodes by tool; a word where it fails, or computes something else.
        note: why ours are more than a peer's, or what went wrong.
    """

    case: Case
    before: int
    ours: Value
    theirs: Mapping[str, Value] = field(default_factory=dict)
    note: str = ""

    @property
    def is_behind(self) -> bool:
        """Whether a tool has a right result of fewer nodes."""
        counts = [count for count in self.theirs.values() if isinstance(count, int)]
        return not isinstance(self.ours, int) or any(count < self.ours for count in counts)


def run(options: argparse.Namespace) -> int:
    """Try all cases, and print a table; 1 if ours is behind on a case without a reason.

    Raises:
        UsageError: no case has such a name.
    """
    cases = list(all_cases())
    if options.names:
        cases = [case for case in cases if any(name in case.name for name in options.names)]
        if not cases:
            raise UsageError(f"no case has {options.names[0]!r} in its name")
    versions: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="relational-tensat-peers-") as name:
        folder = Path(name)
        for place, case in enumerate(cases):
            onnx.save(case.model(), folder / f"{place:03}.onnx")
        failures: dict[str, str] = {}
        for python in (sys.executable, *options.python):
            answer = _theirs(python, folder)
            versions |= answer["versions"]
            failures |= answer["failures"]
        rows = list(_rows(cases, folder, versions, failures))
    table = _table(rows, versions)
    print(table.markdown())
    if options.save:
        report_saved(_save(table, date.today()))
    return int(any(row.is_behind and not row.case.why for row in rows))


def _theirs(python: str, folder: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("theirs.py")
    done = subprocess.run(
        [python, str(script), str(folder)], capture_output=True, text=True, check=True
    )
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def _rows(
    cases: Sequence[Case], folder: Path, tools: Mapping[str, str], failures: Mapping[str, str]
) -> Iterator[Row]:
    for place, case in enumerate(cases):
        original = case.model()
        theirs: dict[str, Value] = {}
        for tool in filter(tools.__contains__, _TOOLS):
            path = folder / f"{place:03}.{tool}"
            has_failed = f"{place:03} {tool}" in failures or not path.exists()
            theirs[tool] = _FAILED if has_failed else _counted(original, onnx.load(path))
        try:
            options = Options.of(runs_on="onnxruntime", effort=LOW)
            ours, note = _counted(original, optimize(original, options).model), ""
        except RelationalTensatError as error:
            ours, note = _FAILED, str(error)
        row = Row(case, count_nodes(original.graph), ours, theirs, note)
        yield Row(case, row.before, ours, theirs, note or (case.why if row.is_behind else ""))


def count_nodes(graph: onnx.GraphProto, known: Sequence[str] = ()) -> int:
    """Count the nodes that depend on inputs, those of bodies included; the others are constants."""
    constant = {"", *known, *(tensor.name for tensor in graph.initializer)}
    count = 0
    for node in graph.node:
        bodies = list(subgraphs(node))
        if not bodies and all(name in constant for name in node.input):
            constant.update(node.output)
            continue
        count += 1 + sum(count_nodes(body, tuple(constant)) for body in bodies)
    return count


def _counted(original: onnx.ModelProto, model: onnx.ModelProto) -> Value:
    """Return a result's nodes, or a word if it does not compute what the original does."""
    rng = np.random.default_rng(1)
    kinds = {onnx.TensorProto.FLOAT: np.float32, onnx.TensorProto.BOOL: np.bool_}
    feeds: dict[str, Any] = {}
    for value in original.graph.input:
        kind = value.type.tensor_type
        shape = [dim.dim_value or _ROWS for dim in kind.shape.dim]
        feeds[value.name] = np.asarray(rng.random(shape) * 2 - 0.5).astype(kinds[kind.elem_type])
    try:
        pairs = zip(_outputs(original, feeds), _outputs(model, feeds), strict=True)
        is_right = all(np.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in pairs)
    except Exception:  # of any kind that onnxruntime raises
        return _FAILED
    return count_nodes(model.graph) if is_right else _WRONG


def _outputs(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _QUIET
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return list(session.run(None, dict(feeds)))


def _table(rows: Sequence[Row], versions: Mapping[str, str]) -> Table:
    tools = [tool for tool in _TOOLS if tool in versions]
    columns = (
        Column("case"), Column("of"), Column("nodes"), *(Column(f"{t} {versions[t]}") for t in tools),
        Column("ours"), Column("note"),
    )  # fmt: skip
    behind = sum(row.is_behind for row in rows)
    note = (
        f"{len(rows)} cases; at least as good as all of them on {len(rows) - behind} "
        f"({(len(rows) - behind) / len(rows):.0%}). Nodes that depend on inputs, those of bodies included; "
        "ours for onnxruntime, by modelled costs. fails: the tool raises, or onnxruntime does not run its "
        "result; wrong: that computes something else."
    )
    listed = tuple(
        (
            row.case.name, row.case.peer, row.before, *(row.theirs.get(tool) for tool in tools),
            row.ours, row.note,
        )
        for row in rows
    )  # fmt: skip
    return Table("peers", "Cases of other optimizers' suites", columns, listed, note)


def _save(table: Table, day: date) -> Path:
    path = RESULTS / f"peers-{day}.md"
    origin = ", ".join(
        f"{name} {value}" for name, value in provenance().items() if name != "settings"
    )
    with write_aside(path) as aside:
        text = f"{table.markdown()}\n`python -m bench peers --save`, {origin}\n"
        (aside / path.name).write_text(text, encoding="utf-8")
        (aside / f"peers-{day}.csv").write_text(table.csv(), encoding="utf-8")
    return path
