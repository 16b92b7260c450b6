"""Names from files do nothing: every writer shows them, no terminal obeys them, no compiler reads them."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from relational_tensat.base.shown_text import escaped, escaped_in_code
from relational_tensat.cli.main import main
from relational_tensat.mugraph import kernels
from relational_tensat.mugraph.kernels.statements import identifier

#: A μGraph whose kernel's name is code.
INJECTION = Path(__file__).parent / "files" / "kernel_name_injection.json"

#: What terminals act on or hide, and what ends a comment or a string in some language.
TERMINAL = "\x1b]0;T\x07\x1b[2J\x9b31m\x7f\r\x08\u202e\u2066\u200b\u2028\ufeff"
HOSTILE = (
    f'{TERMINAL}"""\n\'\'\'\n*/\n//\\\n??/\n-->\n</script><script>\nimport os\nos.system("PWNED")\n'
    '#include "/etc/passwd"\n`PWNED`; DROP TABLE enode; --'
)


def check_shown(text: str) -> None:
    """Check that nothing in a text does anything to a terminal, or is not seen."""
    assert [c for c in text if not (c.isprintable() or c in "\n\t")] == []


def test_one_function_shows_what_is_not_seen() -> None:
    for code in (*range(0x3000), *range(0xD7F0, 0x10000), 0xE0001, 0x10FFFF):
        shown = escaped(chr(code))
        assert shown.isprintable() and (shown == chr(code)) == chr(code).isprintable()
        assert not set(escaped_in_code(chr(code))) & set("\"'`*/?\\\n\r")
    assert escaped("a\x1b[2J\u202e", keep="\n") == "a\\x1b[2J\\u202e"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of which every name is hostile, and that can be optimized."""
    folder = tmp_path_factory.mktemp("hostile")

    def value(name: str) -> onnx.ValueInfoProto:
        return helper.make_tensor_value_info(name + HOSTILE, TensorProto.FLOAT, [4, 4])

    weight = numpy_helper.from_array(np.eye(4, dtype=np.float32), "w" + HOSTILE)
    nodes = [
        helper.make_node("Relu", ["x" + HOSTILE], ["a" + HOSTILE], "one" + HOSTILE),
        helper.make_node("Relu", ["a" + HOSTILE], ["b" + HOSTILE], "two" + HOSTILE),
        helper.make_node("MatMul", ["b" + HOSTILE, "w" + HOSTILE], ["c" + HOSTILE]),
        helper.make_node("Softmax", ["c" + HOSTILE], ["d" + HOSTILE], axis=1),
        helper.make_node(
            "Foo" + TERMINAL, ["d" + HOSTILE], ["y" + HOSTILE], domain="evil" + TERMINAL
        ),
    ]
    graph = helper.make_graph(nodes, "g" + HOSTILE, [value("x")], [value("y")], [weight])
    graph.value_info.append(value("d"))
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("evil" + TERMINAL, 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), folder / "m.onnx")
    line = ["run", str(folder / "m.onnx"), "-o", str(folder / "o.onnx"), "--fuse", "--cost", "a100",
            "--set", "fuse-time-limit=5", "--db", str(folder / "run.duckdb")]  # fmt: skip
    assert main(line) == 0
    return folder


_QUERY = "SELECT name, hash(name) FROM original_value"


@pytest.mark.parametrize(
    "line",
    [
        "run M -o N.onnx",
        "run M -o N.onnx --json",
        "run M -o N.json --json-events --details",
        "run M -o N.onnx --quiet",
        "run --resume D -o N.onnx",
        "convert M N.json",
        f"sql D {_QUERY.replace(' ', '_')}",
        f"sql D {_QUERY.replace(' ', '_')} --json",
        "inspect D",
        "schema D",
        "explain D",
        "explain D --check",
        "explain D --json",
        "export D --egraph-json N.json",
        "view D -o N.html",
        "kernels regions M",
        "kernels regions M --json",
        "kernels regions D",
        "rules show activation-into-product[relu] --sql --db D",
        "run E -o N.onnx",
        "run M -o N.onnx --dim E=1",
        "rules check E",
        "E",
    ],
)
def test_every_command_shows_them(
    line: str, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = {"M": model / "m.onnx", "D": model / "run.duckdb", "E": f"none{TERMINAL}.onnx"}
    words = []
    for word in line.split():
        if "_" in word and word.startswith("SELECT"):
            word = (
                word.replace("original_value", "original§value").replace("_", " ").replace("§", "_")
            )
        elif word.startswith("N."):
            word = str(tmp_path / word)
        words.append(str(places.get(word, word.replace("E=", f"{TERMINAL}="))))
    code = main(words)
    outputs = capsys.readouterr()
    assert code in ((2, 3) if re.search(r"\bE\b", line) else (0,))
    assert outputs.out or outputs.err or "convert" in line
    check_shown(outputs.out)
    check_shown(outputs.err)
    for page in tmp_path.glob("*.html"):
        check_shown(page.read_text().partition('id="data"')[2].partition("</script>")[0])


def test_a_path_of_several_lines_is_shown_on_one(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nobody forges a line of a report by a folder's name."""
    folder = tmp_path / "a\nFORGED"
    folder.mkdir()
    (folder / "m.rules").write_text('(rule r (law "x + y = y + x") (add ?x ?y) (add ?y ?x))')
    block = str(folder / "b\nFORGED.onnx")
    for line in [
        ["example", "encoder_block", "-o", block],
        ["run", block, "-o", str(folder / "o.onnx"), "-q", "--effort", "low", "--iterations", "1",
         "--certificate", str(folder / "o.proof.json")],
        ["run", block, "-o", str(folder / "p.onnx"), "--effort", "low", "--iterations", "1",
         "--db", str(folder / "r.duckdb")],
        ["check", block, str(folder / "o.onnx"), str(folder / "o.proof.json")],
        ["view", str(folder / "r.duckdb"), "-o", str(folder / "r.html")],
        ["rules", "check", str(folder / "m.rules")],
        ["fleet", block, "-o", str(folder / "out"), "--effort", "low", "--iterations", "1"],
        ["fleet", "status", str(folder / "out")],
        ["run", str(folder / "absent.onnx")],
    ]:  # fmt: skip
        main(line)
        outputs = capsys.readouterr()
        shown = outputs.out + outputs.err
        assert "FORGED" in shown, line
        assert not re.search("^FORGED", shown, re.MULTILINE), line


