"""Folders that nobody else sees, guesses, or plants, and that are gone with their process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from relational_tensat.base.errors import InputError
from relational_tensat.base.files import write_aside
from relational_tensat.base.folders import PrivateFolder, check_own
from relational_tensat.egraph.database import Database

_HOLD = (
    "import sys; from pathlib import Path; from relational_tensat.base.folders import PrivateFolder;"
    "print(PrivateFolder(Path(sys.argv[1]), 'model.onnx').path, flush=True); input()"
)


def holder(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    """Start a process that has a private folder; return both."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_it_is_for_its_user_only_and_never_the_same(tmp_path: Path) -> None:
    with PrivateFolder(tmp_path) as one, PrivateFolder(tmp_path, "x.onnx") as other:
        assert one.path.stat().st_mode & 0o777 == other.path.stat().st_mode & 0o777 == 0o700
        assert one.path.name != other.path.name
        assert other.path.name.startswith(".x.onnx.")
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(
    tmp_path: Path,
) -> None:
    living, used = holder(tmp_path)
    killed, left = holder(tmp_path)
    killed.kill()
    killed.communicate()
    assert used.is_dir() and left.is_dir()
    with PrivateFolder(tmp_path) as own:
        assert sorted(tmp_path.iterdir()) == sorted([used, own.path])
    living.communicate("\n")
    assert list(tmp_path.iterdir()) == []


def test_folders_and_links_of_others_stay(tmp_path: Path) -> None:
    """Names alone prove nothing: a link may lead anywhere."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "precious").write_text("kept")
    place = tmp_path / "place"
    place.mkdir()
    (place / f"relational-tensat-{'0' * 16}.part").symlink_to(elsewhere)
    (place / ".model.onnx.part").mkdir()
    PrivateFolder(place).close()
    assert len(list(place.iterdir())) == 2
    assert (elsewhere / "precious").read_text() == "kept"


@pytest.mark.parametrize("name", ["n" * 250 + ".json", "\udcff.json", "µ" * 120 + ".json"])
def test_any_name_that_a_file_may_have_can_be_written_aside(tmp_path: Path, name: str) -> None:
    with write_aside(tmp_path / name) as aside:
        (aside / name).write_text("done")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_others_may_have_written_is_not_used(tmp_path: Path) -> None:
    file = tmp_path / "kernels.json"
    file.write_text("{}")
    check_own(file)
    check_own(tmp_path / "missing")
    file.chmod(0o666)
    with pytest.raises(InputError, match=r"kernels\.json: everybody may write it, is not used$"):
        check_own(file)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_belongs_to_another_user_is_not_used(tmp_path: Path) -> None:
    os.chown(tmp_path, 4321, 4321)
    with pytest.raises(InputError, match=r"belongs to another user \(number 4321\), is not used$"):
        check_own(tmp_path)


_SPILL = (
    "import sys; from pathlib import Path; from relational_tensat.base.process import ProcessOptions;"
    "from relational_tensat.egraph.database import Database;"
    "database = Database(Path(sys.argv[1]), ProcessOptions(memory_limit='30MB'));"
    "database.execute('CREATE TEMP TABLE t AS SELECT range AS i, hash(range) AS h FROM range(4000000)');"
    "print(flush=True); input()"
)


def test_what_is_spilled_beside_a_database_is_private_and_goes_with_the_next_one(
    tmp_path: Path,
) -> None:
    path = tmp_path / "run.duckdb"
    process = subprocess.Popen(
        [sys.executable, "-c", _SPILL, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    (folder,) = (entry for entry in tmp_path.iterdir() if entry.is_dir())
    assert folder.stat().st_mode & 0o777 == 0o700
    assert any(folder.iterdir())
    process.kill()
    process.communicate()
    assert folder.exists()
    Database(path).close()
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_searched_for_what_was_left_once_in_a_process(tmp_path: Path) -> None:
    PrivateFolder(tmp_path).close()
    left = tmp_path / f"relational-tensat-{'0' * 16}.part"
    left.mkdir()
    PrivateFolder(tmp_path).close()
    assert left.exists()
