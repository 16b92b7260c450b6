"""Reading e-graph files: the fast reader against a plain one, and what is refused, with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.extract.interchange import SerializedEGraph, read, read_egraph_json
from tests.extract.interchange.slow_reader import Node, slow_nodes
from tests.extract.interchange.test_egraph_json import example, node, written

NAMES = st.sampled_from(["a", "b", "c", "d"])
CLASSES = st.sampled_from(["A", "7", 7, "07", "0"])
#: Mostly e-nodes; whole numbers are classes.
CHILDREN = st.one_of(NAMES, NAMES, st.sampled_from([0, 7, 1]))
ANYTHING = st.one_of(
    st.none(), st.booleans(), st.integers(-2, 3), st.floats(), st.just("a"), st.just(["a"]),
    st.just([True]), st.just([7.0]), st.just([[]]), st.just({}), st.just(10**400),
)  # fmt: skip


@st.composite
def nodes(draw: st.DrawFn) -> Any:
    """An e-node with its fields in any order, some left out, seldom one wrong."""
    fields: list[tuple[str, Any]] = [("op", "f"), ("eclass", draw(CLASSES))]
    for field, values in (
        ("children", st.lists(CHILDREN, max_size=3)),
        ("cost", st.sampled_from([0, 1, 0.5, 2.25, -3])),
        ("subsumed", st.sampled_from([False, False, False, True])),
    ):
        if draw(st.booleans()):
            fields.append((field, draw(values)))
    if draw(st.integers(0, 9)) == 0:
        wrong = draw(st.sampled_from(["op", "eclass", "children", "cost", "subsumed", "more"]))
        fields = [(name, value) for name, value in fields if name != wrong]
        fields.append((wrong, draw(ANYTHING)))
    return dict(draw(st.permutations(fields)))


@st.composite
def files(draw: st.DrawFn) -> str:
    content: dict[str, Any] = {
        "nodes": draw(st.dictionaries(NAMES, nodes(), min_size=1)),
        "root_eclasses": draw(st.lists(CLASSES, min_size=1, max_size=2)),
    }
    if draw(st.booleans()):
        content["class_data"] = {str(key): {"x": 1} for key in draw(st.lists(CLASSES, max_size=1))}
    return json.dumps(content)


def as_nodes(egraph: SerializedEGraph) -> list[Node]:
    problem = egraph.problem
    names = [*egraph.classes, None]
    return [
        (
            name,
            egraph.ops[index],
            egraph.classes[problem.node_class[index]],
            float(problem.cost_us[index]),
            frozenset(str(names[child]) for child in problem.children(index)),
        )
        for index, name in enumerate(egraph.nodes)
    ]


@given(files())
def test_what_the_plain_reader_reads(text: str) -> None:
    path = Path(__file__)  # only named in messages
    try:
        egraph = read_text(text)
    except InputError as error:
        assert slow_nodes(text) is None
        assert str(error).startswith(f"{path}: ") and "\n" not in str(error)
        return
    assert slow_nodes(text) == as_nodes(egraph)
    roots = json.loads(text)["root_eclasses"]
    there = [root for root in dict.fromkeys(map(str, roots)) if root in egraph.classes]
    assert [egraph.classes[root] for root in egraph.roots] == there


def read_text(text: str) -> SerializedEGraph:
    """Read a file of this text without writing one for every example."""
    with patch.object(read, "whole_content", lambda _: text.encode()):
        return read_egraph_json(Path(__file__))


def twice(field: str, text: str) -> str:
    """Return the JSON text of a valid file in which some entry is given twice."""
    return json.dumps(example()).replace(field, f"{field}, {text}", 1)


REPEATED = [
    (twice('"op": "f"', '"op": "g"'), r"nodes\['a1'\]: the field 'op' is given twice"),
    (twice('"nodes": {', '').replace('{, "a1"', '{"s": {"op": "f", "eclass": "S"}, "a1"'),
     "nodes: the e-node 's' is given twice"),
    (twice('"root_eclasses": ["A", "B"]', '"root_eclasses": ["A"]'),
     "the field 'root_eclasses' is given twice"),
    (twice('"A": {"type": "float32[2]"}', '"A": {}'),
     "class_data: the e-class 'A' is given twice"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), REPEATED)
def test_what_is_given_twice_is_refused(text: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=reason):
        read_egraph_json(written(tmp_path, text))


def test_nodes_in_any_layout_are_the_same(tmp_path: Path) -> None:
    usual = {"op": "f", "children": ["c"], "eclass": "A", "cost": 3, "subsumed": False}
    plain = as_nodes(read_egraph_json(written(tmp_path, example())))
    for fields in (
        list(usual),
        list(usual)[:4],
        ["eclass", "cost", "children", "op"],
        ["subsumed", "cost", "op", "children", "eclass"],
    ):
        content = example()
        content["nodes"]["a1"] = {field: usual[field] for field in fields}
        assert as_nodes(read_egraph_json(written(tmp_path, content))) == plain


def changed(**fields: Any) -> dict[str, Any]:
    return {**example(), "nodes": {**example()["nodes"], **fields}}


MALFORMED: list[tuple[str, Any, int, str]] = [
    ("dangling child", changed(s=node("S", "gone")), 3,
     "nodes['s'].children[0]: there is no e-node 'gone'"),
    ("dangling class", changed(s=node("S", 7)), 3,
     "nodes['s'].children[0]: there is no e-class 7"),
    ("no root", {"nodes": example()["nodes"]}, 3,
     "root_eclasses: expected a list of e-classes, at least one"),
    ("root without e-nodes", {**example(), "root_eclasses": ["Z", "Y"]}, 3,
     "root_eclasses[0]: no e-node is in the e-class 'Z'"),
    ("NaN cost", changed(s=node("S", "c", cost=float("nan"))), 3,
     "nodes['s'].cost: nan, expected a finite number"),
    ("cost beyond floats", changed(s=node("S", "c", cost=10**400)), 3, "nodes['s'].cost: 1000"),
    ("class of subsumed e-nodes", changed(s=node("S", "c", subsumed=True)), 3,
     "the e-class 'S': all of its e-nodes are subsumed"),
    ("circular root", {"nodes": {"a": node("A", "b"), "b": node("B", "a")},
                       "root_eclasses": ["A"]}, 5,
     "the root e-class 'A' has no acyclic derivation"),
    ("not an object", json.dumps([example()]), 3, "expected an object with nodes"),
    ("cut off", json.dumps(example())[:-9], 3, "not JSON: "),
    ("no UTF-8", b"\xff\xfe\x00", 3, "not JSON: "),
    ("e-node as the whole file", {"op": "f", "children": [], "eclass": "A", "cost": 1}, 3,
     "expected an object with nodes"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "exit_code", "reason"),
    [case[1:] for case in MALFORMED],
    ids=[case[0] for case in MALFORMED],
)
def test_a_malformed_file_gets_one_line_with_the_place(
    content: Any, exit_code: int, reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "egraph.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        written(tmp_path, content)
    assert main(["extract", str(path)]) == exit_code
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert f"{path}: {reason}" in line
    assert len(line) < 300
