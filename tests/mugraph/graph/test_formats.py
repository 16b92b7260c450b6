"""μGraphs as text and JSON, and Mirage's saved ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.cli.main import main
from relational_tensat.mugraph.graph.arithmetic import Numbers
from relational_tensat.mugraph.graph.dims import dims_of
from relational_tensat.mugraph.graph.evaluation import evaluate
from relational_tensat.mugraph.graph.mirage_reader import from_mirage
from relational_tensat.mugraph.graph.mugraph import MuGraph
from relational_tensat.mugraph.graph.mugraph_json import (
    content_hash,
    decoded,
    encoded,
    load_mugraph,
    save_mugraph,
)
from relational_tensat.mugraph.graph.mugraph_text import mugraph_text
from relational_tensat.mugraph.programs import PROGRAMS, program
from tests.mugraph.masks import BY_BOOLS, by_bools, masked_attention
from tests.mugraph.mirage_graphs import saved
from tests.mugraph.mugraphs import flash_attention

TEXT = """\
attention(Q[h=2 q=4 d=4], K[h=2 d=4 k=8], V[h=2 k=8 e=2]) → Y[h=2 q=4 e=2]
kernel flash: grid x=2 y=2, loop 4
  q[h=1 q=2 d=4] = load Q {x→h y→q}
  k[h=1 d=4 k=2] = load K {x→h y→φ loop→k}
  v[h=1 k=2 e=2] = load V {x→h y→φ loop→k}
  loop 4 times:
    s[h=1 q=2 k=2] = matmul(q, k) over d
    p[h=1 q=2 k=2] = thread { p = exp(s) }
    r[h=1 q=2] = sum(p) over k
    o[h=1 q=2 e=2] = matmul(p, v) over k
  after the loop:
    l[h=1 q=2] = sum over the loop of r
    a[h=1 q=2 e=2] = sum over the loop of o
    y[h=1 q=2 e=2] = div(a, l)
  store y → Y[h=2 q=4 e=2] {x→h y→q}
