"""What a file says of its nodes goes to the nodes that replace them."""

from __future__ import annotations

from pathlib import Path

import onnx
from onnx.parser import parse_model

from relational_tensat import optimize
from relational_tensat.run.options import Options

_TEXT = """<ir_version: 10, opset_import: ["": 21]>
g (float[4,4] x, float[4,4] w, float[4] b) => (float[4,4] y, float[4,4] z)
{
    [mm] a = MatMul (x, w)
    [t1] t = Transpose <perm = [1, 0]> (a)
    [t2] u = Transpose <perm = [1, 0]> (t)
    [ad] c = Add (u, b)
    [relu] y = Relu (c)
    [sig] z = Sigmoid (x)
}"""


def _optimized(folder: Path, **said: dict[str, str]) -> dict[str, onnx.NodeProto]:
    """Return the nodes of a result by their operator, given what the model's nodes say by name."""
    model = parse_model(_TEXT)
    for node in model.graph.node:
        for key, value in said.get(node.name, {}).items():
            node.metadata_props.add(key=key, value=value)
    source, target = folder / "in.onnx", folder / "out.onnx"
    onnx.save(model, source)
    optimize(source, Options.of(cost="t4"), output=target)
    return {node.op_type: node for node in onnx.load(target).graph.node}


def _said(node: onnx.NodeProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in node.metadata_props}


def test_a_fused_node_says_all_that_its_parts_said(tmp_path: Path) -> None:
    nodes = _optimized(
        tmp_path,
        mm={"scope": "m", "only": "1"}, t1={"scope": "t"}, ad={"scope": "m"}, sig={"scope": "s"},
    )  # fmt: skip
    assert set(nodes) == {"Gemm", "Relu", "Sigmoid"}
    assert _said(nodes["Gemm"]) == {"scope": "m, t", "only": "1"}
    assert _said(nodes["Sigmoid"]) == {"scope": "s"} and not nodes["Relu"].metadata_props


def test_nodes_have_the_names_of_those_that_they_replace(tmp_path: Path) -> None:
    nodes = _optimized(tmp_path)
    assert nodes["Gemm"].name == "ad"
    assert nodes["Relu"].name == "relu" and nodes["Sigmoid"].name == "sig"
