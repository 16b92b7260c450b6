"""The rooms of the package: imports go one way, and no module is part of a cycle."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx
import pytest

from relational_tensat.view.queries import EXAMPLES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "relational_tensat"


def modules() -> dict[str, Path]:
    """Return the files of the package by module name; the page's folder has npm's packages, not ours."""
    imports = {}
    for path in PACKAGE.rglob("*.py"):
        if "node_modules" in path.parts:
            continue
        parts = path.relative_to(ROOT).with_suffix("").parts
        imports[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return imports


@cache
def syntax() -> dict[str, list[ast.AST]]:
    """Return the imports and classes of each module, by its name."""
    return {
        name: [
            node
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Import | ast.ImportFrom | ast.ClassDef)
        ]
        for name, path in modules().items()
    }


@cache
def import_graph() -> nx.DiGraph:
    """Return an edge for each import of a module of the package by another, wherever it stands."""
    known = modules()
    graph = nx.DiGraph()
    for name, nodes in syntax().items():
        for node in nodes:
            if isinstance(node, ast.Import):
                graph.add_edges_from(
                    (name, alias.name) for alias in node.names if alias.name in known
                )
            elif isinstance(node, ast.ImportFrom) and node.module in known:
                for alias in node.names:
                    inner = f"{node.module}.{alias.name}"
                    graph.add_edge(name, inner if inner in known else node.module)
    return graph


def rooms() -> list[str]:
    """Return the rooms in the order of ``docs/architecture.md``."""
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)` \|", text, flags=re.MULTILINE)


def test_no_module_is_part_of_a_cycle_of_imports() -> None:
    cycles = [
        sorted(part) for part in nx.strongly_connected_components(import_graph()) if len(part) > 1
    ]
    assert cycles == []


def test_every_room_stands_in_the_table_and_there_are_at_most_20() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    assert folders == set(rooms())
    assert len(folders) <= 20


def test_rooms_import_only_from_rooms_above_them_in_the_table() -> None:
    order = {room: place for place, room in enumerate(rooms())}
    wrong = []
    for source, target in import_graph().edges:
        one, other = (name.split(".")[1:2] for name in (source, target))
        if one and other and order.get(one[0], len(order)) < order.get(other[0], -1):
            wrong.append((source, target))
    assert wrong == []


def test_the_package_imports_nothing_of_the_bench() -> None:
    named = {
        name
        for nodes in syntax().values()
        for node in nodes
        for name in (
            [node.module or ""] if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        )
    }  # fmt: skip
    assert "relational_tensat.base.errors" in named
    assert {name for name in named if name.split(".")[0] in ("bench", "tests")} == set()


def test_no_module_name_stands_three_times() -> None:
    names = Counter(path.stem for path in modules().values() if path.stem != "__init__")
    assert {name: count for name, count in names.items() if count > 2} == {}


def test_a_class_name_stands_for_one_class() -> None:
    """The e-graph that users open is the one beside its tables: both are what egg calls so."""
    names = Counter(
        node.name for nodes in syntax().values() for node in nodes if isinstance(node, ast.ClassDef)
    )
    assert {name: count for name, count in names.items() if count > 1} == {"EGraph": 2}


def test_words_that_few_readers_know_are_not_used() -> None:
    words = re.compile(r"\b(anew|dear|dearer|dearest|whoever|as ever)\b", re.IGNORECASE)
    folders = [PACKAGE, ROOT / "sql", ROOT / "rules", ROOT / "docs"]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    files += ROOT.glob("*.md")
    own = [path for path in files if "node_modules" not in path.parts]
    texts = [path for path in own if path.suffix in (".py", ".sql", ".rules", ".md")]
    found = [
        (str(path.relative_to(ROOT)), match[0])
        for path in texts
        if path.name != "CHANGELOG.md"
        for match in words.finditer(path.read_text(encoding="utf-8"))
        if match[0] != "dear" or path.suffix != ".py"  # the name of a reduction, which users type
    ]
    assert found == []


def test_ctrl_c_is_taken_in_one_place() -> None:
    """Code that wants to know of it asks a ``Watch``, or says what it means to ``ctrl_c_taken``.

    Until that is imported, ``ctrl_c`` ends the process.
    """
    takers = [name for name, path in modules().items() if "signal.signal(" in path.read_text()]
    assert sorted(takers) == ["relational_tensat.base.watch", "relational_tensat.ctrl_c"]


#: A run; how many modules of the package it loads, and how many of its frames stand above a statement.
_COUNTED = """
import sys
from relational_tensat.cli.main import main
from relational_tensat.egraph.database import Database
from relational_tensat.explore.strategies import saturation_then_focus as auto

package, *argv = sys.argv[1:]
auto.LEAST_S = 0.0
execute, deepest = Database.execute, 0

def counting(*args, **kwargs):
    global deepest
    frame, depth = sys._getframe(1), 0
    while frame is not None:
        depth += frame.f_code.co_filename.startswith(package)
        frame = frame.f_back
    deepest = max(deepest, depth)
    return execute(*args, **kwargs)

Database.execute = counting
code = main(argv)
loaded = sum(name.split(".")[0] == "relational_tensat" for name in sys.modules)
print(code, loaded, deepest)
"""


@pytest.mark.parametrize(
    ("model", "flags", "most_modules"),
    [
        ("bench/inputs/nasrnn.json", "--effort low", 227),  # one few e-graphs need: neighbourhoods
        ("bench/inputs/encoder_block.onnx", "--effort low", 247),
        ("bench/inputs/nasrnn.json", "--effort low --search mcts --set tree-decisions=2", 238),
        ("bench/inputs/encoder_block.onnx", "--budget 2", 263),
    ],
)
def test_a_run_loads_what_it_uses_and_goes_straight_to_its_statements(
    model: str, flags: str, most_modules: int, tmp_path: Path
) -> None:
    """So many modules of the package, ten frames of it; lower them where a change needs fewer."""
    output = tmp_path / f"o{Path(model).suffix}"
    argv = ["run", model, "-o", str(output), *flags.split(), "--quiet"]
    command = [sys.executable, "-c", _COUNTED, str(PACKAGE), *argv]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    code, modules_loaded, deepest = map(int, done.stdout.split()[-3:])
    assert code == 0, done.stdout
    assert modules_loaded <= most_modules and deepest <= 10, done.stdout


def test_the_package_is_imported_without_its_rooms() -> None:
    code = "import sys, relational_tensat; print(sorted(n for n in sys.modules if 'tensat' in n))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == repr(["relational_tensat", "relational_tensat.ctrl_c"])


def test_lists_of_what_a_group_has_are_in_order() -> None:
    """Threads give the rows of a group in any order: a list of them, or of what differs, says its own."""
    texts = {str(path): path.read_text() for path in (ROOT / "sql").rglob("*.sql")}
    texts |= dict(EXAMPLES)
    assert not [
        f"{name}: {text[at.start() : at.end()]}"
        for name, text in texts.items()
        for at in re.finditer(
            r"\b(?:list|string_agg)\((?:DISTINCT )?\w+\.\w+(?:, '[^']*')?\)", text
        )
    ]
