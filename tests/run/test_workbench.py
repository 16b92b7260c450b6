"""The e-graph to work with by hand: made, explored, queried, extracted from, opened again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.models import MODELS
from relational_tensat import EGraph, InputError, Options, UsageError, optimize
from relational_tensat.base.shown_text import HtmlTable, html_table
from relational_tensat.rules.library import load_rules
from relational_tensat.tensor import TensorType
from relational_tensat.tensor.graph import Weight
from tests.graphs import shared_matmuls

BLOCK = Path(__file__).parents[2] / "bench" / "inputs" / "transformer_block.onnx"


@pytest.mark.nightly
def test_it_finds_what_optimize_finds() -> None:
    result = optimize(BLOCK, Options.of(cost="tensat_t4", search="saturation"))
    with EGraph.of(BLOCK) as egraph:
        exploration = egraph.explore()
        extracted = egraph.extract("tensat_t4")
        assert (egraph.e_nodes, egraph.e_classes) == (result.e_nodes, result.e_classes)
    assert exploration.stop_reason == result.stop_reason
    assert extracted.cost_us == pytest.approx(result.cost_after_us, rel=1e-12)
    assert extracted.original_us == pytest.approx(result.cost_before_us, rel=1e-12)
    assert extracted.optimal
    assert dict(extracted.rules) == dict(result.rules_used)


def test_it_can_be_explored_again_and_extracted_from_under_any_costs() -> None:
    with EGraph.of(shared_matmuls()) as egraph:
        sizes = [egraph.e_nodes]
        rules = load_rules(only=["merge-products-sharing-left"])
        for _ in range(2):
            egraph.explore(rules)
            sizes.append(egraph.e_nodes)
        egraph.explore()
        assert sizes[0] < sizes[1] <= sizes[2] < egraph.e_nodes
        by_t4 = egraph.extract("t4").cost_us
        assert egraph.extract("a100").cost_us < by_t4
        assert egraph.extract("t4").cost_us == by_t4


def test_costs_of_ones_own_hold() -> None:
    with EGraph.of(MODELS["vgg19"]()) as egraph:
        egraph.sql(
            "INSERT INTO cost SELECT s.id, $cost, 'mine' FROM signature AS s"
            " JOIN symbol AS y ON y.id = s.symbol WHERE y.op = 'conv'",
            cost=7.0,
        )
        for profile in ("t4", "a100"):
            extracted = egraph.extract(profile, extractor="greedy-dag")
            assert extracted.graph.count_ops()["conv"] == 16
            (row,) = egraph.sql("SELECT DISTINCT source, cost_us FROM cost WHERE source = 'mine'")
            assert row == ("mine", 7.0)


def test_a_file_is_opened_again(tmp_path: Path) -> None:
    db = tmp_path / "run.duckdb"
    with EGraph.of(BLOCK, db=db) as egraph:
        egraph.explore(iterations=2)
        sizes = egraph.e_nodes, egraph.e_classes
        cost_us = egraph.extract("t4").cost_us
    with EGraph.open(db) as again:
        assert (again.e_nodes, again.e_classes) == sizes
        assert again.extract("t4").cost_us == cost_us
        assert again.extract("a100").cost_us < cost_us
        again.explore()
        assert again.e_nodes > sizes[0]
        assert again.extract("t4").cost_us <= cost_us


def test_what_is_wrong_is_one_line(tmp_path: Path) -> None:
    with EGraph.of(shared_matmuls()) as egraph:
        with pytest.raises(
            UsageError, match="unknown option 'iteration'; did you mean 'iterations'"
        ):
            egraph.explore(iteration=3)
        with pytest.raises(UsageError, match="did you mean 'greedy'"):
            egraph.extract(extractor="gredy")
        with pytest.raises(InputError, match=r"sql: .*enodes"):
            egraph.sql("SELECT * FROM enodes")
    with pytest.raises(UsageError, match="unknown option 'colour'"):
        EGraph.of(shared_matmuls(), colour="red")
    with pytest.raises(InputError, match="no such database file"):
        EGraph.open(tmp_path / "none.duckdb")


def test_reprs_are_short_and_tables_are_escaped() -> None:
    with EGraph.of(shared_matmuls()) as egraph:
        exploration, extracted = egraph.explore(), egraph.extract()
        for value in (egraph, exploration, extracted, extracted.extraction, extracted.graph):
            assert len(repr(value)) < 200
            assert "\n" not in repr(value)
        assert "array" not in repr(extracted.graph.weights)
        for notebook in (egraph, exploration, extracted, extracted.graph):
            html = notebook._repr_html_()
            assert html.startswith("<table>")
            assert html.endswith("</table>")
        table = egraph.sql("SELECT id, class FROM enode ORDER BY id")
    assert table.columns == ("id", "class")
    assert len(table) == len(table.column("id")) == len(list(table))
    assert repr(HtmlTable(("a", "b"), ((1, "x" * 99),))).splitlines() == ["a  b", f"1  {'x' * 59}…"]
    assert repr(HtmlTable(("a",), tuple((n,) for n in range(30)))).endswith("… 30 rows")
    assert "<script>" not in html_table(["<script>"], [["<script>"]], "<script>")
    assert repr(Weight(TensorType("float32", (2, 3)))) == "Weight(float32[2,3])"


@pytest.mark.parametrize(
    "options",
    [
        Options.of(fuse=True, fuse_time_limit_s=0.0, iterations=1),
        Options.of(runs_on="onnxruntime", effort="low", iterations=1),
    ],
)
def test_a_process_that_knows_no_kernels_opens_an_e_graph_that_has_some(
    options: Options, tmp_path: Path
) -> None:
    path = tmp_path / "kernels.duckdb"
    optimize(BLOCK, options.replace(db=path))
    code = (
        "from relational_tensat import EGraph\n"
        f"with EGraph.open({str(path)!r}) as egraph:\n"
        "    print(egraph.extract('t4').cost_us > 0)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ran.stdout, ran.returncode) == ("True\n", 0), ran.stderr