"""


def test_the_command_shows_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "flash.json"
    save_mugraph(flash_attention(), path)
    assert main(["kernels", "show", str(path)]) == 0
    assert capsys.readouterr().out == TEXT
    assert main(["kernels", "show", str(path), "--json"]) == 0
    assert decoded(json.loads(capsys.readouterr().out), "printed") == flash_attention()


def test_bools_are_shown_and_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph, path = by_bools(masked_attention()), tmp_path / "bools.json"
    assert "mask[q=16 k=64] of bools)" in mugraph_text(graph)
    content = encoded(graph)
    assert content["conditions"] == ["mask"] and content_hash(graph) != content_hash(
        replace(graph, conditions=frozenset())
    )
    for change, reason in (
        ({"conditions": []}, "mask_tile: elements of 'mask' are numbers, and are loaded as bools"),
        ({"conditions": ["mask", "Q"]}, "elements of 'Q' are bools, and are loaded as numbers"),
        ({"conditions": ["M"]}, "there is no input 'M', whose elements would be bools"),
        ({"conditions": "mask"}, "expected a list of names, not 'mask'"),
    ):
        path.write_text(json.dumps(content | change), encoding="utf-8")
        assert main(["kernels", "show", str(path)]) == 3
        assert reason in capsys.readouterr().err


def test_json_there_and_back(tmp_path: Path) -> None:
    for graph in (flash_attention(), *BY_BOOLS, *(program(name) for name in PROGRAMS)):
        save_mugraph(graph, tmp_path / "graph.json")
        assert load_mugraph(tmp_path / "graph.json") == graph


def test_the_hash_is_of_the_content() -> None:
    graph = flash_attention()
    assert content_hash(replace(graph, name="other")) == content_hash(graph)
    assert content_hash(flash_attention(q=8)) != content_hash(graph)


def test_what_is_malformed_is_refused_in_one_line() -> None:
    document = json.dumps(encoded(flash_attention()))
    mistakes = {
        '"loop": 4': '"loop": 5',
        '"y", "output": "Y"': '"p", "output": "Y"',
        '"op": "div"': '"op": "dvi"',
        '"over": ["d"]': '"over": ["x"]',
        '["h", "q"]}]': '["h", ""]}]',
        '"h=2 q=4 e=2"': '"h=2 q=4 e=3"',
        '"operands": ["a", "l"]': '"operands": ["a", "s"]',
        '"grid": [2, 2]': '"grid": [2, 2, 1, 1]',
        '"imap": ["h", "q"], "fmap"': '"imap": ["h"], "fmap"',
    }
    for right, wrong in mistakes.items():
        assert right in document, right
        with pytest.raises(InputError, match="file") as caught:
            decoded(json.loads(document.replace(right, wrong, 1)), "file")
        assert "\n" not in str(caught.value)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    weights = np.exp(q @ k)
    return weights / weights.sum(-1, keepdims=True) @ v


def normal(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x * x).mean(-1, keepdims=True))


MEANINGS: dict[str, Callable[..., np.ndarray]] = {
    "gqa_bs1": attention,
    "mqa_bs1": attention,
    "lora": lambda x, w, a, b: x @ w + x @ a @ b,
    "ntrans_bs1": lambda h, x, a: normal(x + a * (normal(h) + x)),
    "qknorm_gqa_bs1": lambda q, k, v: attention(normal(q), k, normal(v)),
}


def relative_error(document: list[dict[str, object]], name: str) -> float:
    graph = from_mirage(document, name)
    assert decoded(json.loads(json.dumps(encoded(graph))), "again") == graph
    random = np.random.default_rng(1)
    shapes = [[*map(int, np.array(_dim(op)))] for op in document if op["op_type"] == "kn_input_op"]
    values = [0.2 * random.standard_normal(shape) for shape in shapes]
    expected = MEANINGS[name](*values)
    inputs = {
        key: value.reshape([dim.size for dim in dims])
        for (key, dims), value in zip(graph.inputs.items(), values, strict=True)
    }
    (computed,) = evaluate(graph, inputs, Numbers()).values()
    return float(np.linalg.norm(computed.ravel() - expected.ravel()) / np.linalg.norm(expected))


def _dim(operator: dict[str, object]) -> list[int]:
    (made,) = operator["output_tensors"]  # type: ignore[misc]
    return made["dim"][: made["num_dims"]]  # type: ignore[index,no-any-return]


@pytest.mark.parametrize("name", [name for name in MEANINGS if name != "qknorm_gqa_bs1"])
def test_good_graphs_of_mirage_compute_their_programs(name: str) -> None:
    documents = saved(name)
    assert relative_error(documents[-1], name) < 1e-12


def test_the_saved_graphs_of_qknorm_do_not() -> None:
    for document in saved("qknorm_gqa_bs1")[::60]:
        assert relative_error(document, "qknorm_gqa_bs1") > 1.0


def test_both_spellings_of_accumulators_are_read() -> None:
    document = saved("rmsnorm_bs1")[0]
    renamed = json.loads(json.dumps(document).replace("tb_accum_", "tb_forloop_accum_"))
    assert "forloop" in json.dumps(renamed)
    assert from_mirage(renamed, "x") == from_mirage(document, "x")


def test_dims_are_read_as_they_are_written() -> None:
    graph = MuGraph("none", {"X": dims_of("m=2 k=3")}, (), ("X",))
    assert decoded(encoded(graph), "x") == graph
    for wrong in ("m", "m=0", "m=2 m=3", "=2"):
        with pytest.raises(InputError):
            dims_of(wrong)


def _of_one_operator(op: str, made: list[int], *given: list[int]) -> list[dict[str, object]]:
    """Return Mirage's JSON of one operator of a kernel graph."""

    def tensor(guid: int, dim: list[int]) -> dict[str, object]:
        return {"guid": guid, "num_dims": len(dim), "dim": dim}

    inputs = [tensor(guid, dim) for guid, dim in enumerate(given)]
    result = tensor(len(given), made)
    return [
        *({"op_type": "kn_input_op", "input_tensors": [], "output_tensors": [t]} for t in inputs),
        {"op_type": f"kn_{op}_op", "input_tensors": inputs, "output_tensors": [result]},
        {"op_type": "kn_output_op", "input_tensors": [result], "output_tensors": []},
    ]