def _renamed(document: Any) -> Any:
    """Return a μGraph's JSON with a hostile name for every kernel and tensor."""
    names = {*document["inputs"], *document["outputs"], document["name"]}
    for step in document["steps"]:
        names |= {step.get("kernel", "")} | {it["output"] for it in step.get("iterators", ())}
        names |= {inner["output"] for inner in step.get("steps", ()) if "output" in inner}

    def renamed(part: Any) -> Any:
        if isinstance(part, dict):
            return {renamed(key) if key in names else key: renamed(v) for key, v in part.items()}
        if isinstance(part, list):
            return list(map(renamed, part))
        return f"{part}{HOSTILE}" if part in names and part else part

    return renamed({key: value for key, value in document.items() if key != "rows"})


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kernel") / "k.json"
    path.write_text(json.dumps(_renamed(json.loads(INJECTION.read_text()))))
    return path


@pytest.mark.parametrize(
    "line",
    [
        "emit --target triton", "emit --target cuda", "emit --target triton --json",
        "emit --target cuda --plan", "show", "show --json",
        "show --html N", "show --sql",
    ],
)  # fmt: skip
def test_every_writer_of_kernels_shows_them(
    line: str, kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    action, *flags = line.replace("N", str(tmp_path / "k.html")).split()
    assert main(["kernels", action, str(kernel), *flags]) == (3 if "--sql" in line else 0)
    outputs = capsys.readouterr()
    text = outputs.out
    check_shown(text + outputs.err)
    assert all(line.strip() != "import os" for line in text.splitlines())
    assert "PWNED" in text + outputs.err
    if line == "emit --target triton":
        for source in text.split('"""')[2::2]:
            check_python(source)
    if line == "emit --target cuda":
        check_c(text)


def check_python(source: str) -> None:
    """Check that nothing but Triton is imported, and only that is called."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            assert {alias.name for alias in node.names} <= {"triton", "triton.language"}
        if isinstance(node, ast.Attribute):
            assert node.attr != "system"


def check_c(source: str) -> None:
    """Check that names are in comments of one line, and else identifiers."""
    code = "\n".join(line.partition("//")[0] for line in source.splitlines())
    assert set(re.findall(r'^\s*#include\s*"([^"]*)"', code, re.M)) <= {"fused.cuh"}
    assert "os.system" not in code and "*/" not in source
    own = (Path(kernels.__file__).parent / "functions.h").read_text("utf-8").splitlines()
    assert all(not line.endswith("\\") or line in own for line in source.splitlines())


def test_c_says_names_as_cuda_does(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = {
        "format": "relational_tensat μGraph 1", "name": "g", "inputs": {"x": "m=8 n=16"},
        "steps": [{
            "kernel": "k", "grid": [8], "loop": 1,
            "iterators": [{"tensor": "x", "output": "x_", "imap": ["m"], "fmap": ""}],
            "steps": [{"op": "exp", "operands": ["x_"], "output": "e"}],
            "savers": [{"tile": "e", "output": "y", "dims": "m=8 n=16", "omap": ["m"]}],
        }],
        "outputs": ["y"],
    }  # fmt: skip
    path = tmp_path / "c.json"
    path.write_text(json.dumps(_renamed(document)))
    assert main(["kernels", "emit", str(path), "--target", "c"]) == 0
    text = capsys.readouterr().out
    check_shown(text)
    check_c(text)


def test_names_that_differ_are_identifiers_that_differ() -> None:
    names = [*_names(), *(f"{name}{end}" for name in _names() for end in (".x", "-x", "_x", " x"))]
    found = [identifier(name) for name in names]
    assert len(set(found)) == len(set(names))
    assert all(re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) for name in found)
    assert identifier("scores") == "scores"
    for name in ("float", "for", "in_x", "tl", "x_now", "\ud800", "", "1"):
        assert identifier(name).startswith("n_")


def _names() -> Iterator[str]:
    yield from (
        "abcd",
        "abcd.e",
        "abcd-e",
        "a b",
        "a\tb",
        "\ud800",
        "\ud801",
        "",
        "1",
        "µ",
        "float",
        HOSTILE,
    )
