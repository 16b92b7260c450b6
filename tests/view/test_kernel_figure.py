"""What is drawn of a μGraph: every tensor of each level once, with its maps and what moves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from relational_tensat.base.duckdb import open_database
from relational_tensat.cli.main import main
from relational_tensat.explain.egraph_tables import StoredEGraph
from relational_tensat.mugraph.graph.mugraph_json import save_mugraph
from relational_tensat.view.data.graph_data import plain
from relational_tensat.view.data.kernel_data import MuNode
from relational_tensat.view.kernel_figure import drawing, fused_kernels
from tests.mugraph.kernels.mugraphs import CHAINS, SMALL
from tests.mugraph.mugraphs import flash_attention
from tests.view.runs import stored_run


def test_each_level_has_its_tensors_and_every_operand_is_drawn_before() -> None:
    for graph in (flash_attention(), *CHAINS, *SMALL):
        picture = drawing(graph)
        assert len(picture.kernels) == len(graph.kernels)
        _check_order(picture.graph)
        for kernel, drawn in zip(graph.kernels, picture.kernels, strict=True):
            _check_order(drawn.block)
            block = kernel.block
            steps = len(block.iterators) + len(block.steps) + len(block.savers)
            assert len(drawn.block) == steps
            assert (drawn.grid, drawn.loop) == (block.grid, block.loop)


def test_flash_attention_is_drawn_with_its_loop_maps_and_threads() -> None:
    (kernel,) = drawing(flash_attention(), "float32").kernels
    boxes = {node.id: node for node in kernel.block}
    assert boxes["k"].about == ("x→h y→φ", "loop→k", "shared at 0: h:8 k:4 d:1")
    assert boxes["p"].about == ("registers", "shared at 192: h:4 k:2 q:1")  # a product reads it
    assert boxes["store Y"].about == ("x→h y→q",)
    assert [inner.title for inner in boxes["p"].inner] == ["exp"]
    assert {node.id for node in kernel.block if node.kind == "accumulator"} == {"l", "a"}
    stages = {name: boxes[name].stage for name in ("q", "k", "s", "y")}
    assert stages == {"q": "before", "k": "loop", "s": "loop", "y": "after"}
    moved = {transfer.tensor: transfer.moved_bytes for transfer in kernel.transfers}
    assert moved == {"Q": 128, "K": 512, "V": 256, "Y": 64}


def test_a_kernel_of_a_run_stands_beside_what_it_replaces() -> None:
    with open_database(stored_run("gated")) as connection:
        kernel, *others = fused_kernels(StoredEGraph(connection))
    assert kernel.chosen_uses == kernel.uses == 1
    assert all(other.chosen_uses == 0 for other in others)
    assert kernel.operands == ("x", "y")
    assert [(part.op, part.inputs) for part in kernel.replaced] == [
        ("sigmoid", ("0",)),
        ("mul", ("2", "1")),
    ]
    tensor = 4 * 8 * 64
    assert [part.moved_bytes for part in kernel.replaced] == [2 * tensor, 3 * tensor]
    (drawn,) = kernel.drawing.kernels
    assert sum(transfer.tensor_bytes for transfer in drawn.transfers) == 3 * tensor
    assert kernel.cost_us is not None
    assert kernel.cost_us < sum(part.cost_us or 0.0 for part in kernel.replaced)


def test_show_draws_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, page = tmp_path / "flash.json", tmp_path / "flash.html"
    save_mugraph(flash_attention(), file)
    assert main(["kernels", "show", str(file), "--html", str(page), "--dtype", "float32"]) == 0
    assert "grid x=2 y=2, loop 4" in capsys.readouterr().out
    (block,) = re.findall(r'id="data"[^>]*>(.*?)</script>', page.read_text(), re.S)
    assert json.loads(block)["drawings"] == [plain(drawing(flash_attention(), "float32"))]
    assert main(["kernels", "show", str(file), "--html", str(tmp_path / "no" / "x.html")]) == 3


def _check_order(nodes: Iterable[MuNode]) -> None:
    seen: set[str] = set()
    for node in nodes:
        assert set(node.inputs) <= seen
        assert node.id not in seen
        seen.add(node.id)