def test_a_sum_and_a_norm_are_read() -> None:
    x = np.random.default_rng(2).standard_normal((2, 3, 4, 5))
    for op, made, expected in (
        ("reduction_2", [2, 3, 1, 5], x.sum(2)),
        ("rms_norm", [2, 3, 4, 5], normal(x)),
    ):
        graph = from_mirage(_of_one_operator(op, made, [2, 3, 4, 5]), op)
        (computed,) = evaluate(graph, dict.fromkeys(graph.inputs, x), Numbers()).values()
        assert np.allclose(computed.ravel(), expected.ravel())


@pytest.mark.parametrize("op", ["mul_scalar", "clamp"])
def test_what_lacks_its_numbers_is_refused(op: str) -> None:
    with pytest.raises(InputError, match=f"Mirage's JSON has '{op}' without its numbers"):
        from_mirage(_of_one_operator(op, [2, 3], [2, 3]), op)


def test_what_people_edit_is_read_strictly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "edited.json"

    def refused(text: str) -> str:
        path.write_text(text, encoding="utf-8")
        assert main(["kernels", "show", str(path)]) == 3
        error = capsys.readouterr().err
        assert error.startswith(f"relational-tensat: {path}: ") and error.count("\n") == 1
        return error

    for keys, value, reason in (
        (["steps", 0, "loop"], 4.5, "flash: loop: expected a whole number, not 4.5"),
        (["steps", 0, "loop"], True, "flash: loop: expected a whole number, not True"),
        (["steps", 0, "grid"], "22", "flash: grid: expected a list of whole numbers, not '22'"),
        (["steps", 0, "gird"], [2, 2], "flash: unknown key 'gird'; did you mean 'grid'?"),
        (["steps", 0, "steps", 4, "attrs", "over"], "k", "o: over: expected a list of index var"),
        (["steps", 0, "steps", 5, "epsilon"], float("nan"), "epsilon: expected a finite number"),
        (["steps", 0, "steps", 5, "epsilon"], "0", "step 5: epsilon: expected a finite number"),
        (["steps", 0, "steps", 4], 7, "flash: step 4: expected an object, not 7"),
        (["steps", 0, "steps", 0, "attrs"], 5, "flash: step 0: attrs: expected an object, not 5"),
        (["steps", 0, "steps", 4, "attrs"], {"over": None}, "over: None is no attribute"),
        (["steps", 0, "savers", 0, "wide"], 1, "saver 0: wide: expected true or false, not 1"),
        (["steps", 0, "savers", 0, "dims"], "h=2 q=5 e=2", "Y is [h=2 q=5 e=2], but blocks store"),
        (["steps"], None, "steps: expected a list, not None"),
        (["inputs", "Q"], 4, "inputs: Q: expected a text, not 4"),
        (["rows"], [{"kernel": "flash"}], "row 0: the key 'tensor' is missing"),
        (["name"], ["x"], "name: expected a text, not ['x']"),
    ):
        content: Any = json.loads(json.dumps(encoded(flash_attention())))
        place = content
        for key in keys[:-1]:
            place = place[key]
        place[keys[-1]] = value
        assert reason in refused(json.dumps(content)), keys
    assert "the file is empty" in refused("")
    assert "lists within lists" in refused("[" * 100_000)
    path.write_bytes(b"\x1f\x8b\x08\x00" + b"\xff" * 40)
    assert main(["kernels", "show", str(path)]) == 3
