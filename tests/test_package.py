"""The package as it is imported, and as it is built, installed and used outside the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import relational_tensat

ROOT = Path(__file__).resolve().parent.parent
METADATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def test_only_public_names_are_listed() -> None:
    assert dir(relational_tensat) == sorted([*relational_tensat.__all__, "__version__"])
    assert all(hasattr(relational_tensat, name) for name in relational_tensat.__all__)
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        _ = relational_tensat.optimise


def imported(statement: str) -> set[str]:
    """Return the modules that a process has after a statement."""
    command = f"{statement}\nimport json, sys\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, check=True)
    return set(json.loads(done.stdout))


def test_importing_it_imports_little() -> None:
    few = imported("import relational_tensat")
    assert not few & {"numpy", "typing", "pathlib", "relational_tensat.base.errors"}
    some = imported("from relational_tensat import optimize")
    heavy = {"duckdb", "highspy", "hypothesis", "onnx", "onnxruntime", "pandas", "pyarrow", "rich"}
    assert not some & heavy
    assert not any(name.startswith("relational_tensat.run.stages.") for name in some)


def test_its_metadata_name_nothing_that_is_not_known() -> None:
    assert METADATA["version"] == relational_tensat.__version__
    assert METADATA["keywords"] == sorted(METADATA["keywords"], key=str.lower)
    assert METADATA["classifiers"] == sorted(METADATA["classifiers"])
    assert not {"urls", "authors", "maintainers"} & set(METADATA)


def run(*command: object, folder: Path, expected: int = 0) -> str:
    """Run a command in a folder, with nothing of the checkout in its environment."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment | {"RELATIONAL_TENSAT_CACHE": str(folder / "cache")},
        capture_output=True,
        text=True,
    )
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.nightly
def test_it_is_built_installed_and_used_outside_the_checkout(tmp_path: Path) -> None:
    """A source distribution, the wheel made of it, without onnx and with."""
    run(sys.executable, "-m", "venv", "tools", folder=tmp_path)
    run("tools/bin/pip", "install", "-q", "build", folder=tmp_path)
    run("tools/bin/python", "-m", "build", "-o", tmp_path / "dist", ROOT, folder=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (source,) = (tmp_path / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "rules").rglob("*.rules")}
    shipped |= {str(path.relative_to(ROOT)) for path in (ROOT / "sql").rglob("*.sql")}
    assert {f"relational_tensat/_resources/{name}" for name in shipped} <= names
    assert "relational_tensat/run/report.schema.json" in names
    assert "relational_tensat/py.typed" in names
    with tarfile.open(source) as archive:
        assert not any("/tests/" in name or "/results/" in name for name in archive.getnames())

    run(sys.executable, "-m", "venv", "user", folder=tmp_path)
    run("user/bin/pip", "install", "-q", wheel, folder=tmp_path)
    program, folder = tmp_path / "user" / "bin" / "relational-tensat", tmp_path / "work"
    folder.mkdir()
    run(program, "example", "encoder_block", folder=folder)
    said = run(program, "run", "encoder_block.onnx", folder=folder, expected=2)
    assert said.count("\n") == 1
    assert "pip install 'relational-tensat[onnx]'" in said

    run("user/bin/pip", "install", "-q", f"{wheel}[onnx]", folder=tmp_path)
    said = run(program, "run", "encoder_block.onnx", "-o", "faster.onnx", folder=folder)
    assert "written to faster.onnx" in said
    where = run(
        tmp_path / "user" / "bin" / "python",
        "-c",
        "import relational_tensat; print(relational_tensat.__file__)",
        folder=folder,
    )
    assert where.startswith(str(tmp_path / "user"))
